/**
 * A watch for stores that announce nothing: it looks at the whole scope again and again, and announces what differs from
 * the last look. What changes and changes back between two looks is not announced: there is nothing to be seen of it.
 * A look that fails is no loss, since the next one is compared with the last that succeeded.
 */
import type { LeaseKey } from "../core/index.ts";
import type { Env, Timer } from "../env/index.ts";
import { ABSENT, type StoredRecord } from "./contract.ts";
import type { StoreWatch, WatchListener } from "./watching.ts";

/** What one look saw, by key. `stored` is null where a read might show more than the look did. */
export type Snapshot = Map<
  string,
  { readonly key: LeaseKey; readonly version: string; readonly stored: StoredRecord | null }
>;

export interface PollingWatchOptions {
  readonly env: Env;
  /** From the end of a look to the beginning of the next. */
  readonly pollMs: number;
  readonly look: () => Promise<Snapshot>;
  readonly listener: WatchListener;
}

export class PollingWatch implements StoreWatch {
  readonly #options: PollingWatchOptions;
  #last: Snapshot;
  #timer: Timer | null = null;
  #closed = false;

  /** Rejects as the first look does: without it nobody knows what to compare with. */
  static async open(options: PollingWatchOptions): Promise<PollingWatch> {
    return new PollingWatch(options, await options.look());
  }

  private constructor(options: PollingWatchOptions, first: Snapshot) {
    this.#options = options;
    this.#last = first;
    this.#plan();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
  }

  #plan(): void {
    if (this.#closed) return;
    this.#timer = this.#options.env.timer(this.#options.pollMs, () => {
      this.#options
        .look()
        .then((next) => this.#compare(next))
        .catch(() => undefined)
        .finally(() => this.#plan());
    });
  }

  #compare(next: Snapshot): void {
    const last = this.#last;
    this.#last = next;
    const changed = [...next].filter(([id, { version }]) => last.get(id)?.version !== version);
    const gone = [...last].filter(([id]) => !next.has(id));
    for (const [, { key, stored }] of changed) this.#announce(key, stored);
    for (const [, { key, stored }] of gone) this.#announce(key, stored === null ? null : ABSENT);
  }

  #announce(key: LeaseKey, stored: StoredRecord | null): void {
    if (!this.#closed) this.#options.listener({ kind: "changed", key, stored });
  }
}
