/** What collect and repair have in common: a executor that can maintain its records, over a store or over a server. */
import { CorruptRecordError, type LeaseExecutor, type LeaseKey, StoreExecutor } from "solehold";
import { collectionObstacle, repairGeneration } from "solehold/internal";
import { usageFailure } from "./failure.ts";

export interface Maintenance {
  collect(tenant: string): Promise<{ readonly scanned: number; readonly deleted: number }>;
  /** Without a generation the server chooses; over a store one is needed. */
  repair(key: LeaseKey, generation?: bigint): Promise<boolean>;
}

/** Throws where records are kept for ever. A server says so itself. */
export function assertCollectable(executor: LeaseExecutor): void {
  const obstacle = executor instanceof StoreExecutor ? collectionObstacle(executor.store) : null;
  if (obstacle !== null) throw usageFailure(`ended records are kept for ever: ${obstacle}`);
}

export function maintenanceOf(executor: LeaseExecutor): Maintenance {
  const candidate = executor as LeaseExecutor & Partial<Maintenance>;
  if (candidate.collect !== undefined && candidate.repair !== undefined) return candidate as Maintenance;
  throw usageFailure("this address can neither collect nor repair: use --store or --server");
}

/** How a damaged record is damaged; null when it can be read, or there is none. */
export async function damageOf(executor: LeaseExecutor, key: LeaseKey): Promise<CorruptRecordError | null> {
  try {
    await executor.read(key);
    return null;
  } catch (error) {
    if (error instanceof CorruptRecordError) return error;
    throw error;
  }
}

/** The generation to repair with: the given one, else by the store's time; undefined where a server chooses. */
export function generationOf(executor: LeaseExecutor, given: bigint | null): bigint | undefined {
  if (given !== null) return given;
  if (!(executor instanceof StoreExecutor)) return undefined;
  const generation = repairGeneration(executor);
  if (generation !== null) return generation;
  throw usageFailure(
    `--generation is missing: the ${executor.store.name} store has no clock, so give a number no lower than any generation that was granted under KEY (audit entries and logs have the fences)`,
  );
}
