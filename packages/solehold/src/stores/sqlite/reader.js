// @ts-check
/** Reads: records by their keys, a part of a listing, what others changed, and in the background all there is. */
import { connect, inSnapshot, lastCommit } from "./database.js";
import { isDamage, isSound, walk } from "./integrity.js";
import { KEPT_CHANGES } from "./writer.js";

/** @typedef {import("./protocol.ts").Requests} Requests */
/** @typedef {import("./protocol.ts").Row} Row */

export class Reader {
  #folder;
  #database;
  #statements;
  #isClosed = false;

  /** @param {string} folder */
  constructor(folder) {
    this.#folder = folder;
    this.#database = connect(folder, "read");
    this.#database.exec("PRAGMA busy_timeout = 10000; PRAGMA cache_size = -16384");
    const prepare = (/** @type {string} */ sql) => this.#database.prepare(sql);
    this.#statements = {
      get: prepare("SELECT * FROM records WHERE tenant = ? AND name = ?"),
      // The plus sign keeps SQLite from beginning at the cursor when that lies before the prefix.
      list: prepare(
        "SELECT * FROM records WHERE tenant = ?1 AND name >= max(?2, ?3) AND +name > ?2 ORDER BY name LIMIT ?4",
      ),
      changes: prepare("SELECT keys FROM commits WHERE version > ? AND origin <> ?"),
    };
  }

  /** @param {Requests["read"]["ask"]} keys @returns {Requests["read"]["reply"]} */
  read({ tenants, names }) {
    return inSnapshot(this.#database, () =>
      tenants.map((tenant, index) => this.#row(tenant, names[index] ?? "")),
    );
  }

  /** @param {Requests["list"]["ask"]} query @returns {Requests["list"]["reply"]} */
  list({ tenant, prefix, after, limit }) {
    const rows = /** @type {Row[]} */ (this.#statements.list.all(tenant, after, prefix, limit));
    const end = rows.findIndex(({ name }) => !name.startsWith(prefix));
    const listed = end < 0 ? rows : rows.slice(0, end);
    return listed.map((row) => ({
      name: row.name,
      version: row.version,
      record: row.record,
      isSound: isSound(row),
    }));
  }

  /** @param {Requests["changes"]["ask"]} query @returns {Requests["changes"]["reply"]} */
  changes({ version, origin, scopes }) {
    return inSnapshot(this.#database, () => {
      const last = lastCommit(this.#database).version;
      // The notes of earlier commits may be gone. A version beyond the last one is of a database that was replaced.
      const isGap = version !== null && (version < last - KEPT_CHANGES || version > last);
      if (version === null || isGap) return { version: last, isGap, changed: [] };
      const ids = new Set();
      const commits = /** @type {{ keys: string }[]} */ (this.#statements.changes.all(version, origin));
      for (const { keys } of commits) for (const id of keys.split("\n")) if (id !== "") ids.add(id);
      const changed = [...ids]
        .map((id) => ({ tenant: id.slice(0, id.indexOf("/")), name: id.slice(id.indexOf("/") + 1) }))
        .filter(({ tenant, name }) =>
          scopes.some((scope) => (scope.tenant ?? tenant) === tenant && name.startsWith(scope.prefix)),
        )
        .map(({ tenant, name }) => ({ tenant, name, row: this.#row(tenant, name) }));
      return { version: last, isGap, changed };
    });
  }

  /**
   * What is damaged, or null. Through a connection of its own, whose snapshot stays while others go on, with turns for
   * them in between.
   */
  async check() {
    const database = connect(this.#folder, "read");
    try {
      database.exec("BEGIN");
      for (const _step of walk(database, lastCommit(database))) {
        await new Promise((resolve) => setImmediate(resolve));
        if (this.#isClosed) break;
      }
      return null;
    } catch (error) {
      if (!isDamage(error)) throw error;
      return error.message;
    } finally {
      database.close();
    }
  }

  close() {
    this.#isClosed = true;
    this.#database.close();
  }

  /** @param {string} tenant @param {string} name @returns {import("./protocol.ts").RowReply} */
  #row(tenant, name) {
    const row = /** @type {Row | undefined} */ (this.#statements.get.get(tenant, name));
    return row === undefined ? null : { version: row.version, record: row.record, isSound: isSound(row) };
  }
}
