/** Reads: records by their keys, a part of a listing, and what others changed. */
import { connect, inSnapshot, LAST_COMMIT, soundCommit } from "./database.js";
import { rowReply } from "./integrity.js";
import { KEPT_CHANGES } from "./writer.js";

/** @import { LeaseKey } from "../../core/index.ts" */
/** @import { WatchScope } from "../../store/index.ts" */
/** @import { ChangesReply, Commit } from "./protocol.ts" */

export class Reader {
  #origin;
  #database;
  #statements;

  /** @param {string} folder @param {number} origin */
  constructor(folder, origin) {
    this.#origin = origin;
    this.#database = connect(folder, "read");
    const prepare = (/** @type {string} */ sql) => this.#database.prepare(sql);
    this.#statements = {
      last: prepare(LAST_COMMIT),
      get: prepare("SELECT * FROM records WHERE tenant = ? AND name = ?"),
      // The plus sign keeps SQLite from beginning at the cursor when that lies before the prefix.
      list: prepare(
        "SELECT * FROM records WHERE tenant = ?1 AND name >= max(?2, ?3) AND +name > ?2 ORDER BY name LIMIT ?4",
      ),
      changes: prepare("SELECT keys FROM commits WHERE version > ? AND origin <> ? AND keys <> ''"),
    };
  }

  /** @param {readonly LeaseKey[]} keys */
  read(keys) {
    return inSnapshot(this.#database, () => keys.map((key) => this.#row(key)));
  }

  /** @param {string} tenant @param {string} prefix @param {string} after @param {number} limit */
  list(tenant, prefix, after, limit) {
    const rows = this.#statements.list
      .all(tenant, after, prefix, limit)
      .flatMap((row) => rowReply(row) ?? []);
    const end = rows.findIndex(({ name }) => !name.startsWith(prefix));
    return end < 0 ? rows : rows.slice(0, end);
  }

  /** @param {number | null} version @param {readonly WatchScope[]} scopes @returns {ChangesReply} */
  changes(version, scopes) {
    return inSnapshot(this.#database, () => {
      const last = soundCommit(this.#statements.last.get()).version;
      // The notes of earlier commits may be gone. A version beyond the last one is of a database that was replaced.
      if (version === null || version < last - KEPT_CHANGES || version > last)
        return { version: last, changed: null };
      const commits = /** @type {Commit[]} */ (this.#statements.changes.all(version, this.#origin));
      const ids = new Set(commits.flatMap(({ keys }) => keys.split("\n")));
      const changed = [...ids]
        .map((id) => ({ tenant: id.slice(0, id.indexOf("/")), name: id.slice(id.indexOf("/") + 1) }))
        .filter(({ tenant, name }) =>
          scopes.some((scope) => (scope.tenant ?? tenant) === tenant && name.startsWith(scope.prefix)),
        );
      return { version: last, changed: changed.map((key) => [key, this.#row(key)]) };
    });
  }

  close() {
    this.#database.close();
  }

  /** @param {LeaseKey} key */
  #row({ tenant, name }) {
    return rowReply(this.#statements.get.get(tenant, name));
  }
}
