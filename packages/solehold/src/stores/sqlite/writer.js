/**
 * Commits. All writes that wait when a commit begins are done in it, each on its own condition: one transaction, one
 * sync. A failed transaction leaves nothing behind, unless its last step, the commit, failed: then nobody knows.
 */
import { closeSync } from "node:fs";
import { LAST_COMMIT, LOG_COMMIT, openForWriting, readClock, soundCommit, whenFree } from "./database.js";
import { commitDigest, hash, rowDigest, rowMark, rowReply } from "./integrity.js";
import { acknowledge, openMarker } from "./marker.js";

/** @import { ClockReply, Commit, Requests, RowReply, Write, WriteReply } from "./protocol.ts" */

/** The notes of commits are kept for so many changes, for those who watch. */
export const KEPT_CHANGES = 20_000;
/** Old ones go when the version passes a multiple of this. */
const TRIM_EVERY = 2_048;

export class Writer {
  #database;
  #marker;
  #statements;
  #origin;
  #busyMs;

  /** @param {string} folder @param {number} busyMs @param {number} origin */
  constructor(folder, busyMs, origin) {
    this.#database = openForWriting(folder, busyMs);
    this.#busyMs = busyMs;
    this.#origin = origin;
    const prepare = (/** @type {string} */ sql) => this.#database.prepare(sql);
    this.#statements = {
      begin: prepare("BEGIN IMMEDIATE"),
      commit: prepare("COMMIT"),
      last: prepare(LAST_COMMIT),
      log: prepare(LOG_COMMIT),
      trim: prepare("DELETE FROM commits WHERE version <= ?"),
      get: prepare("SELECT * FROM records WHERE tenant = ? AND name = ?"),
      insert: prepare("INSERT INTO records VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"),
      update: prepare(
        "UPDATE records SET version = ?, record = ?, digest = ? WHERE tenant = ? AND name = ? AND version = ?",
      ),
      remove: prepare("DELETE FROM records WHERE tenant = ? AND name = ? AND version = ?"),
      clock: prepare("INSERT OR REPLACE INTO meta VALUES ('clock', ?, ?)"),
    };
    this.#marker = openMarker(folder);
    acknowledge(this.#marker, this.state().version);
  }

  /** @returns {ClockReply} */
  state() {
    const { version, at_ms } = soundCommit(this.#statements.last.get());
    return { clock: readClock(this.#database), markMs: at_ms, version };
  }

  /** @param {ClockReply} expected @param {string} clock @param {number} markMs @returns {ClockReply} */
  setClock(expected, clock, markMs) {
    this.#transaction(markMs, (last) => {
      if (readClock(this.#database) !== expected.clock || last.version !== expected.version) return null;
      this.#statements.clock.run(clock, hash(clock));
      return { ...last, version: last.version + 1, keys: "" };
    });
    return this.state();
  }

  /** Time that was answered never comes again, whatever the clock of the next boot says. @param {number} markMs */
  raiseMark(markMs) {
    this.#transaction(markMs, (last) =>
      last.at_ms < markMs ? { ...last, version: last.version + 1, keys: "" } : null,
    );
  }

  /** @param {readonly Parameters<Requests["apply"]>[]} requests @returns {readonly WriteReply[]} */
  apply(requests) {
    /** @type {WriteReply[]} */
    let replies = [];
    this.#transaction(Math.max(...requests.map(([, nowMs]) => nowMs)), ({ version, records, sum }) => {
      const next = { version, records, sum };
      /** @type {string[]} */
      const keys = [];
      replies = requests.map(([writes]) => this.#batch(writes, next, keys));
      // A sum of less than two million marks is exact.
      next.sum = ((next.sum % 2 ** 32) + 2 ** 32) % 2 ** 32;
      return keys.length === 0 ? null : { ...next, keys: keys.join("\n") };
    });
    return replies;
  }

  close() {
    this.#database.close();
    closeSync(this.#marker);
  }

  /** @param {readonly Write[]} writes @param {{ version: number, records: number, sum: number }} next @param {string[]} keys */
  #batch(writes, next, keys) {
    const { insert, update, remove, get } = this.#statements;
    const versions = new Float64Array(writes.length);
    /** @type {Map<number, RowReply | null>} */
    const current = new Map();
    for (const [index, [tenant, name, before, record]] of writes.entries()) {
      const version = next.version + 1;
      const mark = rowMark(tenant, name, version);
      const digest = record === null ? 0 : rowDigest(mark, record);
      const { changes } =
        record === null
          ? remove.run(tenant, name, before)
          : before === null
            ? insert.run(tenant, name, version, record, digest)
            : update.run(version, record, digest, tenant, name, before);
      if (changes === 1) {
        next.version = version;
        keys.push(`${tenant}/${name}`);
        versions[index] = record === null ? 0 : version;
        next.records += (record === null ? 0 : 1) - (before === null ? 0 : 1);
        next.sum += (record === null ? 0 : mark) - (before === null ? 0 : rowMark(tenant, name, before));
      } else {
        const row = rowReply(get.get(tenant, name));
        const isAbsentAsWanted = row === null && before === null && record === null;
        versions[index] = isAbsentAsWanted ? 0 : -1;
        current.set(index, row);
      }
    }
    return { versions, current };
  }

  /** `work` gets the last commit and gives the next, or null when it wrote nothing. @param {number} nowMs @param {(last: Commit) => Omit<Commit, "at_ms" | "origin"> | null} work */
  #transaction(nowMs, work) {
    const { begin, last, log, trim, commit } = this.#statements;
    let at = "before";
    whenFree(this.#busyMs, () => begin.run());
    try {
      const before = soundCommit(last.get());
      const next = work(before);
      if (next === null) return void commit.run();
      const { version, records, sum, keys } = next;
      const [at_ms, origin] = [Math.max(before.at_ms, nowMs), this.#origin];
      const digest = commitDigest({ version, at_ms, origin, records, sum, keys });
      log.run(version, at_ms, origin, records, sum, keys, digest);
      if (version % TRIM_EVERY < version - before.version) trim.run(version - KEPT_CHANGES);
      at = "commit";
      commit.run();
      acknowledge(this.#marker, version);
    } catch (error) {
      try {
        this.#database.exec("ROLLBACK");
      } catch {
        // SQLite has done so itself.
      }
      throw Object.assign(/** @type {Error} */ (error), { at });
    }
  }
}
