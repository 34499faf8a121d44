/**
 * The database file `leases.db`: its driver, its tables, and how it is opened. What is there is looked at through a
 * connection that cannot write, so a file that is refused stays as it is, and so does its write-ahead file.
 * The driver is node:sqlite, or where Node has none its twin from npm.
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import { commitDigest, Damage, hash, isDamage, Refusal, walk } from "./integrity.js";
import { MARKER_FILE, readMarker } from "./marker.js";

/** @import { DatabaseSyncInstance as Connection } from "@photostructure/sqlite" */
/** @import { CheckReport, Commit } from "./protocol.ts" */

const DATABASE_FILE = "leases.db";
/** "Sole" in ASCII. */
const APPLICATION_ID = 0x536f6c65;
const FORMAT = 1;
const BUSY = 5;
const sleeper = new Int32Array(new SharedArrayBuffer(4));
const NO_DRIVER =
  "the embedded store needs Node 22.13 or later, or the package @photostructure/sqlite: npm install @photostructure/sqlite";

/** The lines of the record as a JSON array. Names have no control characters, so a line break always separates. */
const LINES = `'["' || replace(replace(replace(record, '\\', '\\\\'), '"', '\\"'), char(10), '","') || '"]'`;
const instant = (/** @type {number} */ line) =>
  `strftime('%Y-%m-%dT%H:%M:%fZ', nullif(lines ->> ${line}, '') / 1000.0, 'unixepoch')`;

/** As SQLite keeps it, in order of names, so that a changed schema is noticed. */
const SCHEMA = [
  `CREATE TABLE commits (
  version INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, origin INTEGER NOT NULL,
  records INTEGER NOT NULL, sum INTEGER NOT NULL, keys TEXT NOT NULL, digest INTEGER NOT NULL
)`,
  `CREATE VIEW leases AS
SELECT tenant, name, lines ->> 14 AS state, lines ->> 4 AS holder, ${instant(12)} AS expires, ${instant(10)} AS granted,
  ${instant(11)} AS renewed, ${instant(13)} AS ended, lines ->> 8 AS generation, lines ->> 7 AS term,
  CAST(lines ->> 9 AS INTEGER) AS ttl_ms, CAST(lines ->> 15 AS INTEGER) AS renewals, lines ->> 5 AS purpose,
  lines ->> 18 AS handoff_to, lines ->> 24 AS note, version
FROM (SELECT tenant, name, version, ${LINES} AS lines FROM records)`,
  "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, digest INTEGER NOT NULL) WITHOUT ROWID",
  `CREATE TABLE records (
  tenant TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, record TEXT NOT NULL, digest INTEGER NOT NULL,
  PRIMARY KEY (tenant, name)
) WITHOUT ROWID`,
];

/** @type {(new (path: string, options: { readOnly: boolean }) => Connection) | null} */
const DatabaseSync = await import("node:sqlite")
  .catch(() => import("@photostructure/sqlite"))
  .then(
    (driver) => driver.DatabaseSync,
    () => null,
  );

/** @param {string} folder @param {"read" | "write"} access @returns {Connection} */
export function connect(folder, access) {
  if (DatabaseSync === null) throw new Refusal(NO_DRIVER);
  const database = new DatabaseSync(join(folder, DATABASE_FILE), { readOnly: access === "read" });
  database.exec("PRAGMA busy_timeout = 10000");
  return database;
}

/** @template Result @param {Connection} database @param {() => Result} look @returns {Result} */
export function inSnapshot(database, look) {
  database.exec("BEGIN");
  try {
    return look();
  } finally {
    database.exec("COMMIT");
  }
}

export const LAST_COMMIT = "SELECT * FROM commits ORDER BY version DESC LIMIT 1";
export const LOG_COMMIT = "INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?)";

/** What LAST_COMMIT found. @param {unknown} found @returns {Commit} */
export function soundCommit(found) {
  const row = /** @type {Commit & { digest: number } | undefined} */ (found);
  if (row !== undefined && commitDigest(row) === row.digest) return row;
  throw new Damage("the note of its last commit is damaged");
}

/** The store's clock; null when it was not set yet. @param {Connection} database @returns {string | null} */
export function readClock(database) {
  const found = database.prepare("SELECT value, digest FROM meta WHERE key = 'clock'").get();
  if (found === undefined) return null;
  const { value, digest } = /** @type {{ value: string, digest: number }} */ (found);
  if (hash(String(value)) !== digest) throw new Damage("its clock is damaged");
  return value;
}

