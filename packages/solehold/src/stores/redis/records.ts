/** Reading and writing records: one script call for a batch. */
import type { LeaseKey, LeaseRecord } from "../../core/index.ts";
import type { ApplyReply, ConditionalWrite, ReadReply, WriteResult } from "../../store/index.ts";
import type { RedisData } from "./data.ts";
import { encodeValue, expectedStart, storedFrom, versionOf } from "./layout.ts";
import { READ, WAKE, WRITE } from "./scripts.ts";

export async function readRecords(data: RedisData, keys: readonly LeaseKey[]): Promise<ReadReply> {
  const redisKeys = keys.map((key) => data.layout.recordKey(key));
  const { storeTimeMs, serverChangedAtMs, items } = await data.read(READ, redisKeys, []);
  return { storeTimeMs, serverChangedAtMs, records: keys.map((key, index) => storedFrom(key, items[index])) };
}

export async function applyWrites(data: RedisData, writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
  const { layout } = data;
  const keys = [layout.indexKey, ...writes.map(({ key }) => layout.recordKey(key))];
  const args: string[] = [];
  let wakes = "";
  for (const { key, expected, next } of writes) {
    const wake = whomToWake(expected, next);
    wakes += wake;
    if (wake !== WAKE.nobody) keys.push(layout.queueKey(key));
    args.push(expectedStart(expected), encodeValue(next));
  }
  const reply = await data.run(WRITE, keys, [wakes, ...args], "unknown");
  const { storeTimeMs, serverChangedAtMs, write: number, items } = reply;
  const results: WriteResult[] = writes.map(({ next }) => ({
    kind: "applied",
    version: next === null ? null : versionOf(number, next),
  }));
  for (let at = 0; at < items.length; at += 2) {
    const index = Number(items[at]) - 1;
    const write = writes[index];
    if (write === undefined) throw new Error("the script replied to a write that was not asked for");
    results[index] = { kind: "conflict", current: storedFrom(write.key, items[at + 1]) };
  }
  return { storeTimeMs, serverChangedAtMs, results };
}

/** What is reserved for a successor concerns all who wait: the successor may be any of them. */
function whomToWake(expected: string | null, next: LeaseRecord | null): string {
  const isEnd = expected !== null && next?.state !== "held";
  if (!isEnd) return WAKE.nobody;
  return next?.handoff ? WAKE.all : WAKE.next;
}
