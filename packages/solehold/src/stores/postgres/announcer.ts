/**
 * Tells listeners which keys changed, and whether each is held now, by NOTIFY, right behind the write and on
 * the same connection.
 *
 * Not inside the write: PostgreSQL lets transactions that notify commit only one at a time, each with its
 * wait for the disk. Measured with 32 connections, that is a tenth of the writes and less. Behind the write
 * the announcement is a transaction of its own that waits for no disk. Inside are those of writes that wait for none
 * either (see `early` in statements.ts).
 *
 * Keys whose announcement failed, or whose write ended unknown, are kept and announced with the next one.
 */
import { type Env, jittered, type Timer } from "../../env/index.ts";
import type { FollowUp, Message, SqlDriver } from "./driver.ts";
import { EVERYTHING, type News, payloadsOf } from "./payloads.ts";
import { arrayLiteral } from "./sql-text.ts";
import type { Statements } from "./statements.ts";

const MAX_KEPT = 10_000;
const RETRY_MS = 1_000;

export class Announcer {
  readonly #env: Env;
  readonly #driver: SqlDriver;
  readonly #statements: Pick<Statements, "notify" | "notifyOne">;
  /** Ids of keys. */
  readonly #kept = new Set<string>();
  #retry: Timer | null = null;
  #closed = false;

  constructor(options: {
    readonly env: Env;
    readonly driver: SqlDriver;
    readonly statements: Pick<Statements, "notify" | "notifyOne">;
  }) {
    this.#env = options.env;
    this.#driver = options.driver;
    this.#statements = options.statements;
  }

  /** Whether the next announcement has to name keys of earlier ones, too. */
  get hasKept(): boolean {
    return this.#kept.size > 0;
  }

  /**
   * What to send behind a write that was done, if anybody listens. Somebody may wait for a key that is free now; that one
   * is held need not be told before its holder goes on, and what is to be told is put together then.
   */
  afterWrite(newsOf: () => readonly News[], pace: FollowUp["pace"]): FollowUp {
    let news: readonly News[] | null = null;
    const all = (): readonly News[] => {
      news ??= [...this.#takeKept(), ...newsOf()];
      return news;
    };
    let message: Message | null = null;
    return {
      message: () => {
        message ??= this.#messageOf(all());
        return message;
      },
      pace,
      settled: (failure) => failure !== null && this.keep(all().map(({ id }) => id)),
    };
  }

  /** What became of these meanwhile is not known. */
  #takeKept(): News[] {
    const kept = Array.from(this.#kept, (id): News => ({ id, held: "unknown", record: null, end: null }));
    this.#kept.clear();
    return kept;
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

  #messageOf(news: readonly News[]): Message {
    const { notify, notifyOne } = this.#statements;
    const payloads = payloadsOf(news);
    const [payload] = payloads;
    return payload !== undefined && payloads.length === 1
      ? { statement: notifyOne, values: [payload] }
      : { statement: notify, values: [arrayLiteral(payloads)] };
  }

  #sendKept(): void {
    this.#retry = null;
    if (this.#kept.size === 0) return;
    const { message, settled } = this.afterWrite(() => [], "now");
    const { statement, values } = message();
    this.#driver.query(statement, values).then(
      () => settled(null),
      (failure: Error) => settled(failure),
    );
  }
}
