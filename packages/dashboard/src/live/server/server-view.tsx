/** This server: its replicas, its store and what that promises, its audit, and what an operator should know. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { durationInWords } from "solehold/browser";
import { Banner, Status } from "../../ui/components.tsx";
import { get, messageOf } from "../data/api.ts";
import { grouped } from "../format.ts";

interface Facts {
  readonly version: string;
  readonly startedMs: number;
  readonly keysRequired: boolean;
  readonly store: Readonly<Record<string, string | number | boolean>>;
  readonly policy: Readonly<Record<string, number>>;
  readonly audit: Readonly<Record<string, string | number>>;
  readonly counts: Readonly<Record<string, number>>;
  readonly findings: readonly {
    readonly id: string;
    readonly status: "ok" | "warn";
    readonly detail: string;
  }[];
}

interface Replica {
  readonly nodeId: string;
  readonly url: string;
  readonly weight: number;
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

export function ServerView() {
  const [facts, setFacts] = useState<Facts | null>(null);
  const [replicas, setReplicas] = useState<readonly Replica[]>([]);
  const [error, setError] = useState<unknown>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    get<Facts>("/v1/server", { round: undefined }, abort.signal).then(setFacts, (failure: unknown) => {
      if (!abort.signal.aborted) setError(failure);
    });
    get<{ replicas: readonly Replica[] }>("/v1/replicas", {}, abort.signal).then(
      (reply) => setReplicas(reply.replicas),
      () => undefined,
    );
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
            <ul class="findings">
              {facts.findings.map(({ id, status, detail }) => (
                <li key={id}>
                  <Status tone={status === "ok" ? "good" : "warn"}>{id}</Status>
                  <span>{detail}</span>
                </li>
              ))}
            </ul>
          </Card>
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
