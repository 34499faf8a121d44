import type { LeasesOptions } from "../../src/client/leases.ts";
import { Leases } from "../../src/client/leases.ts";
import { ManualEnv } from "../../src/env/index.ts";
import { StoreExecutor, type StoreExecutorOptions } from "../../src/executor/index.ts";
import { MemoryStore } from "../../src/store/index.ts";
import { FaultyStore } from "../executor/faulty-store.ts";

export interface ClientWorld {
  readonly env: ManualEnv;
  readonly store: FaultyStore;
  readonly leases: Leases;
  /** Another process on the same store, without faults between. */
  other(holder: string): Leases;
}

export function clientWorld(
  options: Partial<StoreExecutorOptions> & Partial<Pick<LeasesOptions, "holder">> = {},
): ClientWorld {
  const { holder = "me", policy, ...others } = options;
  // Fences 1, 2, 3 read better than times.
  const executorOptions = { ...others, policy: { generations: "count", ...policy } } as const;
  const env = new ManualEnv();
  const memory = new MemoryStore({ env });
  const store = new FaultyStore(memory);
  const executor = new StoreExecutor({ store, env, ...executorOptions });
  return {
    env,
    store,
    leases: new Leases({ executor, env, holder }),
    other: (name) =>
      new Leases({
        executor: new StoreExecutor({ store: memory, env, ...executorOptions }),
        env,
        holder: name,
      }),
  };
}

/** From now on the store does not answer anything any more. */
export function freeze(store: FaultyStore): void {
  store.writeFaults = Array.from({ length: 10_000 }, () => "frozen" as const);
  store.readFaults = Array.from({ length: 10_000 }, () => "frozen" as const);
}

export function thaw(store: FaultyStore): void {
  store.writeFaults = [];
  store.readFaults = [];
}
