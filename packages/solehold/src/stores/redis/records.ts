/** Reading and writing records: one script call for a batch. */
import type { LeaseKey } from "../../core/index.ts";
import type { ApplyReply, ConditionalWrite, ReadReply, WriteResult } from "../../store/index.ts";
import type { RedisData } from "./data.ts";
import { encodeValue, expectedStart, storedFrom } from "./layout.ts";
import { READ, WRITE } from "./scripts.ts";

export async function readRecords(data: RedisData, keys: readonly LeaseKey[]): Promise<ReadReply> {
  const redisKeys = keys.map((key) => data.layout.recordKey(key));
  const { items, ...reply } = await data.read(READ, redisKeys, []);
  return { ...reply, records: keys.map((key, index) => storedFrom(key, items[index])) };
}

/** `newVersion` never gives the same one twice, in no client. */
export async function applyWrites(
  data: RedisData,
  writes: readonly ConditionalWrite[],
  newVersion: () => string,
): Promise<ApplyReply> {
  const { layout } = data;
  const keys = [layout.indexKey, ...writes.map(({ key }) => layout.recordKey(key))];
  const args: string[] = [];
  const results: WriteResult[] = [];
  for (const write of writes) {
    const version = write.next === null ? null : newVersion();
    args.push(expectedStart(write.expected), encodeValue(write.next, version));
    results.push({ kind: "applied", version });
  }
  const { items, ...reply } = await data.write(WRITE, keys, args);
  for (let at = 0; at < items.length; at += 2) {
    const index = Number(items[at]) - 1;
    const [write, own] = [writes[index], results[index]];
    if (write === undefined) throw new Error("the script replied to a write that was not asked for");
    const current = storedFrom(write.key, items[at + 1]);
    // A request that was carried out twice finds its own write the second time.
    const isOwn = current.kind === "found" && own?.kind === "applied" && own.version === current.version;
    if (!isOwn) results[index] = { kind: "conflict", current };
  }
  return { ...reply, results };
}
