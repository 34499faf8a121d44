/**
 * Replacing a damaged record by a tombstone above every generation that was granted under it: by the store's time, or,
 * where generations are counted, by an operator's word.
 */
import {
  type LeaseKey,
  type LeasePolicy,
  type LeaseRecord,
  NO_TOKEN_HASH,
  nextGeneration,
} from "../core/index.ts";
import { type Env, randomId, readClocks } from "../env/index.ts";
import type { CallBatcher } from "./call-batcher.ts";
import type { RecordCache } from "./record-cache.ts";

/** False when the record is not damaged (any more), or somebody else was faster. */
export async function repairRecord(
  key: LeaseKey,
  generation: bigint,
  context: {
    readonly env: Env;
    readonly calls: CallBatcher;
    readonly cache: RecordCache;
    readonly policy: LeasePolicy;
  },
): Promise<boolean> {
  const { env, calls, cache, policy } = context;
  const { stored, revision } = (await calls.read(key)).value;
  if (stored.kind !== "corrupt") return false;
  const now = cache.time(readClocks(env));
  const floor = revision > generation ? revision : generation;
  const next = tombstone(
    key,
    nextGeneration({ record: null, floor }, now, policy),
    now.latestMs,
    randomId(env),
  );
  const written = await calls.write({ key, expected: stored.version, next });
  return written.value.kind === "applied";
}

/** A lease that ended just now: the next grant is above its generation. */
function tombstone(key: LeaseKey, generation: bigint, nowMs: number, nonce: string): LeaseRecord {
  return {
    key,
    holder: "solehold",
    purpose: "StateWrite",
    tokenHash: NO_TOKEN_HASH,
    term: 0n,
    generation,
    ttlMs: 1,
    grantedAtMs: nowMs,
    renewedAtMs: nowMs,
    expiresAtMs: nowMs,
    endedAtMs: nowMs,
    state: "released",
    renewals: 0,
    resumeRequired: false,
    breakAtMs: null,
    handoff: null,
    reservation: null,
    ticket: "",
    metadata: {},
    nonce,
    idempotency: null,
    note: "repaired",
  };
}
