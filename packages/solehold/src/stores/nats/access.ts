/** Reading and writing records: all requests of a call are in flight at once, in one round trip. */
import { encodeRecord, isReservedName, type LeaseKey } from "../../core/index.ts";
import {
  ABSENT,
  type ApplyReply,
  type ConditionalWrite,
  type ReadReply,
  StoreError,
  type WriteResult,
} from "../contract.ts";
import { EXPECTED_SEQUENCE, type Joined, type NatsDataSet } from "./data-set.ts";
import { storeErrorFrom } from "./errors.ts";
import { parseVersion, storedFrom, toFollow, versionOf } from "./records.ts";
import { type KeptMessage, RefusedRequest, sequenceOf, WRONG_LAST_SEQUENCE } from "./replies.ts";

/** How often a deleted key may change hands while it is being created. */
const MAX_CREATE_ATTEMPTS = 5;
/** For a key that was created and deleted again each time it was looked at. */
const CONFLICT_WITH_NOTHING: WriteResult = Object.freeze({ kind: "conflict", current: ABSENT });

type Results = Map<ConditionalWrite, WriteResult>;

/** A write, and the sequence that the key's last message must have. */
interface Attempt {
  readonly write: ConditionalWrite;
  readonly sequence: number;
}

export async function readRecords(data: NatsDataSet, keys: readonly LeaseKey[]): Promise<ReadReply> {
  return readJoined(data, await data.join(), keys);
}

export async function applyWrites(
  data: NatsDataSet,
  writes: readonly ConditionalWrite[],
): Promise<ApplyReply> {
  const joined = await data.join();
  const done: Results = new Map();
  const doubtful = writes.filter((write) => isTooLow(data, write) || isSuspect(data, write));
  // Read before writing: once something was written, nothing may fail any more.
  if (doubtful.length > 0) await refuse(data, joined, doubtful, done);
  const attempts = writes
    .filter((write) => !done.has(write))
    .map((write) => ({ write, sequence: parseVersion(write.expected).sequence }));
  const { lost, storeTimeMs } = await attemptAll(data, joined, attempts, done);
  if (lost.length > 0) await settle(data, joined, lost, done);
  const results = writes.map((write) => done.get(write) ?? CONFLICT_WITH_NOTHING);
  const [first] = results;
  if (first?.kind === "unknown" && results.every(({ kind }) => kind === "unknown")) throw first.cause;
  return { storeTimeMs, results };
}

async function readJoined(data: NatsDataSet, joined: Joined, keys: readonly LeaseKey[]): Promise<ReadReply> {
  const { value, storeTimeMs } = await lastMessages(data, joined, keys);
  const records = keys.map((key, index) => {
    const kept = value[index] ?? null;
    if (kept?.isMarker === true) sweep(data, joined, key, kept, storeTimeMs);
    return storedFrom(key, kept, data.lineage, storeTimeMs);
  });
  return { storeTimeMs, records };
}

function lastMessages(data: NatsDataSet, joined: Joined, keys: readonly LeaseKey[]) {
  return data.call(joined, "not-applied", () =>
    Promise.all(keys.map((key) => data.last(joined, data.layout.recordSubject(joined.id, key)))),
  );
}

/**
 * A key is absent without its marker as well, so one that all watchers have heard of goes: the bucket does not
 * grow with the keys that were ever used. What followed the marker is not touched.
 */
function sweep(
  data: NatsDataSet,
  { wire, id }: Joined,
  key: LeaseKey,
  marker: KeptMessage,
  storeTimeMs: number,
): void {
  if (storeTimeMs - Number(marker.atMicros / 1_000n) < data.markerKeptMs) return;
  const filter = data.layout.recordSubject(id, key);
  const purge = JSON.stringify({ filter, seq: marker.sequence + 1 });
  // Nobody waits for it: one that fails is met again.
  wire.request(data.layout.api("STREAM.PURGE"), purge).catch(() => undefined);
}

/** Whether this is a new grant whose generation may have been handed out by data that is lost. */
function isTooLow({ lineage }: NatsDataSet, { key, expected, next }: ConditionalWrite): boolean {
  if (lineage.raised === 0n || next === null || isReservedName(key.name)) return false;
  if (next.generation > lineage.raised) return false;
  if (expected === null) return true;
  const before = parseVersion(expected).generation;
  return before !== null && before !== next.generation;
}

