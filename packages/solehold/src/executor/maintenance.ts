/** What an operator, or the server by itself, has to know before ended records are deleted or a damaged one is replaced. */

import type { LeaseStore } from "../store/index.ts";
import type { StoreExecutor } from "./store-executor.ts";

const MICROSECONDS_PER_MS = 1_000n;

/** Why the records of this store stay for ever; null when they can be collected. */
export function collectionObstacle({ name, capabilities, list }: LeaseStore): string | null {
  if (!capabilities.conditionalDelete)
    return `the ${name} store cannot delete a record on condition of its version`;
  if (capabilities.clock === "none")
    return `the ${name} store has no clock, so nobody can say how long ago a record ended`;
  return list === undefined ? `the ${name} store cannot list its records` : null;
}

/**
 * A generation above all that were ever granted: the store's time in microseconds, which grants count from, too, and
 * which is far above any count. Null where the store has no clock: then somebody has to know it.
 */
export function repairGeneration(executor: StoreExecutor): bigint | null {
  if (executor.store.capabilities.clock === "none") return null;
  return BigInt(Math.ceil(executor.storeNowMs())) * MICROSECONDS_PER_MS;
}
