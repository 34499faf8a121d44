// The floor of the embedded store: SQLite itself, as durable as the store opens it (write-ahead log, every commit synced),
// with values as long as its records. All that is queued in one turn of the event loop is one transaction.
import { join } from "node:path";

/** As long as the records that ours writes for a pair. */
export const VALUE = "v".repeat(300);

/** Node's own SQLite where it has one without a flag, otherwise the prebuilt one that the store uses, too. */
async function loadDriver() {
  const { DatabaseSync } = await import("node:sqlite").catch(() => import("@photostructure/sqlite"));
  return DatabaseSync;
}

export async function openSqlite(folder) {
  const DatabaseSync = await loadDriver();
  const database = new DatabaseSync(join(folder, "floor.db"));
  database.exec("PRAGMA journal_mode = WAL");
  database.exec("PRAGMA synchronous = FULL");
  database.exec(
    "CREATE TABLE records (name TEXT PRIMARY KEY, version INTEGER NOT NULL, value TEXT) WITHOUT ROWID",
  );
  return database;
}

/** `swap(name, value, expected)` resolves with whether it was done, once it is on the disk. */
export function sqliteSwaps(database) {
  const insert = database.prepare("INSERT OR IGNORE INTO records VALUES (?, 1, ?)");
  const update = database.prepare(
    "UPDATE records SET version = version + 1, value = ? WHERE name = ? AND version = ?",
  );
  let queue = [];
  const flush = () => {
    const batch = queue;
    queue = [];
    database.exec("BEGIN IMMEDIATE");
    const done = batch.map(({ name, value, expected }) =>
      Number(expected === null ? insert.run(name, value).changes : update.run(value, name, expected).changes),
    );
    database.exec("COMMIT");
    for (const [index, { resolve }] of batch.entries()) resolve(done[index] === 1);
  };
  return (name, value, expected) =>
    new Promise((resolve) => {
      if (queue.length === 0) setImmediate(flush);
      queue.push({ name, value, expected, resolve });
    });
}

/** Two compare-and-swaps of a key: one that takes it, one that releases it. */
export function sqlitePairs(database, names) {
  const swap = sqliteSwaps(database);
  const versions = new Map();
  return async (worker, index) => {
    const name = names(worker, index);
    for (let half = 0; half < 2; half += 1) {
      const version = versions.get(name) ?? null;
      if (!(await swap(name, VALUE, version))) throw new Error("sqlite: not swapped");
      versions.set(name, (version ?? 0) + 1);
    }
  };
}
