// @ts-check
/**
 * How damage is noticed. SQLite has no checksums of its pages: a flipped bit can change a value, hide a row, or bring
 * an old one back. So
 * - every row has a digest over its key, its version and its record: a changed row is reported as corrupt;
 * - every commit has, in the same transaction, the number of rows and the sum of their marks, a mark being a hash of
 *   key and version: a walk over all rows that finds another number or sum has found a row that was lost, doubled,
 *   changed or old.
 * The table of records is one tree that holds each row once and is searched by the very rows that a walk meets. So when
 * the walk finds all of them, in order, then a search does too.
 */

const START = 0x811c9dc5;
const FACTOR = 0x01000193;

/** FNV-1a, 32 bit, over UTF-16 units: every change of one unit changes it. Against accidents, not against attackers. */
export function hash(/** @type {string} */ text, start = START) {
  let value = start;
  for (let index = 0; index < text.length; index += 1)
    value = Math.imul(value ^ text.charCodeAt(index), FACTOR);
  return value >>> 0;
}

/** @param {string} tenant @param {string} name @param {number} version */
export function rowMark(tenant, name, version) {
  return hash(`${tenant}/${name}/${version}`);
}

/** @param {number} mark @param {string} record */
export function rowDigest(mark, record) {
  return hash(record, mark);
}

/** @param {import("./protocol.ts").CommitRow} row */
export function commitDigest({ version, at_ms, origin, records, sum, keys }) {
  return hash(`${version} ${at_ms} ${origin} ${records} ${sum}\n${keys}`);
}

/** @param {import("./protocol.ts").Row} row */
export function isSound({ tenant, name, version, record, digest }) {
  return typeof record === "string" && rowDigest(rowMark(tenant, name, version), record) === digest;
}

/** What a walk found that cannot be. */
export class Damage extends Error {}

const [CORRUPT, NOT_A_DATABASE] = [11, 26];

/** By what we or SQLite found. @param {unknown} error @returns {error is Error} */
export function isDamage(error) {
  const { errcode = 0 } = /** @type {{ errcode?: number }} */ (error);
  return error instanceof Damage || [CORRUPT, NOT_A_DATABASE].includes(errcode & 0xff);
}

const ROWS_AT_ONCE = 500;

/**
 * Walks over all records as one snapshot shows them, with a pause for others after each step. Throws Damage, or an error
 * of SQLite's. A row whose record alone is damaged is counted and left to those who read it.
 * @param {import("./protocol.ts").Connection} database within a transaction
 * @param {import("./protocol.ts").CommitRow} last
 * @returns {Generator<void, { records: number, corrupt: number }>}
 */
export function* walk(database, last) {
  let [records, corrupt, sum] = [0, 0, 0];
  let [tenant, name] = ["", ""];
  const rows = database.prepare("SELECT * FROM records ORDER BY tenant, name").iterate();
  for (const row of /** @type {Iterable<import("./protocol.ts").Row>} */ (rows)) {
    if (typeof row.tenant !== "string" || typeof row.name !== "string" || !Number.isSafeInteger(row.version))
      throw new Damage("a row of its records has no key");
    const order = compare(tenant, row.tenant) || compare(name, row.name);
    if (order >= 0) throw new Damage("its records are out of order");
    [tenant, name] = [row.tenant, row.name];
    records += 1;
    sum = (sum + rowMark(tenant, name, row.version)) >>> 0;
    if (!isSound(row)) corrupt += 1;
    if (records % ROWS_AT_ONCE === 0) yield;
  }
  if (records !== last.records) throw new Damage(`it has ${records} records, and there were ${last.records}`);
  if (sum !== last.sum) throw new Damage("its records are not those that were written");
  return { records, corrupt };
}

/** By UTF-8 bytes, as SQLite does. @param {string} a @param {string} b */
function compare(a, b) {
  if (a === b) return 0;
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
