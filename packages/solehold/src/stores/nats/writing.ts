/** Writing records: all writes of a call are in flight at once, each on condition of its own key's sequence. */
import { encodeRecord } from "../../core/index.ts";
import { ABSENT, type ConditionalWrite, StoreError, type WriteResult } from "../../store/index.ts";
import { isConflict, storeErrorFrom, unknownError } from "./errors.ts";
import { readMessages } from "./reading.ts";
import type { NatsSession } from "./session.ts";

/** How often a deleted key may change hands while it is being created. */
const MAX_ROUNDS = 5;

/** A write, and the sequence that the key's last message must have. */
interface Attempt {
  readonly write: ConditionalWrite;
  readonly expected: number;
}

type Results = Map<ConditionalWrite, WriteResult>;

/** Rejects when every write failed: its error says whether any of them may have been done. */
export async function applyWrites(
  session: NatsSession,
  writes: readonly ConditionalWrite[],
): Promise<readonly WriteResult[]> {
  const results: Results = new Map();
  let open = writes.map((write): Attempt => ({ write, expected: session.sequenceOf(write.expected) }));
  for (let round = 0; round < MAX_ROUNDS && open.length > 0; round += 1) {
    const refused = await send(session, open, results);
    open = refused.length === 0 ? refused : await settle(session, refused, results);
  }
  const failures = [...results.values()].flatMap((result) =>
    result.kind === "unknown" ? [result.cause] : [],
  );
  if (failures.length > 0 && failures.length === writes.length) {
    throw failures.find((cause) => cause instanceof StoreError && cause.outcome === "unknown") ?? failures[0];
  }
  // Without a result: the key was created and deleted again each time it was looked at.
  return writes.map((write) => results.get(write) ?? { kind: "conflict", current: ABSENT });
}

/**
 * Notes all results but those of the writes that were refused because another version is current. An update that was
 * done needs no look at the stream: its subject names the data, and only this data gave out the sequence it expected.
 * A create does, after it was acknowledged: in a bucket that was purged meanwhile it would be one that nobody sees.
 */
async function send(
  session: NatsSession,
  attempts: readonly Attempt[],
  results: Results,
): Promise<Attempt[]> {
  const { address } = session.data;
  const outcomes = await Promise.allSettled(
    attempts.map(({ write: { key, next }, expected }) =>
      session.put(key, next === null ? null : encodeRecord(next), expected),
    ),
  );
  if (attempts.some(({ write }) => write.expected === null)) {
    await session.check().catch((error: unknown) => {
      throw unknownError(error, address);
    });
  }
  return attempts.filter(({ write }, index) => {
    const outcome = outcomes[index];
    if (outcome?.status === "fulfilled") {
      const version = write.next === null ? null : session.versionOf(outcome.value);
      results.set(write, { kind: "applied", version });
      return false;
    }
    if (isConflict(outcome?.reason)) return true;
    results.set(write, { kind: "unknown", cause: storeErrorFrom(outcome?.reason, address, "unknown") });
    return false;
  });
}

/**
 * Notes what stands in the way of writes that were refused. A deleted key is absent, but its marker has a sequence: a
 * write that wants an absent key is attempted again with that.
 */
async function settle(
  session: NatsSession,
  refused: readonly Attempt[],
  results: Results,
): Promise<Attempt[]> {
  const { address } = session.data;
  try {
    const keys = refused.map(({ write }) => write.key);
    const { messages } = await readMessages(session, keys);
    return refused.flatMap(({ write }, index) => {
      const message = messages[index] ?? null;
      const current = session.stored(write.key, message);
      if (current.kind === "absent" && write.expected === null)
        return [{ write, expected: message?.seq ?? 0 }];
      const isCurrent = current.kind !== "absent" && current.version === write.expected;
      results.set(write, isCurrent ? underWay(address) : { kind: "conflict", current });
      return [];
    });
  } catch (error) {
    const cause = storeErrorFrom(error, address, "not-applied");
    for (const { write } of refused) results.set(write, { kind: "unknown", cause });
    return [];
  }
}

/** With replicas a write is refused while another one to its key is under way, whose outcome nobody knows yet. */
function underWay(address: string): WriteResult {
  const message = `NATS at ${address}: another write to the key was under way: try again`;
  return { kind: "unknown", cause: new StoreError("unreachable", message, { outcome: "not-applied" }) };
}
