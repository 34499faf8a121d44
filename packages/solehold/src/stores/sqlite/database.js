// @ts-check
/**
 * The database file `leases.db`: its driver, its tables, and how it is opened. What is there is looked at through a
 * connection that cannot write, so a file that is refused stays as it is, and so does its write-ahead file.
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import { commitDigest, Damage, hash, isDamage, walk } from "./integrity.js";
import { readMarker } from "./marker.js";

/** @typedef {import("./protocol.ts").Connection} Connection */
/** @typedef {import("./protocol.ts").CommitRow} CommitRow */

export const DATABASE_FILE = "leases.db";
/** "Sole" in ASCII. */
const APPLICATION_ID = 0x536f6c65;
const FORMAT = 1;

/** The lines of the record as a JSON array. Names have no control characters, so a line break always separates. */
const LINES = `'["' || replace(replace(replace(record, '\\', '\\\\'), '"', '\\"'), char(10), '","') || '"]'`;
/** @param {number} line */
const instant = (line) =>
  `strftime('%Y-%m-%dT%H:%M:%fZ', nullif(lines ->> ${line}, '') / 1000.0, 'unixepoch')`;

/** As SQLite keeps it, so that a changed schema is noticed. */
const SCHEMA = [
  `CREATE TABLE records (
  tenant TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, record TEXT NOT NULL, digest INTEGER NOT NULL,
  PRIMARY KEY (tenant, name)
) WITHOUT ROWID`,
  `CREATE TABLE commits (
  version INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, origin INTEGER NOT NULL,
  records INTEGER NOT NULL, sum INTEGER NOT NULL, keys TEXT NOT NULL, digest INTEGER NOT NULL
)`,
  "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, digest INTEGER NOT NULL) WITHOUT ROWID",
  `CREATE VIEW leases AS
SELECT tenant, name, lines ->> 14 AS state, lines ->> 4 AS holder, ${instant(12)} AS expires, ${instant(10)} AS granted,
  ${instant(11)} AS renewed, ${instant(13)} AS ended, lines ->> 8 AS generation, lines ->> 7 AS term,
  CAST(lines ->> 9 AS INTEGER) AS ttl_ms, CAST(lines ->> 15 AS INTEGER) AS renewals, lines ->> 5 AS purpose,
  lines ->> 18 AS handoff_to, lines ->> 24 AS note, version
FROM (SELECT tenant, name, version, ${LINES} AS lines FROM records)`,
];

/** @type {(new (path: string, options?: { readOnly: boolean }) => Connection) | null} */
const DatabaseSync = await import("node:sqlite").then(
  (module) => module.DatabaseSync,
  () =>
    import("@photostructure/sqlite").then(
      (module) => module.DatabaseSync,
      () => null,
    ),
);

/** An error whose message is for the operator. @param {string} message @param {unknown} [cause] */
export function refused(message, cause) {
  return Object.assign(new Error(message, { cause }), { code: "refused" });
}

