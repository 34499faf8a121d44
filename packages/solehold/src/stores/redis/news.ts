/**
 * Wake-ups. The script that writes also publishes the names of its keys, each with a letter that says whether it is
 * held now; here a connection of its own listens. Who wants to know no more is told at once; for the others the
 * records that somebody watches are read. After a gap watchers are told to look for themselves.
 *
 * Names travel without their records, because most processes watch few keys, and every process hears of all; but a lone
 * key that was given back comes with what was written, for whoever waits for it.
 */

import { keyId, type LeaseKey } from "../../core/index.ts";
import { type Env, jittered, type Timer } from "../../env/index.ts";
import {
  isInScope,
  type ReadReply,
  type StoredRecord,
  StoreError,
  type StoreEvent,
  type StoreWatch,
  type WatchScope,
} from "../contract.ts";
import { Deadlines } from "../support/deadlines.ts";
import type { RedisDriver, Subscription } from "./driver.ts";
import { closedError, storeErrorFrom } from "./errors.ts";
import { HELD, KEY_BEGINS, type RedisLayout, VALUE_FOLLOWS } from "./layout.ts";
import { holderIn } from "./value.ts";

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
  /** What a read would show of this value; null when it is not certain. */
  readonly shown: (key: LeaseKey, value: string) => StoredRecord | null;
}

const FIRST_RETRY_MS = 20;
const LAST_RETRY_MS = 2_000;
/** A connection on which nobody speaks may be dead; so long goes by before that is noticed. */
const HEARTBEAT_MS = 10_000;
const RESET: StoreEvent = Object.freeze({ kind: "reset" });

export class RedisNews {
  readonly #options: NewsOptions;
  readonly #deadlines: Deadlines;
  readonly #watchers = new Set<Watcher>();
  readonly #changed = new Map<string, LeaseKey>();
  #subscribing: Promise<void> | null = null;
  #subscription: Subscription | null = null;
  #timer: Timer | null = null;
  #attempts = 0;
  #reading = false;
  #closed = false;

  constructor(options: NewsOptions) {
    this.#options = options;
    this.#deadlines = new Deadlines(options.env, options.timeoutMs);
  }

  async watch(scope: WatchScope, listener: (event: StoreEvent) => void): Promise<StoreWatch> {
    if (this.#closed) throw closedError();
    await this.#subscribed();
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
    this.#timer?.cancel();
    this.#deadlines.close();
    this.#subscription?.close();
    this.#subscription = null;
  }

  /** Resolves while the server is listened to; whoever watched before a gap is told of it. */
  async #subscribed(): Promise<void> {
    if (this.#subscription !== null) return;
    this.#subscribing ??= this.#subscribe().finally(() => {
      this.#subscribing = null;
    });
    await this.#subscribing;
  }

  async #subscribe(): Promise<void> {
    const { driver, layout } = this.#options;
    const attempt = new AbortController();
    let own: Subscription | null = null;
    let ended = false;
    const onEnd = (): void => {
      ended = true;
      if (own !== null && own === this.#subscription) this.#lose();
    };
    try {
      own = await this.#inTime(
        driver.subscribe(layout.channel, (message) => this.#hear(message), { signal: attempt.signal, onEnd }),
        () => attempt.abort(),
      );
    } catch (error) {
      throw storeErrorFrom(error, driver.address, "not-applied");
    }
    if (ended || this.#closed) {
      own.close();
      if (this.#closed) throw closedError();
      throw storeErrorFrom(new Error("the connection was lost"), driver.address, "not-applied");
    }
    this.#subscription = own;
    this.#attempts = 0;
    this.#later(HEARTBEAT_MS, () => this.#beat());
    this.reset();
  }

  #lose(): void {
    this.#subscription = null;
    if (this.#closed) return;
    const backoffMs = Math.min(FIRST_RETRY_MS * 2 ** this.#attempts, LAST_RETRY_MS);
    this.#attempts += 1;
    this.#later(backoffMs, () => {
      this.#subscribed().catch(() => this.#lose());
    });
  }

  #beat(): void {
    const subscription = this.#subscription;
    if (subscription === null) return;
    this.#inTime(subscription.ping(), () => undefined).then(
      () => {
        if (subscription === this.#subscription) this.#later(HEARTBEAT_MS, () => this.#beat());
      },
      () => subscription.close(),
    );
  }

  /** The letters come first, up to the brace that begins every key; without them, one has to look. */
  #hear(message: string): void {
    const letters = message.indexOf(KEY_BEGINS);
    const valueAt = message.indexOf(VALUE_FOLLOWS);
    const keysEnd = valueAt < 0 ? message.length : valueAt;
    const value = valueAt < 0 ? null : message.slice(valueAt + VALUE_FOLLOWS.length);
    let at = Math.max(0, letters);
    for (let index = 0; at < keysEnd; index += 1) {
      const lineEnd = message.indexOf("\n", at);
      const end = lineEnd < 0 ? keysEnd : lineEnd;
      const key = this.#options.layout.keyOf(message.slice(at, end));
      if (key !== null) this.#note(key, index < letters ? message.charAt(index) : "", value);
      at = end + 1;
    }
    if (!this.#reading && this.#changed.size > 0) {
      this.#reading = true;
      this.#announce().finally(() => {
        this.#reading = false;
      });
    }
  }

  #note(key: LeaseKey, letter: string, value: string | null): void {
    for (const watcher of this.#watchers) {
      if (!isInScope(watcher.scope, key)) continue;
      if (watcher.scope.wants === "holding") this.#tell(watcher, this.#holdingEvent(key, letter, value));
      else this.#changed.set(keyId(key), key);
    }
  }

  /** Without a letter it says only that something changed. */
  #holdingEvent(key: LeaseKey, letter: string, value: string | null): StoreEvent {
    const changed = { kind: "changed", key, record: null } as const;
    if (letter === "") return changed;
    const held = letter === HELD ? "yes" : "no";
    if (value === null) return { ...changed, held };
    // Most who hear it will not try: only who does reads all of it.
    const stored = (): StoredRecord | null => this.#options.shown(key, value);
    return { ...changed, held, by: holderIn(value), stored };
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

  #inTime<T>(promise: Promise<T>, onExpiry: () => void): Promise<T> {
    return this.#deadlines.bound(promise, () => {
      onExpiry();
      const { driver, timeoutMs } = this.#options;
      const message = `Redis at ${driver.address} gave no answer within ${timeoutMs} ms: check that it runs`;
      return new StoreError("timeout", message, { outcome: "not-applied" });
    });
  }

  #later(delayMs: number, callback: () => void): void {
    const { env } = this.#options;
    this.#timer?.cancel();
    this.#timer = env.timer(jittered(env, delayMs, 0.3), callback);
  }
}
