/** Mistakes about a store that loses data, changes its server, or has several clocks. */
import { decorateStore, type LeaseStore } from "solehold/internal";
import { BELIEF, type PlantedBug } from "./bug.ts";

export const DATA_BUGS: readonly PlantedBug[] = [
  {
    name: "counted-after-loss",
    mistake: "generations are counted from the last record, also where the store may lose it",
    // Who saw the lost fence refuses to go below it: then the key may not be granted any more.
    caughtBy: ["fences-grow", "liveness"],
    withinSeeds: 300,
    faults: ["lost-writes"],
    mutations: { policy: { generations: "count" } },
  },
  {
    name: "skew-not-declared",
    mistake: "a store with several clocks says that it has one",
    caughtBy: [...BELIEF, "reservations", "no-resurrection"],
    withinSeeds: 300,
    faults: [],
    mutations: { store: (store) => withCapabilities(store, { clockSkewMs: 0 }) },
  },
  {
    name: "server-change-unreported",
    mistake: "a client that comes after a failover takes the new server's clock for the one before it",
    caughtBy: BELIEF,
    withinSeeds: 1_000,
    faults: ["clock-jump", "crash"],
    mutations: { store: (store) => withoutServerChanges(store) },
  },
];

function withCapabilities(store: LeaseStore, changes: Partial<LeaseStore["capabilities"]>): LeaseStore {
  return decorateStore(store, { capabilities: { ...store.capabilities, ...changes } });
}

function withoutServerChanges(store: LeaseStore): LeaseStore {
  const silent = <Reply extends object>(reply: Reply): Reply => ({ ...reply, serverChangedAtMs: null });
  return decorateStore(store, {
    read: async (keys) => silent(await store.read(keys)),
    apply: async (writes) => silent(await store.apply(writes)),
  });
}