/** @param {string} folder @param {"read" | "write"} access @returns {Connection} */
export function connect(folder, access) {
  if (DatabaseSync === null)
    throw refused(
      "the embedded store needs Node 22.13 or later, or on older versions the package @photostructure/sqlite: npm install @photostructure/sqlite",
    );
  return new DatabaseSync(join(folder, DATABASE_FILE), { readOnly: access === "read" });
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

/** @param {Connection} database @returns {CommitRow} */
export function lastCommit(database) {
  const row = database.prepare("SELECT * FROM commits ORDER BY version DESC LIMIT 1").get();
  return soundCommit(/** @type {CommitRow | undefined} */ (row));
}

/** @param {CommitRow | undefined} row @returns {CommitRow} */
export function soundCommit(row) {
  if (row !== undefined && commitDigest(row) === row.digest) return row;
  throw new Damage("the note of its last commit is damaged");
}

/** The value of the clock; null when it was not set yet. @param {Connection} database @returns {string | null} */
export function readClock(database) {
  const row = /** @type {{ value: string, digest: number } | undefined} */ (
    database.prepare("SELECT value, digest FROM meta WHERE key = 'clock'").get()
  );
  if (row === undefined) return null;
  if (typeof row.value !== "string" || hash(row.value) !== row.digest)
    throw new Damage("its clock is damaged");
  return row.value;
}

/**
 * Whether the folder has a sound store; false when its database is still empty. Throws what the operator has to know.
 * Files up to `checkUpToBytes` are read completely.
 * @param {string} folder @param {number} checkUpToBytes
 * @returns {{ isThere: boolean, report: import("./protocol.ts").CheckReport | null }}
 */
export function inspect(folder, checkUpToBytes) {
  const acknowledged = readMarker(folder);
  const path = join(folder, DATABASE_FILE);
  const bytes = statSync(path).size;
  const database = connect(folder, "read");
  try {
    database.exec("PRAGMA busy_timeout = 10000");
    return inSnapshot(database, () => {
      if (isEmpty(database)) {
        if (acknowledged !== null) throw new Damage("it is empty");
        return { isThere: false, report: null };
      }
      assertOurs(database);
      const last = lastCommit(database);
      readClock(database);
      if (acknowledged !== null && last.version < acknowledged)
        throw refused(
          `'${path}' ends with change ${last.version}, but change ${acknowledged} was acknowledged: its write-ahead file is damaged or missing, or it is an older copy. Restore a whole backup, or delete '${folder}/solehold.json' to go on without the changes that are lost`,
        );
      if (bytes > checkUpToBytes) return { isThere: true, report: null };
      return { isThere: true, report: { ...check(database, last), bytes } };
    });
  } catch (error) {
    throw isDamage(error)
      ? refused(`'${path}' is damaged (${error.message}): restore it from a backup`, error)
      : error;
  } finally {
    database.close();
  }
}

/** @param {Connection} database @param {CommitRow} last */
function check(database, last) {
  const problems = /** @type {{ quick_check: string }[]} */ (database.prepare("PRAGMA quick_check(1)").all());
  const problem = problems.map(({ quick_check }) => quick_check).find((text) => text !== "ok");
  if (problem !== undefined) throw new Damage(problem.replace(/\s+/g, " "));
  const steps = walk(database, last);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** Made but not filled: as another process leaves it that is just doing so. @param {Connection} database */
function isEmpty(database) {
  const { count } = /** @type {{ count: number }} */ (
    database.prepare("SELECT count(*) AS count FROM sqlite_schema").get()
  );
  return count === 0 && pragma(database, "application_id") === 0;
}

/** @param {Connection} database @param {string} name */
function pragma(database, name) {
  return Object.values(/** @type {object} */ (database.prepare(`PRAGMA ${name}`).get()))[0];
}

/** @param {Connection} database */
function assertOurs(database) {
  if (pragma(database, "application_id") !== APPLICATION_ID)
    throw refused("the database 'leases.db' is not one of the embedded store: use another folder");
  const format = pragma(database, "user_version");
  if (format !== FORMAT)
    throw refused(
      `the database 'leases.db' has format ${format}, this version reads format ${FORMAT}: use the version that wrote it`,
    );
  const rows = /** @type {{ sql: string }[]} */ (
    database.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL").all()
  );
  if (
    rows
      .map(({ sql }) => sql)
      .sort()
      .join() !== [...SCHEMA].sort().join()
  )
    throw new Damage("its tables are not those of the embedded store");
}

/** For the thread that writes. @param {string} folder @returns {Connection} */
export function openForWriting(folder) {
  const database = connect(folder, "write");
  database.exec("PRAGMA busy_timeout = 10000");
  database.exec("PRAGMA journal_mode = WAL");
  // A commit is answered when it is on the disk, on macOS too.
  database.exec("PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA cache_size = -16384");
  database.exec("BEGIN IMMEDIATE");
  try {
    if (isEmpty(database)) {
      for (const sql of SCHEMA) database.exec(sql);
      const first = { version: 1, at_ms: 0, origin: 0, records: 0, sum: 0, keys: "" };
      insertCommit(database).run(1, 0, 0, 0, 0, "", commitDigest({ ...first, digest: 0 }));
      database.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${FORMAT}`);
    }
    database.exec("COMMIT");
  } catch (error) {
    database.exec("ROLLBACK");
    throw error;
  }
  // From here on the thread waits for the lock itself: SQLite would sleep up to 100 ms at a time.
  database.exec("PRAGMA busy_timeout = 0");
  return database;
}

/** @param {Connection} database */
export function insertCommit(database) {
  return database.prepare("INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?)");
}
