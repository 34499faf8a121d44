/**
 * Tells listeners which keys changed, and whether each is held now, by NOTIFY, right behind the write and on
 * the same connection.
 *
 * Not inside the write: PostgreSQL lets transactions that notify commit only one at a time, each with its
 * wait for the disk. Measured with 32 connections, that is a tenth of the writes and less. Behind the write
 * the announcement is a transaction of its own that waits for no disk.
 *
 * Keys whose announcement failed, or whose write ended unknown, are kept and announced with the next one.
 */
import { type Env, jittered, type Timer } from "../../env/index.ts";
import type { FollowUp, SqlDriver } from "./driver.ts";
import { EVERYTHING, type News, payloadsOf } from "./payloads.ts";
import { arrayLiteral } from "./sql-text.ts";
import type { Statement } from "./statements.ts";

const MAX_KEPT = 10_000;
const RETRY_MS = 1_000;

export class Announcer {
  readonly #env: Env;
  readonly #driver: SqlDriver;
  readonly #notify: Statement;
  /** Ids of keys. */
  readonly #kept = new Set<string>();
  #retry: Timer | null = null;
  #closed = false;

  constructor(options: { readonly env: Env; readonly driver: SqlDriver; readonly notify: Statement }) {
    this.#env = options.env;
    this.#driver = options.driver;
    this.#notify = options.notify;
  }

  /** What to send behind a write that was done, if anybody listens. */
  afterWrite(news: readonly News[]): FollowUp {
    // What became of these meanwhile is not known.
    const kept = Array.from(this.#kept, (id): News => ({ id, held: "unknown", record: null }));
    const all = [...kept, ...news];
    this.#kept.clear();
    return {
      statement: this.#notify,
      values: [arrayLiteral(payloadsOf(all))],
      settled: (failure) => failure !== null && this.keep(all.map(({ id }) => id)),
    };
  }

  /** These may have changed; say so as soon as the store answers again. */
  keep(ids: readonly string[]): void {
    for (const id of ids) this.#kept.add(id);
    if (this.#kept.size > MAX_KEPT) {
      this.#kept.clear();
      this.#kept.add(EVERYTHING);
    }
    if (this.#retry !== null || this.#closed) return;
    this.#retry = this.#env.timer(jittered(this.#env, RETRY_MS, 0.5), () => this.#sendKept());
  }

  close(): void {
    this.#closed = true;
    this.#retry?.cancel();
  }

  #sendKept(): void {
    this.#retry = null;
    if (this.#kept.size === 0) return;
    const { statement, values, settled } = this.afterWrite([]);
    this.#driver.query(statement, values).then(
      () => settled(null),
      (failure: Error) => settled(failure),
    );
  }
}
