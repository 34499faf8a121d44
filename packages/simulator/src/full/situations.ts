/** Watches a run for the situations that a thorough run must reach. It never objects. */
import { keyId, type LeaseRecord, recordFence } from "solehold/internal";
import { type Believer, isGrant, type Oracle, type OracleContext } from "../oracles/oracle.ts";

export function situations(context: OracleContext): Oracle {
  /** Who got a grant, by key and fence. */
  const grantedTo = new Map<string, string>();
  const collected = new Set<string>();
  const lastWriter = new Map<string, string>();
  const highest = new Map<string, bigint>();
  const throughServers = context.config.entry === "server";
  return {
    name: "situations",
    onWrite: (write) => {
      const { before, after, by, key } = write;
      const id = keyId(key);
      if (key.name.startsWith("$")) return;
      if (after === null) collected.add(id);
      const writer = by.split(".")[0] ?? by;
      if (throughServers && (lastWriter.get(id) ?? writer) !== writer)
        context.sometimes("two servers decided about one key");
      lastWriter.set(id, writer);
      if (after === null || !isGrant(write)) return;
      // A server writes for its clients: the holder's name is the client's.
      grantedTo.set(`${id}@${recordFence(after)}`, throughServers ? after.holder : by);
      const fence = recordFence(after);
      const isAfterLoss = recordFenceOf(before) < (highest.get(id) ?? 0n);
      if (isAfterLoss && !collected.has(id))
        context.sometimes("a key was granted again after its record was lost");
      highest.set(id, fence);
      if (before === null) {
        if (collected.has(id)) context.sometimes("a record was collected and its key granted again");
        return;
      }
      const last = context.machineOf(grantedTo.get(`${id}@${recordFence(before)}`) ?? "");
      if (before.state === "released" && before.handoff === null)
        context.sometimes("a released lease was taken at once");
      if (before.reservation !== null)
        context.sometimes(
          before.reservation.ticket === after.ticket
            ? "a released lease was kept for a waiter, who took it"
            : "a waiter did not come for what was kept, and another took it",
        );
      if (before.handoff !== null) {
        const toSuccessor = before.handoff.successor === after.holder;
        context.sometimes(
          toSuccessor
            ? "a handoff reached its successor"
            : "a handoff deadline passed and another took the lease",
        );
      }
      if (before.state === "revoked")
        context.sometimes("a revoked lease was claimed after its holder's time");
      if (before.state !== "held") return;
      context.sometimes("a lease was taken over after its holder ran out of time");
      if (context.config.storeClock === "none")
        context.sometimes("a lease was taken over by observation, without a clock");
      if (last?.frozen === true) context.sometimes("a lease was taken over while its last holder was frozen");
      const suspended = last !== null && last.suspendedUntilMs > context.nowMs() - context.config.ttlMs * 3;
      if (suspended) context.sometimes("a lease was taken over after its last holder was suspended");
    },
    onCallEnd: ({ outcome, request }) => {
      if (outcome?.kind === "unsettled" && outcome.outcome === "unknown")
        context.sometimes("a caller got an unknown outcome");
      if (throughServers && outcome?.kind === "applied" && request.op === "acquire") {
        const known = outcome.decision.replayed || outcome.decision.lease.renewals > 0;
        if (known && request.idempotencyKey === undefined)
          context.sometimes("a request that was sent again found its own grant");
      }
      if (outcome?.kind !== "refused") return;
      const { reason } = outcome.decision;
      if (reason === "RECORD_CORRUPT") context.sometimes("a damaged record was refused");
      if (reason === "FENCE_WENT_BACK") context.sometimes("a lost write was noticed");
      if (request.op === "renew" && reason === "LEASE_BREAKING") context.sometimes("a lease was broken");
    },
  };
}

function recordFenceOf(record: LeaseRecord | null): bigint {
  return record === null ? 0n : recordFence(record);
}

/** Why a holder's signal came. */
export function onLoss(context: OracleContext, believer: Believer, reason: unknown): void {
  const why = (reason as { readonly reason?: string }).reason;
  if (why === "unreachable" && believer.fence > 0n)
    context.sometimes("a lease was lost because the store did not answer");
}
