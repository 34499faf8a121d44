/** This server: its replicas, its store and what that promises, its audit, and what an operator should know. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { durationInWords } from "solehold/browser";
import { Banner, Status, type Tone } from "../../ui/components.tsx";
import { get, messageOf, post, type Replicas, type Who } from "../data/api.ts";
import { grouped } from "../format.ts";

interface Finding {
  readonly id: string;
  readonly status: "ok" | "warn" | "fail" | "skip";
  readonly detail: string;
}

interface Facts {
  readonly version: string;
  readonly startedMs: number;
  readonly keysRequired: boolean;
  readonly store: Readonly<Record<string, string | number | boolean>>;
  readonly policy: Readonly<Record<string, number>>;
  readonly audit: Readonly<Record<string, string | number>>;
  readonly counts: Readonly<Record<string, number>>;
  readonly findings: readonly Finding[];
}

const LABELS: Readonly<Record<string, string>> = {
  name: "store",
  durable: "survives a crash",
  clock: "clock",
  clockGranularityMs: "clock resolution",
  clockSkewMs: "clock skew",
  clockJumps: "clock jumps",
  watch: "announces changes",
  list: "can list",
  conditionalDelete: "can delete safely",
  maxBatch: "keys in a call",
  defaultTtlMs: "usual ttl",
  minTtlMs: "shortest ttl",
  maxTtlMs: "longest ttl",
  graceMs: "grace",
  durability: "written",
  entries: "entries",
  lag: "waiting for the disk",
  dropped: "lost",
  liveLeases: "live leases",
  waiters: "waiting",
  watchers: "watches",
  streams: "streams",
};

export function ServerView({ who }: { who: Who }) {
  const [facts, setFacts] = useState<Facts | null>(null);
  const [{ replicas, self }, setKnown] = useState<Replicas>({ replicas: [], self: null });
  const [error, setError] = useState<unknown>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    get<Facts>("/v1/server", { round: undefined }, abort.signal).then(setFacts, (failure: unknown) => {
      if (!abort.signal.aborted) setError(failure);
    });
    get<Replicas>("/v1/replicas", {}, abort.signal).then(setKnown, () => undefined);
    return () => abort.abort();
  }, [round]);
  const totalWeight = replicas.reduce((total, { weight }) => total + weight, 0);
  return (
    <main class="view">
      <div class="view-head">
        <h1>Server</h1>
        <button type="button" class="button" onClick={() => setRound(round + 1)}>
          Refresh
        </button>
      </div>
      {error !== null && (
        <Banner tone="bad" role="alert">
          It cannot be shown: {messageOf(error)}.
        </Banner>
      )}
      {facts === null && error === null && <p class="muted">Loading…</p>}
      {facts !== null && (
        <>
          <p class="muted">
            Version {facts.version}, running for {durationInWords(Date.now() - facts.startedMs)}
          </p>
          <Card id="findings" title="Findings">
            <Findings findings={facts.findings} />
          </Card>
          <Doctor who={who} />
          <div class="cards">
            <Values id="store" title="Store" values={facts.store} />
            <Values id="policy" title="Leases may last" values={facts.policy} />
            <Values id="trail" title="Audit" values={facts.audit} />
            <Values id="counts" title="Now" values={facts.counts} />
          </div>
          <Card id="replicas" title="Replicas">
            <ul class="findings">
              {replicas.map(({ nodeId, url, weight }) => (
                <li key={nodeId}>
                  <Status tone="good">{nodeId}</Status>
                  <span>
                    {url}, home of {Math.round((weight / totalWeight) * 100)} % of all keys
                    {nodeId === self ? " (this one answers)" : ""}
                  </span>
                </li>
              ))}
              {replicas.length === 0 && <li class="muted">No replica is announced.</li>}
            </ul>
          </Card>
        </>
      )}
    </main>
  );
}

const TONES: { readonly [status in Finding["status"]]: Tone } = {
  ok: "good",
  warn: "warn",
  fail: "bad",
  skip: "ended",
};

function Findings({ findings }: { findings: readonly Finding[] }) {
  return (
    <ul class="findings">
      {findings.map(({ id, status, detail }) => (
        <li key={id} data-status={status}>
          <Status tone={TONES[status]}>{id}</Status>
          <span>{detail}</span>
        </li>
      ))}
    </ul>
  );
}

/** What `solehold doctor` does, on the server: it takes real leases, so somebody has to ask for it. */
function Doctor({ who }: { who: Who }) {
  const [findings, setFindings] = useState<readonly Finding[] | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const isAllowed = who.actions.includes("repair") && who.prefixes.includes("");
  const examine = (): void => {
    setBusy(true);
    setFailure(null);
    post<{ checks: readonly Finding[] }>("/v1/maintenance/doctor", {})
      .then(({ checks }) => setFindings(checks), setFailure)
      .finally(() => setBusy(false));
  };
  return (
    <section class="panel" aria-labelledby="doctor">
      <div class="section-head">
        <h2 id="doctor">Doctor</h2>
        <button
          type="button"
          class="button"
          onClick={examine}
          disabled={isBusy || !isAllowed}
          title={isAllowed ? undefined : "Needs a key that allows 'repair' on all names"}
        >
          {isBusy ? "Examining…" : "Examine the store"}
        </button>
      </div>
      <div role="status">
        {failure !== null && <p class="pad bad">It could not be examined: {messageOf(failure)}.</p>}
        {findings === null && failure === null && (
          <p class="pad muted">
            Tries with real leases, on keys of its own, whether the store keeps its promises: one of eight
            callers wins, fences grow, writes on an old version are refused, the clock runs at its rate. What{" "}
            <code>solehold doctor</code> does, from where this server is.
          </p>
        )}
        {findings !== null && <Findings findings={findings} />}
      </div>
    </section>
  );
}

export function Card({ id, title, children }: { id: string; title: string; children: ComponentChildren }) {
  return (
    <section class="panel" aria-labelledby={id}>
      <div class="section-head">
        <h2 id={id}>{title}</h2>
      </div>
      {children}
    </section>
  );
}

function Values({ id, title, values }: { id: string; title: string; values: Facts["store"] }) {
  const shown = (name: string, value: string | number | boolean): string => {
    if (typeof value === "number") return name.endsWith("Ms") ? durationInWords(value) : grouped(value);
    return value === true ? "yes" : value === false ? "no" : value;
  };
  return (
    <section class="panel record" aria-labelledby={id}>
      <div class="section-head">
        <h2 id={id}>{title}</h2>
      </div>
      <dl class="wide">
        {Object.entries(values).map(([name, value]) => (
          <div key={name}>
            <dt class="muted">{LABELS[name] ?? name}</dt>
            <dd class="numeric">{shown(name, value)}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
