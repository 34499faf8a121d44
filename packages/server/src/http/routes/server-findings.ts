/** What there is to know about a server, and what of it an operator should look at; what has to be tried is the doctor's. Pure. */
import { type Check, collectionFinding, durabilityFinding } from "solehold/internal";
import { type Static, Type } from "typebox";
import { Closed, Count, Described, Fact, Text, Whole } from "../../protocol/schemas/kinds.ts";
import { CheckSchema } from "./doctor.ts";

export const ServerReply = Closed({
  version: Text("Of the server."),
  startedMs: Whole("Since when it runs, in ms since 1970."),
  keysRequired: Fact("Whether this server asks for API keys."),
  store: Described("What the store can do, and what it promises.", {
    name: Text("Which kind of store."),
    durable: Fact("Acknowledged writes survive a crash."),
    clock: Text("Where its time comes from: exact, reply or none."),
    clockGranularityMs: Count("The resolution of its time."),
    clockSkewMs: Count("How far apart the clocks of its machines may be."),
    watch: Fact("It announces the writes of other processes."),
    list: Fact("Its leases can be listed."),
    conditionalDelete: Fact("Ended records can be deleted safely."),
    maxBatch: Count("Keys in one call."),
    clockJumps: Count("How often its clock was seen to jump since the start."),
  }),
  policy: Described("The bounds of leases.", {
    defaultTtlMs: Count("The ttl of requests that name none."),
    minTtlMs: Count("Shorter ones are refused."),
    maxTtlMs: Count("Longer ones are refused."),
    graceMs: Count("How long before its end a lease is in its grace period."),
  }),
  audit: Described("The audit trail.", {
    durability: Text("When an entry is on the disk."),
    entries: Count("The last entry that is safe."),
    lag: Count("Entries that are not on the disk yet."),
    dropped: Count("Entries lost because the disk could not keep up."),
  }),
  counts: Described("What there is now.", {
    liveLeases: Count("Alive, in tenants used through this server."),
    waiters: Count("Requests in a wait queue."),
    watchers: Count("Open watches."),
    streams: Count("Open stream connections."),
  }),
  findings: Type.Array(CheckSchema, { description: "What an operator should know." }),
});
export type ServerFacts = Omit<Static<typeof ServerReply>, "findings">;

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
