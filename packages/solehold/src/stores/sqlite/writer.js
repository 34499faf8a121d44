// @ts-check
/**
 * Commits. All writes that wait when a commit begins are done in it, each on its own condition: one transaction, one
 * sync. A failed transaction leaves nothing behind, unless its last step, the commit, failed: then nobody knows.
 */
import { insertCommit, lastCommit, openForWriting, readClock, soundCommit } from "./database.js";
import { commitDigest, hash, isSound, rowDigest, rowMark } from "./integrity.js";
import { Marker } from "./marker.js";

/** @typedef {import("./protocol.ts").CommitRow} CommitRow */
/** @typedef {import("./protocol.ts").WriteBatch} WriteBatch */
/** @typedef {Omit<CommitRow, "digest" | "keys">} State */

/** The notes of commits are kept for so many changes, for those who watch. */
export const KEPT_CHANGES = 20_000;
/** Old ones go when the version passes a multiple of this. */
const TRIM_EVERY = 2_048;
const BUSY = 5;
const sleeper = new Int32Array(new SharedArrayBuffer(4));

export class Writer {
  #database;
  #marker;
  #statements;
  #origin;
  #busyMs;

  /** @param {string} folder @param {number} busyMs @param {number} origin */
  constructor(folder, busyMs, origin) {
    this.#database = openForWriting(folder);
    this.#busyMs = busyMs;
    this.#origin = origin;
    const prepare = (/** @type {string} */ sql) => this.#database.prepare(sql);
    this.#statements = {
      begin: prepare("BEGIN IMMEDIATE"),
      commit: prepare("COMMIT"),
      last: prepare("SELECT * FROM commits ORDER BY version DESC LIMIT 1"),
      log: insertCommit(this.#database),
      trim: prepare("DELETE FROM commits WHERE version <= ?"),
      get: prepare("SELECT * FROM records WHERE tenant = ? AND name = ?"),
      insert: prepare("INSERT INTO records VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"),
      update: prepare(
        "UPDATE records SET version = ?, record = ?, digest = ? WHERE tenant = ? AND name = ? AND version = ?",
      ),
      remove: prepare("DELETE FROM records WHERE tenant = ? AND name = ? AND version = ?"),
      clock: prepare("INSERT OR REPLACE INTO meta VALUES ('clock', ?, ?)"),
    };
    this.#marker = new Marker(folder);
    this.#marker.acknowledge(lastCommit(this.#database).version);
    this.#marker.sync();
  }

  /** @returns {import("./protocol.ts").ClockReply} */
  state() {
    const { version, at_ms } = lastCommit(this.#database);
    return { clock: readClock(this.#database), markMs: at_ms, version };
  }

  /** @param {import("./protocol.ts").Requests["clock"]["ask"]} change */
  setClock({ expected, clock, markMs }) {
    this.#transaction(markMs, (state) => {
      if (readClock(this.#database) !== expected.clock || state.version !== expected.version) return state;
      this.#statements.clock.run(clock, hash(clock));
      return { ...state, version: state.version + 1, keys: "" };
    });
    return this.state();
  }

  /** Time that was told is never told again, whatever the clock of the next boot says. @param {number} markMs */
  raiseMark(markMs) {
    this.#transaction(markMs, (state) =>
      state.at_ms < markMs ? { ...state, version: state.version + 1, keys: "" } : state,
    );
  }

  /** @param {readonly { writes: WriteBatch, nowMs: number }[]} requests */
  apply(requests) {
    const nowMs = Math.max(...requests.map((request) => request.nowMs));
    /** @type {import("./protocol.ts").WriteReply[]} */
    let replies = [];
    this.#transaction(nowMs, (state) => {
      let { version, records, sum } = state;
      /** @type {string[]} */
      const keys = [];
      replies = requests.map(({ writes: { tenants, names, expected, records: texts } }) => {
        const versions = new Float64Array(tenants.length);
        /** @type {Map<number, import("./protocol.ts").RowReply>} */
        const current = new Map();
        for (let index = 0; index < tenants.length; index += 1) {
          const [tenant, name] = [tenants[index] ?? "", names[index] ?? ""];
          const [before, text] = [expected[index] ?? null, texts[index] ?? null];
          if (!this.#write(tenant, name, before, text, version + 1)) {
            const row = this.#read(tenant, name);
            const isDone = row === null && before === null && text === null;
            versions[index] = isDone ? 0 : -1;
            if (!isDone) current.set(index, row);
            continue;
          }
          version += 1;
          keys.push(`${tenant}/${name}`);
          versions[index] = text === null ? 0 : version;
          if (before !== null) sum -= rowMark(tenant, name, before);
          if (text !== null) sum += rowMark(tenant, name, version);
          records += (text === null ? 0 : 1) - (before === null ? 0 : 1);
        }
        return { versions, current };
      });
      if (keys.length === 0) return state;
      // Sums of fewer than two million marks are exact.
      return {
        ...state,
        version,
        records,
        sum: ((sum % 2 ** 32) + 2 ** 32) % 2 ** 32,
        keys: keys.join("\n"),
      };
    });
    return replies;
  }

