/** Reading and writing records: one script call each, unless something is damaged. */
import { isReservedName, type LeaseKey, type LeaseRecord } from "../../core/index.ts";
import {
  ABSENT,
  type ApplyReply,
  type ConditionalWrite,
  type ReadReply,
  type StoredRecord,
  type WriteResult,
} from "../../store/index.ts";
import { ENDED, HELD } from "./announcement.ts";
import type { RedisDataSet, SentWrite, TimeWish } from "./data-set.ts";
import { generationAfter, generationOfVersion, headerOfVersion, isVersionOfRecord } from "./layout.ts";
import { inspectedFrom, mustFollow, storedFrom } from "./records.ts";
import { INSPECT, READ } from "./scripts.ts";
import { type Extent, encodeExtent, extentOf, headerOf } from "./value.ts";

/** Damage whose version could not be asked for: enough to say that the write lost. */
const UNREADABLE: StoredRecord = { kind: "corrupt", version: "!", detail: "it could not be read" };

export async function readRecords(data: RedisDataSet, keys: readonly LeaseKey[]): Promise<ReadReply> {
  const redisKeys = keys.map((key) => data.layout.recordKey(key));
  const { storeTimeMs, items } = await data.run(READ, redisKeys, [], "not-applied");
  const records = keys.map((key, index) => storedFrom(key, items[index], data.lineage, storeTimeMs));
  return { storeTimeMs, records: await withDamageInspected(data, keys, records) };
}

/** A value that came with news. Null where what stands in Redis is shown in another way, for which its time is needed. */
export function announcedRecord(data: RedisDataSet, key: LeaseKey, value: string): StoredRecord | null {
  return data.isJoined && data.lineage.raised === 0n ? storedFrom(key, value, data.lineage, 0) : null;
}

export function applyWrites(data: RedisDataSet, writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
  return data.isJoined && data.lineage.raised === 0n
    ? sendWrites(data, writes)
    : applyAfterLoss(data, writes);
}

/** As long as no write can have been lost this only joins the data; otherwise it looks before it writes. */
async function applyAfterLoss(data: RedisDataSet, writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
  // What had to wait for a connection may be a renewal from before the loss, of a lease that is over by now.
  const isLate = !data.isJoined;
  if (isLate) await data.join();
  const { lineage } = data;
  const { raised } = lineage;
  const doubtful = writes.filter((write) => isOld(write, raised) && (isLate || isNewGrant(write)));
  if (doubtful.length === 0) return sendWrites(data, writes);
  // Read before writing: once something was written, nothing may fail any more.
  const { records } = await readRecords(
    data,
    doubtful.map(({ key }) => key),
  );
  // What is sent below goes out in this turn, to the data whose lineage was looked at, or not at all.
  if (!data.isJoined || data.lineage !== lineage) return applyWrites(data, writes);
  const refused = new Map<ConditionalWrite, WriteResult>();
  for (const [index, write] of doubtful.entries()) {
    const refusal = refusalOf(write, records[index] ?? ABSENT, raised);
    if (refusal !== null) refused.set(write, refusal);
  }
  // What was refused shows what others wrote, and nobody may judge that by a time that is older.
  const sent = await sendWrites(
    data,
    writes.filter((write) => !refused.has(write)),
    "needed",
  );
  const applied = sent.results.values();
  const results = writes.flatMap((write) => refused.get(write) ?? applied.next().value ?? []);
  return { storeTimeMs: sent.storeTimeMs, results };
}

/** Whether its generation may have been handed out by data that is lost. */
function isOld({ key, next }: ConditionalWrite, raised: bigint): boolean {
  return next !== null && next.generation <= raised && !isReservedName(key.name);
}

function isNewGrant({ expected, next }: ConditionalWrite): boolean {
  if (expected === null) return true;
  const before = generationOfVersion(expected);
  return before !== null && before !== next?.generation;
}

/** Null for a write that continues what stands there. A lease that is over is shown with a raised generation. */
function refusalOf(write: ConditionalWrite, stored: StoredRecord, raised: bigint): WriteResult | null {
  const { key, expected } = write;
  const version = stored.kind === "absent" ? null : stored.version;
  const asExpected = headerOfVersion(version) === headerOfVersion(expected);
  if (!asExpected) return { kind: "conflict", current: stored };
  if (isNewGrant(write)) return { kind: "conflict", current: mustFollow(key, stored, raised) };
  return version === expected ? null : { kind: "conflict", current: stored };
}

