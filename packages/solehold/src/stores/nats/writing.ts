/** Writing records: all writes of a call are in flight at once, each on condition of its own key's sequence. */
import { encodeRecord } from "../../core/index.ts";
import { ABSENT, type ConditionalWrite, StoreError, type WriteResult } from "../../store/index.ts";
import { endedAs } from "../support/failures.ts";
import { isConflict, storeErrorFrom } from "./errors.ts";
import type { NatsSession } from "./session.ts";

/** How often a deleted key may change hands while it is being created. */
const MAX_ROUNDS = 5;

/**
 * Rejects when every write failed: its error says whether any of them may have been done.
 *
 * An update that was done needs no look at the stream: its subject names the data, and only this data gave out the
 * sequence it expected. A create does, after it was acknowledged: in a bucket that was purged meanwhile it would be one
 * that nobody sees. So does what stands in the way of a write.
 */
export async function applyWrites(
  session: NatsSession,
  writes: readonly ConditionalWrite[],
): Promise<readonly WriteResult[]> {
  const results = await Promise.all(writes.map((write) => applyOne(session, write)));
  const { address } = session.data;
  if (writes.some(({ expected }) => expected === null) || results.some(({ kind }) => kind === "conflict"))
    await session.check().catch((error) => endedAs("unknown")(storeErrorFrom(error, address, "unknown")));
  const causes = results.flatMap((result) => (result.kind === "unknown" ? [result.cause] : []));
  if (causes.length > 0 && causes.length === writes.length)
    throw causes.find((cause) => cause instanceof StoreError && cause.outcome === "unknown") ?? causes[0];
  return results;
}

/** A deleted key is absent, but its marker has a sequence: a write that wants an absent key is sent again with that. */
async function applyOne(
  session: NatsSession,
  { key, expected, next }: ConditionalWrite,
): Promise<WriteResult> {
  const { address } = session.data;
  const text = next === null ? null : encodeRecord(next);
  let last = session.sequenceOf(expected);
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    try {
      const sequence = await session.put(key, text, last);
      return { kind: "applied", version: next === null ? null : session.versionOf(sequence) };
    } catch (error) {
      if (!isConflict(error)) return { kind: "unknown", cause: storeErrorFrom(error, address, "unknown") };
    }
    try {
      const message = await session.last(key);
      const current = session.stored(key, message);
      if (current.kind !== "absent" && current.version === expected) return underWay(address);
      if (current.kind !== "absent" || expected !== null) return { kind: "conflict", current };
      last = message?.seq ?? 0;
    } catch (error) {
      return { kind: "unknown", cause: storeErrorFrom(error, address, "not-applied") };
    }
  }
  // Created and deleted again each time it was looked at.
  return { kind: "conflict", current: ABSENT };
}

/** With replicas a write is refused while another one to its key is under way, whose outcome nobody knows yet. */
function underWay(address: string): WriteResult {
  const message = `NATS at ${address}: another write to the key was under way: try again`;
  return { kind: "unknown", cause: new StoreError("unreachable", message, { outcome: "not-applied" }) };
}
