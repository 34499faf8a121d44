/**
 * Wake-ups. The scripts that write also publish the names of their keys, each with a letter that says whether it is
 * held now; here a connection of its own listens. Who wants to know no more is told at once; for the others the
 * records that somebody watches are read. After a gap watchers are told to look for themselves.
 *
 * Names travel without their records: most processes watch few keys, and every process hears of all.
 */

import { keyId, type LeaseKey } from "../../core/index.ts";
import type { Env } from "../../env/index.ts";
import {
  isInScope,
  type ReadReply,
  type StoreEvent,
  type StoreWatch,
  type WatchScope,
} from "../../store/index.ts";
import { announcedIn, holdingEvent, type ShownRecord } from "./announcement.ts";
import type { RedisDriver } from "./driver.ts";
import { closedError } from "./errors.ts";
import type { RedisLayout } from "./layout.ts";
import { LastingSubscription } from "./subscription.ts";

interface Watcher {
  readonly scope: WatchScope;
  readonly listener: (event: StoreEvent) => void;
}

export interface NewsOptions {
  readonly env: Env;
  readonly driver: RedisDriver;
  readonly layout: RedisLayout;
  readonly timeoutMs: number;
  readonly maxBatch: number;
  readonly read: (keys: readonly LeaseKey[]) => Promise<ReadReply>;
  readonly shown: ShownRecord;
}

const RESET: StoreEvent = Object.freeze({ kind: "reset" });

export class RedisNews {
  readonly #options: NewsOptions;
  readonly #watchers = new Set<Watcher>();
  readonly #changed = new Map<string, LeaseKey>();
  readonly #subscription: LastingSubscription;
  #reading = false;
  #closed = false;

  constructor(options: NewsOptions) {
    this.#options = options;
    this.#subscription = new LastingSubscription({
      ...options,
      channels: [options.layout.channel],
      onMessage: (message) => this.#hear(message),
      onGap: () => this.reset(),
    });
  }

  async watch(scope: WatchScope, listener: (event: StoreEvent) => void): Promise<StoreWatch> {
    if (this.#closed) throw closedError();
    await this.#subscription.ready();
    const watcher: Watcher = { scope, listener };
    this.#watchers.add(watcher);
    return { close: async () => void this.#watchers.delete(watcher) };
  }

  /** Everything may have changed. Who comes later knows of no gap. */
  reset(): void {
    const watchers = [...this.#watchers];
    this.#options.env.defer(() => {
      for (const watcher of watchers) this.#tell(watcher, RESET);
    });
  }

  close(): void {
    this.#closed = true;
    this.#watchers.clear();
    this.#subscription.close();
  }

  #hear(message: string): void {
    const { layout, shown } = this.#options;
    for (const announced of announcedIn(message, layout)) {
      const { key } = announced;
      for (const watcher of this.#watchers) {
        if (!isInScope(watcher.scope, key)) continue;
        if (watcher.scope.wants === "holding") this.#tell(watcher, holdingEvent(announced, shown));
        else this.#changed.set(keyId(key), key);
      }
    }
    if (!this.#reading && this.#changed.size > 0) {
      this.#reading = true;
      this.#announce().finally(() => {
        this.#reading = false;
      });
    }
  }

  /** One read at a time: what is heard meanwhile is read together, once. */
  async #announce(): Promise<void> {
    while (this.#changed.size > 0 && !this.#closed) {
      const keys = [...this.#changed.values()].slice(0, this.#options.maxBatch);
      for (const key of keys) this.#changed.delete(keyId(key));
      let reply: ReadReply;
      try {
        reply = await this.#options.read(keys);
      } catch {
        this.reset();
        continue;
      }
      for (const [index, key] of keys.entries()) {
        const stored = reply.records[index];
        const record = stored?.kind === "found" ? stored.record : null;
        for (const watcher of this.#watchers) {
          const { scope } = watcher;
          if (scope.wants !== "holding" && isInScope(scope, key))
            this.#tell(watcher, { kind: "changed", key, record });
        }
      }
    }
  }

  /** A listener that throws is its owner's problem alone. */
  #tell(watcher: Watcher, event: StoreEvent): void {
    try {
      if (this.#watchers.has(watcher)) watcher.listener(event);
    } catch (error) {
      this.#options.env.defer(() => {
        throw error;
      });
    }
  }
}
