/**
 * Watches for stores that announce nothing: all scopes are looked at again and again, and what differs from the last look
 * is announced. What changes and changes back between two looks is not announced: there is nothing to be seen of it.
 * A look that fails is no loss, since the next one is compared with the last that succeeded.
 */
import type { LeaseKey } from "../core/index.ts";
import { type Env, jittered, type Timer } from "../env/index.ts";
import { ABSENT, type StoredRecord } from "./contract.ts";
import { Watchers } from "./watchers.ts";
import { isInScope, type StoreWatch, type WatchListener, type WatchScope } from "./watching.ts";

/** What one look saw, by key. `stored` is null where a read might show more than the look did. */
export type Snapshot = Map<
  string,
  { readonly key: LeaseKey; readonly version: string; readonly stored: StoredRecord | null }
>;

export interface PollingOptions {
  readonly env: Env;
  /** From the end of a look to the beginning of the next, give or take a fifth: clients should not meet. */
  readonly pollMs: number;
  readonly look: (scopes: readonly WatchScope[]) => Promise<Snapshot>;
}

export class Polling {
  readonly #options: PollingOptions;
  readonly #watchers = new Watchers();
  #last: Snapshot = new Map();
  #timer: Timer | null = null;
  /** Looks are taken one at a time, so that none is compared with a later one. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: PollingOptions) {
    this.#options = options;
  }

  /** Rejects as the first look does: without it nobody knows what to compare with. */
  async watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch> {
    const watch = await this.#inTurn(async () => {
      const first = await this.#options.look([scope]);
      // What others watch as well is compared with what they saw: they may not know of it yet.
      const watched = this.#watchers.scopes;
      for (const [id, seen] of first)
        if (!watched.some((each) => isInScope(each, seen.key))) this.#last.set(id, seen);
      return this.#watchers.add(scope, listener, () => {
        if (this.#watchers.size === 0) this.close();
      });
    });
    this.#timer ??= this.#nextTimer();
    return watch;
  }

  close(): void {
    this.#watchers.clear();
    this.#last = new Map();
    this.#timer?.cancel();
    this.#timer = null;
  }

  #nextTimer(): Timer {
    const { env, pollMs } = this.#options;
    const timer = env.timer(jittered(env, pollMs, 0.2), () => {
      this.#inTurn(() => this.#poll())
        .catch(() => undefined)
        .finally(() => {
          if (this.#timer === timer) this.#timer = this.#nextTimer();
        });
    });
    return timer;
  }

  #inTurn<Result>(look: () => Promise<Result>): Promise<Result> {
    const ended = this.#turn.then(look);
    this.#turn = ended.catch(() => undefined);
    return ended;
  }

  async #poll(): Promise<void> {
    const last = this.#last;
    const next = await this.#options.look(this.#watchers.scopes);
    this.#last = next;
    for (const [id, { key, version, stored }] of next)
      if (last.get(id)?.version !== version) this.#watchers.announce({ kind: "changed", key, stored });
    for (const [id, { key, stored }] of last)
      if (!next.has(id)) this.#watchers.announce({ kind: "changed", key, stored: stored && ABSENT });
  }
}
