/** What was granted, denied and renewed in the last hour, and decisions as they are made. */

import { useEffect, useMemo, useState } from "preact/hooks";
import type { AuditEvent } from "solehold/browser";
import { Banner, Panel } from "../../ui/components.tsx";
import { ConnectionLost } from "../components.tsx";
import { get, ProblemError, queryAudit, urlOf } from "../data/api.ts";
import { openStream, type StreamState } from "../data/events.ts";
import { reasonLabel } from "../format.ts";
import { EventLine } from "../lease/decisions.tsx";
import { type Bucket, pointsOf } from "./buckets.ts";
import { Chart, type Series } from "./chart.tsx";

const FEED = 80;
const FIRST_DECISIONS = 25;
const MOST_BUCKETS = 720;
const MOST_POINTS = 90;
const BUCKET_MS = 5_000;
const DENIAL_COLOURS = ["bad", "warn", "accent", "muted", "good"] as const;

export function ActivityView({ tenant }: { tenant: string }) {
  const [refusal, stream, buckets] = useBuckets();
  const points = useMemo(() => pointsOf(buckets, BUCKET_MS, MOST_POINTS), [buckets]);
  const times = useMemo(() => points.map(({ atMs }) => atMs), [points]);
  const of = (pick: (point: Bucket) => number | null): readonly (number | null)[] => points.map(pick);
  const reasons = [...new Set(points.flatMap(({ denials }) => Object.keys(denials)))].slice(
    0,
    DENIAL_COLOURS.length,
  );
  const denials: readonly Series[] = reasons.map((reason, index) => ({
    label: reasonLabel(reason),
    colour: DENIAL_COLOURS[index] ?? "muted",
    values: of((point) => point.denials[reason] ?? 0),
  }));
  return (
    // It scrolls and has nothing in it that takes the focus.
    <main class="view" tabIndex={0}>
      <h1>Activity</h1>
      <ConnectionLost stream={stream} />
      {refusal !== null && (
        <Banner tone="accent">The charts need a key that allows 'metrics' in all tenants.</Banner>
      )}
      {refusal === null && buckets.length === 0 && (
        <p class="muted">The first figures come within a few seconds…</p>
      )}
      {buckets.length > 0 && (
        <div class="charts">
          <Chart
            title="Grants a minute"
            times={times}
            series={[
              { label: "grants", colour: "accent", values: of(({ grants }) => grants) },
              { label: "takeovers", colour: "warn", values: of(({ takeovers }) => takeovers) },
              { label: "expiries", colour: "bad", values: of(({ expiries }) => expiries) },
            ]}
          />
          <Chart title="Denials a minute, by reason" times={times} series={denials} />
          <Chart
            title="How late renewals come"
            unit="%"
            times={times}
            series={[
              {
                label: "of the ttl used up, on average",
                colour: "accent",
                values: of(({ renewalAge }) => percent(renewalAge)),
              },
              {
                label: "at most",
                colour: "warn",
                values: of(({ renewalAgeMost }) => percent(renewalAgeMost)),
              },
            ]}
          />
          <Chart
            title="Live leases, and who waits"
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

/** The last hour, then one small answer for each new bucket; nothing more after a refusal. */
function useBuckets(): readonly [ProblemError | null, StreamState, readonly Bucket[]] {
  const [buckets, setBuckets] = useState<readonly Bucket[]>([]);
  const [refusal, setRefusal] = useState<ProblemError | null>(null);
  const [stream, setStream] = useState<StreamState>("connecting");
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
        setStream("open");
      } catch (error) {
        if (abort.signal.aborted) return;
        if (error instanceof ProblemError && error.problem.status === 403) return setRefusal(error);
        setStream("reconnecting");
      }
      if (!abort.signal.aborted) timer = setTimeout(() => void next(), waitMs);
    };
    void next();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, []);
  return [refusal, stream, buckets];
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
    const query = { tenant, except: "renew,use", order: "newest-first", limit: FIRST_DECISIONS };
    const abort = new AbortController();
    queryAudit(query, abort.signal).then(
      // What the stream has brought meanwhile stands above.
      (recent) => setEvents((known) => (known.length > 0 ? known : recent)),
      () => undefined,
    );
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
      abort.abort();
      clearInterval(timer);
    };
  }, [tenant]);
  return (
    <Panel id="feed" title="Decisions, as they are made" aside={<span class="muted">{note}</span>}>
      {events.length === 0 ? (
        <p class="muted pad">Nothing was decided yet.</p>
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
    </Panel>
  );
}