/**
 * Looks at what is in the folder, completely if it has at most `checkUpToBytes`. Null: it was too large for
 * that. Throws a Refusal when it must not be used.
 * @param {string} folder @param {number} checkUpToBytes @returns {CheckReport | null}
 */
export function inspect(folder, checkUpToBytes) {
  const acknowledged = readMarker(folder);
  const path = join(folder, DATABASE_FILE);
  const bytes = statSync(path).size;
  const database = connect(folder, "read");
  try {
    return inSnapshot(database, () => {
      if (schemaOf(database).length === 0) {
        // Made and not filled yet, by this process or another.
        if (acknowledged === null) return { records: 0, corrupt: 0, bytes };
        throw new Damage("it is empty");
      }
      assertOurs(database);
      const last = soundCommit(database.prepare(LAST_COMMIT).get());
      readClock(database);
      if (last.version < (acknowledged ?? 0))
        throw new Refusal(
          `'${path}' ends with change ${last.version}, but change ${acknowledged} was acknowledged: its write-ahead file is damaged or missing, or it is an older copy. Restore a whole backup, or delete '${join(folder, MARKER_FILE)}' to go on without the changes that are lost`,
        );
      if (bytes > checkUpToBytes) return null;
      const structure = String(pragma(database, "quick_check(1)"));
      if (structure !== "ok") throw new Damage(structure);
      return { ...walk(database, last), bytes };
    });
  } catch (error) {
    if (isDamage(error))
      throw new Refusal(`'${path}' is damaged (${error.message}): restore it from a backup`);
    throw error;
  } finally {
    database.close();
  }
}

/** @param {Connection} database @param {string} name */
function pragma(database, name) {
  return Object.values(/** @type {object} */ (database.prepare(`PRAGMA ${name}`).get()))[0];
}

/** @param {Connection} database */
function schemaOf(database) {
  const rows = database.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name").all();
  return rows.map((row) => /** @type {{ sql: string }} */ (row).sql);
}

/** @param {Connection} database */
function assertOurs(database) {
  if (pragma(database, "application_id") !== APPLICATION_ID || pragma(database, "user_version") !== FORMAT)
    throw new Refusal(
      `the database '${DATABASE_FILE}' is not one of this version of the embedded store: use the version that wrote it, or another folder`,
    );
  if (schemaOf(database).join() !== SCHEMA.join())
    throw new Damage("its tables are not those of the embedded store");
}

/**
 * Waits for the locks of others, which are free within milliseconds, unless a process is stopped in the middle of a commit.
 * SQLite would sleep up to 100 ms at a time; and where it has a lock already, it does not wait at all.
 * @template Result @param {number} busyMs @param {() => Result} work @returns {Result}
 */
export function whenFree(busyMs, work) {
  for (let waitedMs = 0; ; waitedMs += 1) {
    try {
      return work();
    } catch (error) {
      const { errcode = 0 } = /** @type {{ errcode?: number }} */ (error);
      if ((errcode & 0xff) !== BUSY || waitedMs >= busyMs) throw error;
      Atomics.wait(sleeper, 0, 0, 1);
    }
  }
}

/** For the thread that writes. @param {string} folder @param {number} busyMs @returns {Connection} */
export function openForWriting(folder, busyMs) {
  const database = connect(folder, "write");
  // Of several processes that open a new folder one turns the log on, and the others wait for it.
  whenFree(busyMs, () => database.exec("PRAGMA journal_mode = WAL"));
  // A commit is answered when it is on the disk, on macOS too.
  database.exec("PRAGMA synchronous = FULL; PRAGMA fullfsync = ON");
  database.exec("PRAGMA cache_size = -16384");
  database.exec("BEGIN IMMEDIATE");
  if (schemaOf(database).length === 0) {
    for (const sql of SCHEMA) database.exec(sql);
    const digest = commitDigest({ version: 1, at_ms: 0, origin: 0, records: 0, sum: 0, keys: "" });
    database.prepare(LOG_COMMIT).run(1, 0, 0, 0, 0, "", digest);
    database.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${FORMAT}`);
  }
  database.exec("COMMIT");
  // From here on the thread waits for the lock itself.
  database.exec("PRAGMA busy_timeout = 0");
  return database;
}