  close() {
    this.#database.close();
    this.#marker.close();
  }

  /** Whether it was done. @param {string} tenant @param {string} name @param {number | null} before @param {string | null} text @param {number} version */
  #write(tenant, name, before, text, version) {
    const { insert, update, remove } = this.#statements;
    if (text === null) return before !== null && remove.run(tenant, name, before).changes === 1;
    const digest = rowDigest(rowMark(tenant, name, version), text);
    const { changes } =
      before === null
        ? insert.run(tenant, name, version, text, digest)
        : update.run(version, text, digest, tenant, name, before);
    return changes === 1;
  }

  /** @param {string} tenant @param {string} name @returns {import("./protocol.ts").RowReply} */
  #read(tenant, name) {
    const row = /** @type {import("./protocol.ts").Row | undefined} */ (
      this.#statements.get.get(tenant, name)
    );
    return row === undefined ? null : { version: row.version, record: row.record, isSound: isSound(row) };
  }

  /**
   * `work` gets the state and gives the next, or the same one when it wrote nothing.
   * @param {number} nowMs @param {(state: State) => State & { keys?: string }} work
   */
  #transaction(nowMs, work) {
    const { last, log, trim, commit } = this.#statements;
    let at = "before";
    this.#begin();
    try {
      const state = soundCommit(/** @type {CommitRow | undefined} */ (last.get()));
      const { version, records, sum, keys } = { keys: "", ...work(state) };
      if (version === state.version) return this.#database.exec("ROLLBACK");
      const next = { version, at_ms: Math.max(state.at_ms, nowMs), origin: this.#origin, records, sum, keys };
      log.run(version, next.at_ms, next.origin, records, sum, keys, commitDigest({ ...next, digest: 0 }));
      if (Math.floor(version / TRIM_EVERY) > Math.floor(state.version / TRIM_EVERY))
        trim.run(version - KEPT_CHANGES);
      at = "commit";
      commit.run();
      at = "before";
      this.#acknowledge(version);
    } catch (error) {
      this.#rollBack();
      throw Object.assign(/** @type {Error} */ (error), { at });
    }
  }

  /** Commits of others end within milliseconds, unless they are stopped in the middle of one. */
  #begin() {
    for (let waitedMs = 0; ; waitedMs += 1) {
      try {
        return this.#statements.begin.run();
      } catch (error) {
        const { errcode = 0 } = /** @type {{ errcode?: number }} */ (error);
        if ((errcode & 0xff) !== BUSY || waitedMs >= this.#busyMs) throw error;
        Atomics.wait(sleeper, 0, 0, 1);
      }
    }
  }

  #rollBack() {
    try {
      this.#database.exec("ROLLBACK");
    } catch {
      // SQLite has done so itself.
    }
  }

  /** @param {number} version */
  #acknowledge(version) {
    try {
      this.#marker.acknowledge(version);
    } catch {
      // The commit counts; the note is then as old as after a loss of power.
    }
  }
}
