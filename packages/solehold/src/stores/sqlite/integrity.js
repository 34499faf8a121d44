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
/** @import { DatabaseSyncInstance as Connection } from "@photostructure/sqlite" */
/** @import { Commit, Row, RowReply } from "./protocol.ts" */

const [CORRUPT, NOT_A_DATABASE] = [11, 26];

/** FNV-1a, 32 bit, over UTF-16 units: every change of one unit changes it. Against accidents, not against attackers. */
export function hash(/** @type {string} */ text, start = 0x811c9dc5) {
  let value = start;
  for (let index = 0; index < text.length; index += 1)
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  return value >>> 0;
}

/** @type {(tenant: string, name: string, version: number) => number} */
export const rowMark = (tenant, name, version) => hash(`${tenant}/${name}/${version}`);

/** @type {(mark: number, record: string) => number} */
export const rowDigest = (mark, record) => hash(record, mark);

/** @type {(commit: Commit) => number} */
export const commitDigest = ({ version, at_ms, origin, records, sum, keys }) =>
  hash(`${version} ${at_ms} ${origin} ${records} ${sum}\n${keys}`);

/** @param {unknown} found @returns {RowReply | null} */
export function rowReply(found) {
  if (found === undefined) return null;
  const { tenant, name, version, record, digest } = /** @type {Row} */ (found);
  const isSound = typeof record === "string" && rowDigest(rowMark(tenant, name, version), record) === digest;
  return { tenant, name, version, record, isSound };
}

/** What cannot be, and SQLite does not see. */
export class Damage extends Error {
  errcode = CORRUPT;
}

/** The store must not be used. The message is for the operator. */
export class Refusal extends Error {
  errcode = "refused";
}

/** By what we or SQLite found. @param {unknown} error @returns {error is Error} */
export function isDamage(error) {
  const { errcode } = /** @type {{ errcode?: unknown }} */ (error);
  return [CORRUPT, NOT_A_DATABASE].includes(Number(errcode) & 0xff);
}

/**
 * Walks over all records, as the snapshot of a transaction shows them. Throws Damage, or an error of SQLite's. A row whose
 * record alone is damaged is counted, and left to those who read it.
 * @param {Connection} database @param {Commit} last
 */
export function walk(database, last) {
  let [records, corrupt, sum, before] = [0, 0, 0, Buffer.alloc(0)];
  for (const row of database.prepare("SELECT * FROM records ORDER BY tenant, name").iterate()) {
    const { tenant, name, version } = /** @type {Row} */ (row);
    // In order of UTF-8, as SQLite has it.
    const key = Buffer.from(`${tenant}\0${name}`);
    if (Buffer.compare(before, key) >= 0) throw new Damage("its records are out of order");
    before = key;
    records += 1;
    sum = (sum + rowMark(tenant, name, version)) >>> 0;
    if (!rowReply(row)?.isSound) corrupt += 1;
  }
  if (records !== last.records) throw new Damage(`it has ${records} records, and there were ${last.records}`);
  if (sum !== last.sum) throw new Damage("its records are not those that were written");
  return { records, corrupt };
}
