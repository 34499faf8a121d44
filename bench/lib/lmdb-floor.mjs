// The floor of the embedded store: LMDB itself, opened as durably as the store opens it, with values as long as its
// records. All that is queued in one turn of the event loop is one transaction and one sync.
import { open } from "lmdb";

/** As long as the records that ours writes for a pair: 153 bytes while it is held, and when it was given back. */
export const VALUE = "v".repeat(153);

export function openLmdb(folder) {
  return open(folder, {
    noSubdir: false,
    encoding: "string",
    useVersions: true,
    mapSize: 2 ** 30,
    overlappingSync: false,
    // A transaction does not begin while its instructions are still being queued.
    batchStartThreshold: Number.MAX_SAFE_INTEGER,
  });
}

/** Two compare-and-swaps of a key: one that takes it, one that gives it back. */
export function lmdbPairs(database, names) {
  const versions = new Map();
  return async (worker, index) => {
    const name = names(worker, index);
    for (let half = 0; half < 2; half += 1) {
      const version = versions.get(name) ?? null;
      const next = (version ?? 0) + 1;
      if (!(await database.put(name, VALUE, next, version))) throw new Error("lmdb: not swapped");
      versions.set(name, next);
    }
  };
}
