/** What was granted, denied and renewed in the last hour, and decisions as they are made. */

import { useEffect, useMemo, useState } from "preact/hooks";
import type { AuditEvent } from "solehold/browser";
import { Banner } from "../../ui/components.tsx";
import { get, messageOf, urlOf, type Who } from "../data/api.ts";
import { openStream } from "../data/events.ts";
import { EventLine } from "../lease/decisions.tsx";
import { Chart, type Series } from "./chart.tsx";

interface Bucket {
  readonly atMs: number;
  readonly grants: number;
  readonly takeovers: number;
  readonly expiries: number;
  readonly renewals: number;
  readonly renewalAge: number | null;
  readonly renewalAgeMost: number | null;
  readonly denials: Readonly<Record<string, number>>;
  readonly waiters: number;
  readonly liveLeases: number;
}

const FEED = 80;
const MOST_BUCKETS = 720;
const DENIAL_COLOURS = ["bad", "warn", "accent", "muted", "good"] as const;

export function ActivityView({ who }: { who: Who }) {
  const tenant = who.tenants?.[0] ?? "default";
  const [error, buckets] = useBuckets();
  const times = useMemo(() => buckets.map(({ atMs }) => atMs), [buckets]);
  const of = (pick: (bucket: Bucket) => number | null): readonly (number | null)[] => buckets.map(pick);
  const reasons = [...new Set(buckets.flatMap(({ denials }) => Object.keys(denials)))].slice(
    0,
    DENIAL_COLOURS.length,
  );
  const denials: readonly Series[] = reasons.map((reason, index) => ({
    label: reason
      .replace(/^LEASE_/, "")
      .replaceAll("_", " ")
      .toLowerCase(),
    colour: DENIAL_COLOURS[index] ?? "muted",
    values: of((bucket) => bucket.denials[reason] ?? 0),
  }));
  return (
    <main class="view">
      <h1>Activity</h1>
      {error !== null && (
        <Banner tone="warn">
          The charts need a key that allows 'metrics' in all tenants: {messageOf(error)}.
        </Banner>
      )}
      {error === null && buckets.length === 0 && (
        <p class="muted">The first figures come within a few seconds…</p>
      )}
      {buckets.length > 0 && (
        <div class="charts">
          <Chart
            title="Grants, every 5 s"
            times={times}
            series={[
              { label: "grants", colour: "accent", values: of(({ grants }) => grants) },
              { label: "takeovers", colour: "warn", values: of(({ takeovers }) => takeovers) },
              { label: "expiries", colour: "bad", values: of(({ expiries }) => expiries) },
            ]}
          />
          <Chart title="Denials by reason, every 5 s" times={times} series={denials} />
          <Chart
            title="How late renewals come, % of the ttl used up"
            times={times}
            series={[
              { label: "average", colour: "accent", values: of(({ renewalAge }) => percent(renewalAge)) },
              {
                label: "latest, at most",
                colour: "warn",
                values: of(({ renewalAgeMost }) => percent(renewalAgeMost)),
              },
            ]}
          />
          <Chart
            title="Waiting, and live leases"
            times={times}
            series={[
              { label: "waiting", colour: "warn", values: of(({ waiters }) => waiters) },
              { label: "live leases", colour: "accent", values: of(({ liveLeases }) => liveLeases) },
            ]}
          />
        </div>
      )}
      <Feed tenant={tenant} />
    </main>
  );
}

function percent(ratio: number | null): number | null {
  return ratio === null ? null : Math.round(ratio * 100);
}

/** The last hour, then one small answer for each new bucket. */
function useBuckets(): readonly [unknown, readonly Bucket[]] {
  const [buckets, setBuckets] = useState<readonly Bucket[]>([]);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    let lastMs = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const abort = new AbortController();
    const next = async (): Promise<void> => {
      let waitMs = 5_000;
      try {
        const query = { afterMs: lastMs };
        const reply = await get<{ bucketMs: number; buckets: readonly Bucket[] }>(
          "/v1/activity",
          query,
          abort.signal,
        );
        waitMs = reply.bucketMs;
        lastMs = reply.buckets.at(-1)?.atMs ?? lastMs;
        if (reply.buckets.length > 0)
          setBuckets((known) => [...known, ...reply.buckets].slice(-MOST_BUCKETS));
        setError(null);
      } catch (failure) {
        if (!abort.signal.aborted) setError(failure);
      }
      if (!abort.signal.aborted) timer = setTimeout(() => void next(), waitMs);
    };
    void next();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, []);
  return [error, buckets];
}

function Feed({ tenant }: { tenant: string }) {
  const [events, setEvents] = useState<readonly AuditEvent[]>([]);
  const [note, setNote] = useState("");
  useEffect(() => {
    const waiting: AuditEvent[] = [];
    const timer = setInterval(() => {
      if (waiting.length === 0) return;
      const newest = waiting.splice(0).reverse();
      setEvents((known) => [...newest, ...known].slice(0, FEED));
    }, 250);
    const stop = openStream({
      url: () => urlOf("/v1/audit/watch", { tenant, except: "renew,use" }),
      onEvent: ({ event, data }) => {
        if (event === "decided") waiting.push(JSON.parse(data) as AuditEvent);
        // Of a flood only the end is shown.
        if (waiting.length > FEED) waiting.shift();
      },
      onState: (state) => setNote(state === "reconnecting" ? "reconnecting…" : ""),
      onRefused: (error) => setNote(error.problem.detail),
    });
    return () => {
      stop();
      clearInterval(timer);
    };
  }, [tenant]);
  return (
    <section class="panel" aria-labelledby="feed">
      <div class="section-head">
        <h2 id="feed">Decisions, as they are made</h2>
        <span class="muted">{note}</span>
      </div>
      {events.length === 0 ? (
        <p class="muted pad">Nothing was decided since this page was opened.</p>
      ) : (
        <ol class="events">
          {events.map((event) => (
            <EventLine
              key={`${event.at} ${event.traceId} ${event.action} ${event.reason}`}
              event={event}
              withKey
            />
          ))}
        </ol>
      )}
    </section>
  );
}
