/**
 * Announces writes to listeners by NOTIFY, behind the write and on the same connection, and only while somebody listens.
 *
 * Not inside the write: PostgreSQL lets transactions that notify commit only one at a time, each with its wait for the
 * disk, so that many processes would write at a quarter of their speed. The price: the announcement of a process that is
 * killed right after its write is missing.
 *
 * Keys whose announcement failed, or whose write ended unknown, are kept and announced later.
 */
import { keyId, type LeaseKey } from "../../core/index.ts";
import { type Env, jittered, type Timer } from "../../env/index.ts";
import type { Behind, Calls } from "./calls.ts";
import { type Change, EVERYTHING_CHANGED, payloadOf } from "./changes.ts";
import { arrayLiteral, type Statements } from "./statements.ts";

const MAX_KEPT = 1_000;
const RETRY_MS = 1_000;

export interface AnnouncerOptions {
  readonly env: Env;
  readonly calls: Calls;
  readonly statements: Statements;
}

export class Announcer {
  readonly #options: AnnouncerOptions;
  readonly #kept = new Map<string, LeaseKey>();
  #retry: Timer | null = null;
  #closed = false;

  constructor(options: AnnouncerOptions) {
    this.#options = options;
  }

  /** What to send behind a write while somebody listens. */
  announcementOf(changes: readonly Change[]): Behind {
    const kept = Array.from(this.#kept.values(), (key): Change => ({ key, stored: null }));
    this.#kept.clear();
    const all = [...kept, ...changes];
    const payloads = kept.length > MAX_KEPT ? [EVERYTHING_CHANGED] : all.map(payloadOf);
    return {
      statement: this.#options.statements.notify,
      values: [arrayLiteral(payloads)],
      settled: (failure) => {
        if (failure !== null) this.keep(all.map(({ key }) => key));
      },
    };
  }

  /** These may have changed; say so as soon as the server answers again. */
  keep(keys: readonly LeaseKey[]): void {
    for (const key of keys) if (this.#kept.size <= MAX_KEPT) this.#kept.set(keyId(key), key);
    if (this.#retry !== null || this.#closed) return;
    const { env, calls } = this.#options;
    this.#retry = env.timer(jittered(env, RETRY_MS, 0.5), () => {
      this.#retry = null;
      if (this.#kept.size === 0) return;
      const { statement, values, settled } = this.announcementOf([]);
      calls.query(statement, values).then(() => settled(null), settled);
    });
  }

  close(): void {
    this.#closed = true;
    this.#retry?.cancel();
  }
}
