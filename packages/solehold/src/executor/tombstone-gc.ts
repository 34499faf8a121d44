/**
 * Collecting what nobody needs any more. A record may go when it ended longer ago than the retention: the fence of the
 * next grant comes from the store's time, so it is above the one that is deleted.
 *
 * The retention must be far longer than any request can live: a delayed write on the absence that a deletion leaves would
 * be applied. Where the store has no clock, nobody can say how long ago a record ended; where generations are counted, the
 * record is what the next one is counted from: in both cases all are kept. Records with a term above the base stay, too:
 * terms belong to long-lived writer slots, and a new grant would begin under the base term.
 */
import { endOfRecord, keyId, type LeaseRecord } from "../core/index.ts";
import { readClocks } from "../env/index.ts";
import { type LeaseStore, pagesOf, StoreError } from "../store/index.ts";
import type { ExecutorParts } from "./parts.ts";

export interface CollectionReport {
  readonly scanned: number;
  readonly deleted: number;
}

const PAGE_SIZE = 500;
/**
 * Listings leave these out unless they are asked for. Among them are tickets of processes that died, and approvals that
 * were used: their records end when the approval does, which is refused by its window from then on.
 */
const RESERVED_PREFIX = "$";

/** Why the ended records of this store stay for ever, in one sentence; null when they can be collected. */
export function collectionObstacle({ name, capabilities, list }: LeaseStore): string | null {
  if (!capabilities.conditionalDelete)
    return `the ${name} store cannot delete a record on condition of its version`;
  if (capabilities.clock === "none")
    return `the ${name} store has no clock, so nobody can say how long ago a record ended`;
  return list === undefined ? `the ${name} store cannot list its records` : null;
}

const COUNTED = "generations are counted from the last record: set policy.generations to clock";

/** One pass over a tenant. */
export async function collectTenant(tenant: string, parts: ExecutorParts): Promise<CollectionReport> {
  const { store, env, cache, calls, policy } = parts;
  const obstacle = collectionObstacle(store) ?? (policy.generations === "count" ? COUNTED : null);
  const { list } = store;
  if (obstacle !== null || list === undefined)
    throw new StoreError("config", `ended records are kept: ${obstacle}`, { outcome: "not-applied" });
  // The store's time comes with any answer.
  await calls.read({ tenant, name: "$time" });
  const now = readClocks(env);
  if (!cache.knowsTime(now)) {
    const message =
      "this machine slept while the store answered, so the store's time is not known: try again";
    throw new StoreError("timeout", message, { outcome: "not-applied" });
  }
  const nowMs = cache.time(now).earliestMs;
  let [scanned, deleted] = [0, 0];
  for (const prefix of ["", RESERVED_PREFIX]) {
    for await (const { records } of pagesOf(list, { tenant, prefix, limit: PAGE_SIZE })) {
      scanned += records.length;
      const ended = records.filter((record) => isCollectable(record, nowMs, parts));
      deleted += await deleteAll(ended, nowMs, parts);
    }
  }
  return { scanned, deleted };
}

function isCollectable(record: LeaseRecord, nowMs: number, parts: ExecutorParts): boolean {
  return record.term <= parts.policy.baseTerm && nowMs - endOfRecord(record) >= parts.retentionMs;
}

/** Each record is read again for its version, and goes only if it still is what was judged. */
async function deleteAll(
  records: readonly LeaseRecord[],
  nowMs: number,
  parts: ExecutorParts,
): Promise<number> {
  const { calls, cache } = parts;
  const outcomes = await Promise.all(
    records.map(async ({ key }): Promise<number> => {
      const { stored } = (await calls.read(key)).value;
      if (stored.kind !== "found" || !isCollectable(stored.record, nowMs, parts)) return 0;
      const { value } = await calls.write({ key, expected: stored.version, next: null });
      if (value.kind !== "applied") return 0;
      cache.forget(keyId(key));
      return 1;
    }),
  );
  return outcomes.reduce((sum, count) => sum + count, 0);
}