/** One call, sent in this turn. */
function sendWrites(
  data: RedisDataSet,
  writes: readonly ConditionalWrite[],
  time: TimeWish = "unless told just now",
): Promise<ApplyReply> {
  const { layout } = data;
  const [first] = writes;
  if (first !== undefined && writes.length === 1 && isEnd(first)) return sendEnd(data, first, time);
  const keys: string[] = [];
  const args = [""];
  const versions: (string | null)[] = [];
  let replacements = 0;
  let headers = "";
  let letters = "";
  for (const write of writes) {
    const { next } = write;
    keys.push(layout.recordKey(write.key));
    headers += headerOfVersion(write.expected);
    if (next === null) {
      versions.push(null);
      letters += ENDED;
      args.push("");
    } else {
      const extent = extentToSend(data, write.replaces, next);
      const generation = generationAfter(write.expected, next, extent);
      if (isVersionOfRecord(write.expected)) replacements += 1;
      versions.push(headerOf(next.nonce) + generation);
      letters += next.state === "held" ? HELD : ENDED;
      args.push(encodeExtent(next, extent, generation));
    }
  }
  args[0] = headers + letters;
  if (replacements < writes.length) keys.push(layout.indexKey);
  return answer(data, writes, versions, data.write(keys, args, time));
}

/** After a loss records are shown otherwise than they stand in Redis: then nothing that stands there can be kept. */
function extentToSend(data: RedisDataSet, before: LeaseRecord | null | undefined, next: LeaseRecord): Extent {
  return before === null || before === undefined || data.lineage.raised > 0n ? "all" : extentOf(before, next);
}

/** A lone write after which the next in line may have the key. What is reserved for somebody is told to all. */
function isEnd(write: ConditionalWrite): write is ConditionalWrite & { expected: string; next: LeaseRecord } {
  const { expected, next } = write;
  return next !== null && next.state !== "held" && next.handoff === null && isVersionOfRecord(expected);
}

/** Whoever is next in line for the key is told. */
function sendEnd(
  data: RedisDataSet,
  write: ConditionalWrite & { readonly next: LeaseRecord },
  time: TimeWish,
): Promise<ApplyReply> {
  const { key, expected, next } = write;
  const extent = extentToSend(data, write.replaces, next);
  const generation = generationAfter(expected, next, extent);
  const keys = [data.layout.recordKey(key), data.layout.lineKey(key)];
  const args = [headerOfVersion(expected), encodeExtent(next, extent, generation)];
  const versions = [headerOf(next.nonce) + generation];
  return answer(data, [write], versions, data.write(keys, args, time, data.ending));
}

function answer(
  data: RedisDataSet,
  writes: readonly ConditionalWrite[],
  versions: readonly (string | null)[],
  { sentMs, reply }: SentWrite,
): Promise<ApplyReply> {
  return reply.then((said) => {
    const { storeTimeMs, items } = data.understandWrite(said, sentMs);
    const results: WriteResult[] = [];
    for (const version of versions) results.push({ kind: "applied", version });
    if (storeTimeMs === null || items.length === 0) return { storeTimeMs, results };
    return noteConflicts(data, writes, items, storeTimeMs, results).then(() => ({ storeTimeMs, results }));
  });
}

/** `items` alternate between the number of a write, from one, and what stands in its way. */
async function noteConflicts(
  data: RedisDataSet,
  writes: readonly ConditionalWrite[],
  items: readonly unknown[],
  storeTimeMs: number,
  results: WriteResult[],
): Promise<void> {
  const numbers = items.filter((_, index) => index % 2 === 0).map((number) => Number(number) - 1);
  const lost = numbers.flatMap((number) => writes[number] ?? []);
  const keys = lost.map(({ key }) => key);
  const seen = lost.map(({ key }, index) => storedFrom(key, items[index * 2 + 1], data.lineage, storeTimeMs));
  const current = await withDamageInspected(data, keys, seen).catch(() => seen);
  for (const [index, number] of numbers.entries()) {
    const stored = current[index] ?? UNREADABLE;
    const next = lost[index]?.next ?? null;
    // A client library may have sent the request twice: what stands in the way is then the write itself.
    const isOwn = next !== null && stored.kind === "found" && stored.record.nonce === next.nonce;
    if (!isOwn) results[number] = { kind: "conflict", current: stored };
  }
}

/** Fills the gaps that damaged values left, with the version that the server computes of them. */
async function withDamageInspected(
  data: RedisDataSet,
  keys: readonly LeaseKey[],
  records: readonly (StoredRecord | null)[],
): Promise<readonly StoredRecord[]> {
  if (!records.includes(null)) return records as readonly StoredRecord[];
  const damaged = keys.filter((_, index) => records[index] === null);
  const redisKeys = damaged.map((key) => data.layout.recordKey(key));
  const { storeTimeMs, items } = await data.run(INSPECT, redisKeys, [], "not-applied");
  const inspected = damaged
    .map((key, index) =>
      inspectedFrom(key, items[index * 2], String(items[index * 2 + 1]), data.lineage, storeTimeMs),
    )
    .values();
  return records.map((record) => record ?? inspected.next().value ?? ABSENT);
}
