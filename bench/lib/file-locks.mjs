// Locks on one machine without a server: proper-lockfile, and better-sqlite3 where it is installed.
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import lockfile from "proper-lockfile";

export const HOW_TO_ADD_SQLITE =
  "better-sqlite3 was not measured: it compiles for minutes and is not installed by default; add it with `npm install --no-save better-sqlite3@12 -w bench`";

/** Makes a folder and takes the file's name; nothing is synced, so it is not durable. */
export function lockfileLocks(folder) {
  return async (name) => {
    const path = join(folder, name.replaceAll("/", "-"));
    writeFileSync(path, "");
    return await lockfile.lock(path);
  };
}

/** Null when the package is not there. */
export function loadSqlite() {
  try {
    return createRequire(import.meta.url)("better-sqlite3");
  } catch {
    return null;
  }
}

/** An upsert and a delete, with what is asked for in one turn as one durable transaction. */
export function sqlitePairs(Database, file, names) {
  const database = new Database(file);
  database.pragma("journal_mode = WAL");
  database.pragma("synchronous = FULL");
  database.exec(
    "create table lock (name text primary key, holder text not null, expires_at integer not null)",
  );
  const acquire = database.prepare(`insert into lock values (?, ?, ?) on conflict (name) do update
    set holder = excluded.holder, expires_at = excluded.expires_at where lock.expires_at < ?`);
  const release = database.prepare("delete from lock where name = ? and holder = ?");
  const begin = database.prepare("begin immediate");
  const commit = database.prepare("commit");
  let queue = [];
  const flush = () => {
    const batch = queue;
    queue = [];
    begin.run();
    const changes = batch.map(({ statement, values }) => statement.run(...values).changes);
    commit.run();
    for (const [index, { resolve }] of batch.entries()) resolve(changes[index]);
  };
  const queued = (statement, ...values) =>
    new Promise((resolve) => {
      queue.push({ statement, values, resolve });
      if (queue.length === 1) setImmediate(flush);
    });
  let token = 0;
  const turn = async (worker, index) => {
    const name = names(worker, index);
    token += 1;
    const mine = String(token);
    const now = Date.now();
    if ((await queued(acquire, name, mine, now + 30_000, now)) !== 1) throw new Error("sqlite: not locked");
    if ((await queued(release, name, mine)) !== 1) throw new Error("sqlite: not unlocked");
  };
  return { turn, close: () => database.close() };
}
