/**
 * Data that a server may lose although it acknowledged it, and fences that must grow all the same: what is
 * shown of records then. How a loss is noticed is each store's own affair.
 */
import { FLOOR_NAME, type LeaseKey, type LeaseRecord } from "../../core/index.ts";

/** More grants of one key than can be lost between two runs, for a server whose clock went back. */
export const LEAST_RAISE = 100_000_000n;

export interface Lineage {
  readonly id: string;
  /** Keys that never had a record start above this generation. */
  readonly floor: bigint;
  /** Records at or below this generation may have had successors that were lost; zero when none. */
  readonly raised: bigint;
}

/** The generation above which a key without a record starts. */
export function floorOf({ floor, raised: afterLoss }: Lineage): bigint {
  return floor > afterLoss ? floor : afterLoss;
}

/**
 * The record as a new grant must see it. A raised generation is shown only where nobody can still be
 * acting on the old one: the lease has ended, by the server's own clock.
 */
export function shown(record: LeaseRecord, lineage: Lineage, storeTimeMs: number): LeaseRecord {
  if (record.key.name === FLOOR_NAME) return raised(record, floorOf(lineage));
  const isOver = record.state !== "held" || record.expiresAtMs <= storeTimeMs;
  return isOver ? raised(record, lineage.raised) : record;
}

export function raised(record: LeaseRecord, generation: bigint): LeaseRecord {
  return record.generation < generation ? { ...record, generation } : record;
}

/** Nothing is stored there, but something was, or may have been: a new grant must be above it. */
export function impliedRecord(key: LeaseKey, generation: bigint): LeaseRecord {
  return {
    key,
    holder: "",
    purpose: "Operation",
    tokenHash: "",
    term: 0n,
    generation,
    ttlMs: 0,
    grantedAtMs: 0,
    renewedAtMs: 0,
    expiresAtMs: 0,
    endedAtMs: 0,
    state: "released",
    renewals: 0,
    resumeRequired: false,
    breakAtMs: null,
    handoff: null,
    nonce: "",
    idempotency: null,
    note: "",
  };
}
