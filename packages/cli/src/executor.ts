/**
 * The library's command pipeline, as the commands use it: `execute` with a request that names its operation, and
 * what an operator needs for maintenance. No other file of the command line knows how the library carries it out.
 */
import {
  type CommandOutcome,
  type DriftBound,
  type LeaseKey,
  type LeaseListing,
  type LeaseManager,
  type LeasePolicy,
  type LeaseRequest,
  type LeaseStore,
  type Leases,
  type LeaseView,
  type ListQuery,
  openManager,
  StoreLeaseManager,
  type StoreWatch,
  type WatchListener,
  type WatchScope,
} from "solehold";
import { collectionObstacle, repairGeneration } from "solehold/internal";
import { usageFailure } from "./failure.ts";

export type AppliedOutcome = Extract<CommandOutcome, { kind: "applied" }>;

export interface Executor {
  readonly policy: LeasePolicy;
  readonly drift: DriftBound;
  /** Null behind a server. */
  readonly store: LeaseStore | null;
  /** Never rejects. */
  execute(request: LeaseRequest): Promise<CommandOutcome>;
  /** Null when nothing was ever granted under the key. Rejects with CorruptRecordError for a damaged record. */
  read(key: LeaseKey): Promise<LeaseView | null>;
  list(query: ListQuery): Promise<LeaseListing>;
  /** Null when the store cannot announce changes. */
  watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch | null>;
  /** Deletes the records of leases that ended long ago. Throws a usage failure where records are kept for ever. */
  collect(tenant: string): Promise<{ readonly scanned: number; readonly deleted: number }>;
  /** A generation above all that were granted, by the store's time; undefined where a server chooses it. */
  repairGeneration(): bigint | undefined;
  /** Replaces a damaged record. False when it is not damaged any more. */
  repair(key: LeaseKey, generation: bigint | undefined): Promise<boolean>;
  close(): Promise<void>;
}

export function executorOf({ manager }: Leases): Executor {
  return executorOver(manager);
}

export async function openExecutor(url: string, tenant: string): Promise<Executor> {
  return executorOver(await openManager(url, { tenant }));
}

export function executorOver(manager: LeaseManager): Executor {
  const local = manager instanceof StoreLeaseManager ? manager : null;
  return {
    policy: manager.policy,
    drift: manager.drift,
    store: local?.store ?? null,
    execute: (request) => send(manager, request),
    read: (key) => manager.get(key),
    list: (query) => manager.list(query),
    watch: (scope, listener) => manager.watch(scope, listener),
    collect: async (tenant) => {
      const obstacle = local === null ? null : collectionObstacle(local.store);
      if (obstacle !== null) throw usageFailure(`ended records are kept for ever: ${obstacle}`);
      return await maintenanceOf(manager).collect(tenant);
    },
    repairGeneration: () => {
      if (local === null) return undefined;
      const generation = repairGeneration(local);
      if (generation !== null) return generation;
      throw usageFailure(
        `--generation is missing: the ${local.store.name} store has no clock, so give a number no lower than any generation that was granted under KEY (audit entries and logs have the fences)`,
      );
    },
    repair: (key, generation) => maintenanceOf(manager).repair(key, generation),
    close: () => manager.close(),
  };
}

/** The manager has a method for each operation. */
function send(manager: LeaseManager, request: LeaseRequest): Promise<CommandOutcome> {
  const method = manager[request.op === "handoff" ? "handOff" : request.op];
  return (method as (request: LeaseRequest) => Promise<CommandOutcome>).call(manager, request);
}

interface Maintenance {
  collect(tenant: string): Promise<{ readonly scanned: number; readonly deleted: number }>;
  repair(key: LeaseKey, generation?: bigint): Promise<boolean>;
}

function maintenanceOf(manager: LeaseManager): Maintenance {
  const candidate = manager as LeaseManager & Partial<Maintenance>;
  if (candidate.collect !== undefined && candidate.repair !== undefined) return candidate as Maintenance;
  throw usageFailure("this address can neither collect nor repair: use --store or --server");
}
