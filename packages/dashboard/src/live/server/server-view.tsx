/** This server: its replicas, its store and what that promises, its audit, and what an operator should know. */

import { useState } from "preact/hooks";
import { durationInWords } from "solehold/browser";
import { Facts, Panel, Status, type Tone } from "../../ui/components.tsx";
import { useAction, useAnswer } from "../../ui/use-answer.ts";
import { Failed } from "../components.tsx";
import { get, messageOf, post, type Replicas, type Who } from "../data/api.ts";
import { grouped } from "../format.ts";

interface Finding {
  readonly id: string;
  readonly status: "ok" | "warn" | "fail" | "skip";
  readonly detail: string;
}

interface ServerFacts {
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
  const [round, setRound] = useState(0);
  const { answer: facts, error } = useAnswer((signal) => get<ServerFacts>("/v1/server", {}, signal), [round]);
  const { answer: known } = useAnswer((signal) => get<Replicas>("/v1/replicas", {}, signal), [round]);
  return (
    <main class="view">
      <div class="view-head">
        <h1>Server</h1>
        <button type="button" class="button" onClick={() => setRound(round + 1)}>
          Refresh
        </button>
      </div>
      <Failed what="The server" error={error} />
      {facts === null && error === null && <p class="muted">Loading…</p>}
      {facts !== null && (
        <>
          <p class="muted">
            Version {facts.version}, running for {durationInWords(Date.now() - facts.startedMs)}
          </p>
          <Panel id="findings" title="Findings">
            <Findings findings={facts.findings} />
          </Panel>
          <Doctor who={who} />
          <div class="cards">
            <Values id="store" title="Store" values={facts.store} />
            <Values id="policy" title="Leases may last" values={facts.policy} />
            <Values id="trail" title="Audit" values={facts.audit} />
            <Values id="counts" title="Now" values={facts.counts} />
            {known !== null && <ReplicaList {...known} />}
          </div>
        </>
      )}
    </main>
  );
}

function ReplicaList({ replicas, self }: Replicas) {
  const total = replicas.reduce((sum, { weight }) => sum + weight, 0);
  return (
    <Panel id="replicas" title="Replicas">
      <ul class="findings">
        {replicas.map(({ nodeId, url, weight }) => (
          <li key={nodeId}>
            <Status tone="good">{nodeId}</Status>
            <span>
              {url}, home of {Math.round((weight / total) * 100)} % of all keys
              {nodeId === self ? " (this one answers)" : ""}
            </span>
          </li>
        ))}
        {replicas.length === 0 && <li class="muted">No replica is announced.</li>}
      </ul>
    </Panel>
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
  const { answer, error, isBusy, run } = useAction(() =>
    post<{ checks: readonly Finding[] }>("/v1/maintenance/doctor", {}),
  );
  const isAllowed = who.actions.includes("repair") && who.prefixes.includes("");
  return (
    <Panel
      id="doctor"
      title="Doctor"
      aside={
        <button
          type="button"
          class="button"
          onClick={() => run()}
          disabled={isBusy || !isAllowed}
          title={isAllowed ? undefined : "Needs a key that allows 'repair' on all names"}
        >
          {isBusy ? "Examining…" : "Examine the store"}
        </button>
      }
    >
      <div role="status">
        {error !== null && <p class="pad bad">It could not be examined: {messageOf(error)}.</p>}
        {answer === null && error === null && (
          <p class="pad muted">
            Tries with real leases, on keys of its own, whether the store keeps its promises: one of eight
            callers wins, fences grow, writes on an old version are refused, the clock runs at its rate. What{" "}
            <code>solehold doctor</code> does, from where this server is.
          </p>
        )}
        {answer !== null && <Findings findings={answer.checks} />}
      </div>
    </Panel>
  );
}

function Values({ id, title, values }: { id: string; title: string; values: ServerFacts["store"] }) {
  const shown = (name: string, value: string | number | boolean): string => {
    if (typeof value === "number") return name.endsWith("Ms") ? durationInWords(value) : grouped(value);
    return value === true ? "yes" : value === false ? "no" : value;
  };
  const facts = Object.entries(values).map(
    ([name, value]) => [LABELS[name] ?? name, shown(name, value)] as const,
  );
  return (
    <Panel id={id} title={title}>
      <Facts facts={facts} kind="wide lines" />
    </Panel>
  );
}
