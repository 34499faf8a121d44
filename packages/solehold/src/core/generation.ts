/**
 * The generation of a new grant: larger than that of every grant before it, under the same key.
 *
 * Counting alone does that only while the last record is there. The store's time grows whatever happens to records, so a
 * grant after a loss, a restored backup or a collection is above all that were given before, as long as the store's
 * clock does not go back by more than the time between the two grants.
 */

import type { StoreInstant } from "./instant.ts";
import type { LeasePolicy } from "./policy.ts";
import type { LeaseSnapshot } from "./snapshot.ts";

const MICROSECONDS_PER_MS = 1_000n;

export function nextGeneration(snapshot: LeaseSnapshot, now: StoreInstant, policy: LeasePolicy): bigint {
  const { record, floor } = snapshot;
  const last = record === null || record.generation < floor ? floor : record.generation;
  const counted = last + 1n;
  if (policy.generations === "clock") {
    const byClock = BigInt(now.stampMs) * MICROSECONDS_PER_MS;
    if (byClock > counted) return byClock;
  }
  return counted;
}
