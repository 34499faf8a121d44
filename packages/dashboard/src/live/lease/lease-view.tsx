/** One lease: what it is now, its ownership over time, why, who waits, every decision, and the record. */

import { useEffect, useMemo } from "preact/hooks";
import { type AuditEvent, historyOf } from "solehold/browser";
import { Banner, Status } from "../../ui/components.tsx";
import { Actions } from "../act/actions.tsx";
import { ConnectionLost, Failed } from "../components.tsx";
import { type Lease, ProblemError, type Who } from "../data/api.ts";
import { LeaseDetail } from "../data/lease-detail.ts";
import { storeNow } from "../data/store-clock.ts";
import { isLive, shortFence, statusOf, toneOf } from "../format.ts";
import { useChanges, useTick } from "../hooks.ts";
import { TimeLeft } from "../leases/time-left.tsx";
import { hrefOf, type Params, setParams } from "../router.ts";
import { Decisions } from "./decisions.tsx";
import { QueuePanel } from "./queue-panel.tsx";
import { RecordPanel } from "./record-panel.tsx";
import { Timeline } from "./timeline.tsx";
import { RANGES, type Range } from "./timeline-layout.ts";
import { Why } from "./why.tsx";

const NO_EVENTS: readonly AuditEvent[] = [];

export function LeaseView({
  tenant,
  name,
  params,
  who,
}: {
  tenant: string;
  name: string;
  params: Params;
  who: Who;
}) {
  const detail = useMemo(() => new LeaseDetail(tenant, name), [tenant, name]);
  const mayAudit = who.actions.includes("audit");
  useEffect(() => {
    detail.start(mayAudit);
    return () => detail.close();
  }, [detail, mayAudit]);
  useChanges(detail.subscribe);
  useTick(250);
  const { lease, state } = detail;
  const nowMs = storeNow();
  const events = Array.isArray(detail.history) ? detail.history : NO_EVENTS;
  const { tenures, denials } = useMemo(() => historyOf(events), [events]);
  const range = (Object.keys(RANGES) as Range[]).find((each) => each === params.range) ?? "auto";
  const holders = useMemo(
    () => [...new Set(events.flatMap(({ holder = "" }) => (holder === "" ? [] : [holder])))],
    [events],
  );
  const waiting = detail.queue.waiters.map(({ holder, waitedMs }) => ({
    holder,
    fromMs: nowMs - (Date.now() - detail.queueAtMs) - waitedMs,
  }));
  return (
    <main class="view view-lease">
      <p class="crumbs">
        <a href={hrefOf("leases", tenant === "default" ? {} : { tenant })}>Leases</a>
        <span class="muted"> / {tenant}</span>
      </p>
      <Head lease={lease} name={name} nowMs={nowMs} state={state} />
      <ConnectionLost stream={detail.stream} />
      <Trouble detail={detail} />
      <Actions detail={detail} who={who} />
      {events.length > 0 && (
        <Timeline
          {...{ tenures, denials, waiting, nowMs, range }}
          expiresAtMs={lease !== null && lease.state === "held" ? lease.expiresAtMs : null}
          onRange={(chosen) => setParams({ range: chosen === "auto" ? "" : chosen })}
        />
      )}
      {detail.history === "forbidden" && (
        <Banner tone="accent">This key does not allow the audit, so its history is not shown.</Banner>
      )}
      <div class="columns">
        <div class="column">
          {detail.history !== "forbidden" && (
            <Why
              tenant={tenant}
              name={name}
              at={params.at ?? ""}
              holder={params.holder ?? ""}
              holders={holders}
              waiting={waiting}
            />
          )}
          {detail.history !== "forbidden" && (
            <Decisions
              events={events}
              isLoading={detail.history === null}
              auditHref={hrefOf("audit", { tenant, name })}
            />
          )}
        </div>
        <div class="column">
          <QueuePanel detail={detail} />
          {lease !== null && <RecordPanel lease={lease} />}
        </div>
      </div>
    </main>
  );
}

function Head({
  lease,
  name,
  nowMs,
  state,
}: {
  lease: Lease | null;
  name: string;
  nowMs: number;
  state: string;
}) {
  const status = lease === null ? null : statusOf(lease, nowMs);
  return (
    <div class="lease-head">
      <h1 class="mono">{name}</h1>
      <div class="lease-now">
        {lease === null || status === null ? (
          <span class="muted">{state === "loading" ? "loading…" : state}</span>
        ) : (
          <>
            <Status tone={toneOf(status)}>{status}</Status>
            <span>
              {isLive(lease, nowMs) ? "by" : "last by"} <b>{lease.holder}</b>
            </span>
            <span class="numeric">
              fence <b>{shortFence(lease.fence)}</b>
            </span>
            {isLive(lease, nowMs) && (
              <span class="time-left numeric">
                <TimeLeft lease={lease} nowMs={nowMs} />
              </span>
            )}
          </>
        )}
      </div>
    </div>
  );
}

function Trouble({ detail: { state, error } }: { detail: LeaseDetail }) {
  if (state === "missing")
    return (
      <Banner tone="accent">Nothing was granted under this name, or its record was collected since.</Banner>
    );
  if (state === "damaged") {
    const why = error instanceof ProblemError ? (error.problem.recordDetail ?? "") : "";
    return (
      <Banner tone="bad" role="alert">
        Its record is damaged, so nobody can acquire it{why === "" ? "" : ` (${why})`}. Make sure that its
        last holder has stopped, then repair it.
      </Banner>
    );
  }
  return state === "failed" ? <Failed what="It" error={error} /> : null;
}
