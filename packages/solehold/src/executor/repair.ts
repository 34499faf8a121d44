/**
 * Replacing a damaged record by a tombstone above every generation that was granted under it: by the store's time, or,
 * where generations are counted, by an operator's word.
 */
import { type LeaseKey, nextGeneration, systemRecord } from "../core/index.ts";
import { randomId, readClocks } from "../env/index.ts";
import type { LeaseStore } from "../store/index.ts";
import type { ExecutorParts } from "./parts.ts";

const MICROSECONDS_PER_MS = 1_000n;

/** False when the record is not damaged (any more), or somebody else was faster. */
export async function repairRecord(
  key: LeaseKey,
  generation: bigint,
  { env, calls, cache, policy }: ExecutorParts,
): Promise<boolean> {
  const { stored, revision } = (await calls.read(key)).value;
  if (stored.kind !== "corrupt") return false;
  const now = cache.time(readClocks(env));
  const floor = revision > generation ? revision : generation;
  // A lease that ended just now: the next grant is above its generation.
  const next = systemRecord({
    key,
    holder: "solehold",
    generation: nextGeneration({ record: null, floor }, now, policy),
    writtenAtMs: now.latestMs,
    endedAtMs: now.latestMs,
    nonce: randomId(env),
    note: "repaired",
  });
  const written = await calls.write({ key, expected: stored.version, next });
  return written.value.kind === "applied";
}

/**
 * A generation above all that were ever granted: the store's time in microseconds, which grants count from, too, and
 * which is far above any count. Null where the store has no clock: then somebody has to know it.
 */
export function repairGeneration(executor: {
  readonly store: LeaseStore;
  storeNowMs(): number;
}): bigint | null {
  if (executor.store.capabilities.clock === "none") return null;
  return BigInt(Math.ceil(executor.storeNowMs())) * MICROSECONDS_PER_MS;
}
