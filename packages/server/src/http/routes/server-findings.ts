/** What an operator should know about a server, from facts alone; what has to be tried is the doctor's. Pure. */
import { type Check, collectionFinding, durabilityFinding } from "solehold/internal";

export interface ServerFacts {
  readonly version: string;
  readonly startedMs: number;
  readonly keysRequired: boolean;
  readonly store: {
    readonly name: string;
    readonly durable: boolean;
    readonly clock: string;
    readonly clockGranularityMs: number;
    readonly clockSkewMs: number;
    readonly watch: boolean;
    readonly list: boolean;
    readonly conditionalDelete: boolean;
    readonly maxBatch: number;
    readonly clockJumps: number;
  };
  readonly policy: {
    readonly defaultTtlMs: number;
    readonly minTtlMs: number;
    readonly maxTtlMs: number;
    readonly graceMs: number;
  };
  readonly audit: {
    readonly durability: string;
    readonly entries: number;
    readonly lag: number;
    readonly dropped: number;
  };
  readonly counts: {
    readonly liveLeases: number;
    readonly waiters: number;
    readonly watchers: number;
    readonly streams: number;
  };
}

/** `obstacle`: why ended records are not deleted; null where they are. */
export function findingsOf(facts: ServerFacts, obstacle: string | null): readonly Check[] {
  const { store, audit, keysRequired } = facts;
  const finding = (id: string, isFine: boolean, fine: string, problem: string): Check =>
    isFine ? { id, status: "ok", detail: fine } : { id, status: "warn", detail: problem };
  return [
    { id: "durability", ...durabilityFinding(store.durable) },
    finding(
      "clock",
      store.clockJumps === 0,
      "the store's clock was not seen to jump",
      `the store's clock jumped ${store.clockJumps} times since the start: look at its time synchronisation`,
    ),
    finding(
      "notifications",
      store.watch,
      "the store announces changes",
      "the store does not announce changes: watchers here see only what passes through this server",
    ),
    { id: "collection", ...collectionFinding(obstacle, "ended records are deleted a day after their end") },
    auditFinding(audit),
    finding(
      "access",
      keysRequired,
      "every request needs an API key",
      "no API keys: it answers to everybody on this machine; 'solehold keys add' makes the first one",
    ),
  ];
}

function auditFinding({ durability, dropped }: ServerFacts["audit"]): Check {
  if (dropped > 0 && durability !== "memory")
    return {
      id: "audit",
      status: "warn",
      detail: `${dropped} entries were lost: the disk could not keep up`,
    };
  if (durability === "before-reply")
    return { id: "audit", status: "ok", detail: "an entry is on the disk before its answer leaves" };
  const detail =
    durability === "memory"
      ? "the audit is in memory: it ends with this process"
      : "the audit is written in the background: a crash may lose the last entries";
  return { id: "audit", status: "warn", detail };
}
