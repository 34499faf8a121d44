/**
 * Collecting what nobody needs any more, without ever lowering a fence.
 *
 * A record may go when it ended longer ago than the retention. Before it goes, its tenant's floor must
 * cover its generation, and must have done so for a whole retention: a writer that still works with an
 * older floor, or with an absence it saw before, has long given up by then. So a run either raises the
 * floor (and deletes nothing above the old one), or deletes under a floor that has settled.
 *
 * The retention must be far longer than any request can live. Where the store has no clock nothing is
 * collected: records are then stamped by many clocks, and one that runs ahead would end what is alive.
 * Records with a term above the base stay: terms belong to long-lived writer slots, and the floor does not
 * carry them.
 */
import {
  endOfRecord,
  floorKey,
  type LeaseKey,
  type LeasePolicy,
  type LeaseRecord,
  NO_TOKEN_HASH,
} from "../core/index.ts";
import { type Env, randomId, readClocks } from "../env/index.ts";
import { ABSENT, type LeaseStore, type StoredRecord, StoreError } from "../store/index.ts";
import type { KnownState } from "./known-state.ts";
import { mapId } from "./map-id.ts";
import type { StoreCalls } from "./store-calls.ts";

export interface CollectionReport {
  readonly scanned: number;
  readonly deleted: number;
  /** Ended and old enough, but waiting for the floor to settle. */
  readonly waiting: number;
  readonly floor: bigint;
}

export interface CollectorOptions {
  readonly env: Env;
  readonly store: LeaseStore;
  readonly calls: StoreCalls;
  readonly known: KnownState;
  readonly policy: LeasePolicy;
  readonly retentionMs: number;
}

const PAGE_SIZE = 500;

/** One pass over a tenant. */
export async function collectTenant(tenant: string, options: CollectorOptions): Promise<CollectionReport> {
  const { store, env, known, retentionMs } = options;
  if (!store.capabilities.conditionalDelete) {
    throw new StoreError(
      "config",
      `the ${store.name} store cannot delete conditionally: its records are kept`,
      {
        outcome: "not-applied",
      },
    );
  }
  if (store.capabilities.clock === "none") {
    const message = `the ${store.name} store has no clock: nobody can say how long ago a record ended, so all are kept`;
    throw new StoreError("config", message, { outcome: "not-applied" });
  }
  const floor = await readOne(options.calls, floorKey(tenant));
  const now = readClocks(env);
  if (!known.knowsTime(now)) {
    const message =
      "this machine slept while the store answered, so the store's time is not known: try again";
    throw new StoreError("timeout", message, { outcome: "not-applied" });
  }
  const nowMs = known.time(now).earliestMs;
  const settled = floor.kind === "found" && nowMs - floor.record.renewedAtMs >= retentionMs;
  const settledGeneration = settled && floor.kind === "found" ? floor.record.generation : 0n;
  let [scanned, deleted, waiting, highest] = [0, 0, 0, 0n];
  for await (const records of pages(store, tenant)) {
    scanned += records.length;
    const ended = records.filter((record) => isCollectable(record, nowMs, options));
    const ready = ended.filter((record) => record.generation <= settledGeneration);
    for (const record of ended) if (record.generation > highest) highest = record.generation;
    waiting += ended.length - ready.length;
    deleted += await deleteAll(ready, nowMs, options);
  }
  const raised = await raiseFloor(tenant, floor, settled, highest, options);
  return { scanned, deleted, waiting, floor: raised };
}

function isCollectable(record: LeaseRecord, nowMs: number, options: CollectorOptions): boolean {
  return record.term === options.policy.baseTerm && nowMs - endOfRecord(record) >= options.retentionMs;
}

/** Each record is read again for its version, and goes only if it still is what was judged. */
async function deleteAll(
  records: readonly LeaseRecord[],
  nowMs: number,
  options: CollectorOptions,
): Promise<number> {
  const outcomes = await Promise.all(
    records.map(async ({ key }): Promise<number> => {
      const stored = await readOne(options.calls, key);
      if (stored.kind !== "found" || !isCollectable(stored.record, nowMs, options)) return 0;
      const { value } = await options.calls.write({ key, expected: stored.version, next: null });
      if (value.kind !== "applied") return 0;
      options.known.forget(mapId(key));
      return 1;
    }),
  );
  return outcomes.reduce((sum, count) => sum + count, 0);
}

/** Raising restarts the settling, so a floor that is still settling is left alone. */
async function raiseFloor(
  tenant: string,
  floor: StoredRecord,
  settled: boolean,
  highest: bigint,
  options: CollectorOptions,
): Promise<bigint> {
  const current = floor.kind === "found" ? floor.record.generation : 0n;
  const mayRaise = floor.kind === "absent" || settled;
  if (!mayRaise || highest <= current) return current;
  const now = readClocks(options.env);
  // A floor that is stamped too early would settle too early: rather none in this pass.
  if (!options.known.knowsTime(now)) return current;
  const stampMs = options.known.time(now).latestMs;
  const next = floorRecord(tenant, highest, stampMs, randomId(options.env));
  const expected = floor.kind === "found" ? floor.version : null;
  const { value } = await options.calls.write({ key: next.key, expected, next });
  return value.kind === "applied" ? highest : current;
}

/** A floor is an ordinary record under a reserved name, so that every store can keep it. */
export function floorRecord(tenant: string, generation: bigint, nowMs: number, nonce: string): LeaseRecord {
  return {
    key: floorKey(tenant),
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
    nonce,
    idempotency: null,
    note: "keys without a record start above this generation",
  };
}

async function readOne(calls: StoreCalls, key: LeaseKey): Promise<StoredRecord> {
  const { value } = await calls.read([key]);
  return value[0] ?? ABSENT;
}

async function* pages(store: LeaseStore, tenant: string): AsyncGenerator<readonly LeaseRecord[]> {
  let after: string | undefined;
  do {
    const page = await store.list({
      tenant,
      prefix: "",
      limit: PAGE_SIZE,
      ...(after === undefined ? {} : { after }),
    });
    yield page.records;
    after = page.next ?? undefined;
  } while (after !== undefined);
}