function isSuspect({ suspectUpTo }: NatsDataSet, { expected }: ConditionalWrite): boolean {
  if (suspectUpTo === 0 || expected === null) return false;
  const { sequence } = parseVersion(expected);
  return sequence > 0 && sequence <= suspectUpTo;
}

/** Notes the results of those writes that must not be sent. */
async function refuse(
  data: NatsDataSet,
  joined: Joined,
  writes: readonly ConditionalWrite[],
  done: Results,
): Promise<void> {
  const keys = writes.map(({ key }) => key);
  const { records } = await readJoined(data, joined, keys);
  for (const [index, write] of writes.entries()) {
    const current = records[index] ?? ABSENT;
    const expected = parseVersion(write.expected);
    const standing = parseVersion(current.kind === "absent" ? null : current.version);
    if (expected.sequence !== standing.sequence || expected.nonce !== standing.nonce) {
      done.set(write, { kind: "conflict", current });
    } else if (isTooLow(data, write)) {
      done.set(write, { kind: "conflict", current: toFollow(write.key, current, data.lineage.raised) });
    }
  }
}

/** Notes all results but those of writes that another version stood in the way of. */
async function attemptAll(
  data: NatsDataSet,
  joined: Joined,
  attempts: readonly Attempt[],
  done: Results,
): Promise<{ readonly lost: readonly Attempt[]; readonly storeTimeMs: number }> {
  const { value, storeTimeMs } = await data.call(joined, "unknown", () =>
    Promise.allSettled(attempts.map((attempt) => put(data, joined, attempt))),
  );
  const lost: Attempt[] = [];
  for (const [index, attempt] of attempts.entries()) {
    const { write } = attempt;
    const outcome = value[index];
    const reason: unknown = outcome?.status === "rejected" ? outcome.reason : null;
    if (outcome?.status === "fulfilled")
      done.set(write, {
        kind: "applied",
        version: write.next === null ? null : versionOf(outcome.value, write.next),
      });
    else if (reason instanceof RefusedRequest && reason.code === WRONG_LAST_SEQUENCE) lost.push(attempt);
    else done.set(write, { kind: "unknown", cause: storeErrorFrom(reason, data.address, "unknown") });
  }
  return { lost, storeTimeMs };
}

/** The sequence of the written message. */
async function put(
  data: NatsDataSet,
  { wire, id }: Joined,
  { write: { key, next }, sequence }: Attempt,
): Promise<number> {
  const subject = data.layout.recordSubject(id, key);
  const condition = { [EXPECTED_SEQUENCE]: String(sequence) };
  if (next !== null) return sequenceOf(await wire.request(subject, encodeRecord(next), condition));
  return sequenceOf(await wire.request(subject, "", { ...condition, "KV-Operation": "DEL" }));
}

/**
 * What stands in the way of writes that were refused. A key that was deleted is absent, but its marker has a
 * sequence: a write that wants an absent key is sent again with that.
 */
async function settle(
  data: NatsDataSet,
  joined: Joined,
  lost: readonly Attempt[],
  done: Results,
): Promise<void> {
  let open = lost;
  try {
    for (let attempt = 0; attempt < MAX_CREATE_ATTEMPTS && open.length > 0; attempt += 1)
      open = await settleOnce(data, joined, open, done);
  } catch (error) {
    // Other writes of the call are done: these fail alone, and their cause says whether they may be, too.
    const cause = error instanceof StoreError ? error : storeErrorFrom(error, data.address, "unknown");
    for (const { write } of open) if (!done.has(write)) done.set(write, { kind: "unknown", cause });
  }
}

/** Those that are still open. */
async function settleOnce(
  data: NatsDataSet,
  joined: Joined,
  open: readonly Attempt[],
  done: Results,
): Promise<readonly Attempt[]> {
  const keys = open.map(({ write }) => write.key);
  const { value, storeTimeMs } = await lastMessages(data, joined, keys);
  const again: Attempt[] = [];
  for (const [index, { write }] of open.entries()) {
    const kept = value[index] ?? null;
    const isGone = kept === null || kept.isMarker;
    const current = storedFrom(write.key, kept, data.lineage, storeTimeMs);
    if (isGone && parseVersion(write.expected).sequence === 0)
      again.push({ write, sequence: kept?.sequence ?? 0 });
    else done.set(write, { kind: "conflict", current });
  }
  return again.length === 0 ? again : (await attemptAll(data, joined, again, done)).lost;
}
