/** Mistakes about storage that writes to a wrong place, or says that it could not make a write durable. */
import {
  type AuditDisk,
  decorateStore,
  type LeaseKey,
  type LeaseStore,
  type StoredRecord,
  type WriteResult,
} from "solehold/internal";
import type { StoreEngine } from "../store/engine.ts";
import { BELIEF, type PlantedBug } from "./bug.ts";

export const STORAGE_BUGS: readonly PlantedBug[] = [
  {
    name: "record-without-its-key",
    mistake: "a record does not say whose it is, so one that landed under a wrong key is believed there",
    caughtBy: [...BELIEF, "fences-grow", "ownership", "no-resurrection", "idempotency"],
    withinSeeds: 300,
    faults: ["misdirected-write"],
    mutations: { store: (store, _env, engine) => withoutKeyCheck(store, engine) },
  },
  {
    name: "sync-tried-again",
    mistake: "a sync that failed is tried again, and its success taken for that of the first",
    caughtBy: ["audit", "no-surprise"],
    withinSeeds: 300,
    faults: ["fsync-fail", "crash"],
    mutations: { auditDisk: syncsTwice },
  },
];

/** Whatever stands under the key is that key's. */
function withoutKeyCheck(store: LeaseStore, engine: StoreEngine): LeaseStore {
  const believed = (stored: StoredRecord, key: LeaseKey | undefined): StoredRecord => {
    const stray = stored.kind === "corrupt" ? engine.strayUnder(stored.version) : null;
    if (stored.kind !== "corrupt" || stray === null || key === undefined) return stored;
    return { kind: "found", version: stored.version, record: { ...stray, key } };
  };
  const seen = (result: WriteResult, key: LeaseKey | undefined): WriteResult =>
    result.kind === "conflict" ? { ...result, current: believed(result.current, key) } : result;
  return decorateStore(store, {
    read: async (keys) => {
      const reply = await store.read(keys);
      return { ...reply, records: reply.records.map((stored, index) => believed(stored, keys[index])) };
    },
    apply: async (writes) => {
      const reply = await store.apply(writes);
      return { ...reply, results: reply.results.map((result, index) => seen(result, writes[index]?.key)) };
    },
  });
}

function syncsTwice(disk: AuditDisk): AuditDisk {
  return {
    ...disk,
    open: async (path) => {
      const file = await disk.open(path);
      return {
        size: () => file.size(),
        write: (data, position) => file.write(data, position),
        truncate: (length) => file.truncate(length),
        close: () => file.close(),
        sync: async () => {
          for (;;) {
            const isDone = await file.sync().then(
              () => true,
              () => false,
            );
            if (isDone) return;
          }
        },
      };
    },
  };
}
