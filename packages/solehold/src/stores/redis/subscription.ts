/**
 * A subscription that lasts: on a connection of its own, which is made anew when it is lost. `onGap` is called whenever
 * it was made: what was announced before then was heard by nobody.
 */
import { type Env, jittered, type Timer } from "../../env/index.ts";
import { StoreError } from "../../store/index.ts";
import { Deadlines } from "../support/deadlines.ts";
import type { RedisDriver, Subscription } from "./driver.ts";
import { closedError, storeErrorFrom } from "./errors.ts";

export interface LastingSubscriptionOptions {
  readonly env: Env;
  readonly driver: RedisDriver;
  readonly channels: readonly string[];
  readonly timeoutMs: number;
  readonly onMessage: (message: string) => void;
  readonly onGap: () => void;
}

const FIRST_RETRY_MS = 20;
const LAST_RETRY_MS = 2_000;
/** A connection on which nobody speaks may be dead; so long goes by before that is noticed. */
const HEARTBEAT_MS = 10_000;

export class LastingSubscription {
  readonly #options: LastingSubscriptionOptions;
  readonly #deadlines: Deadlines;
  #subscribing: Promise<void> | null = null;
  #subscription: Subscription | null = null;
  #timer: Timer | null = null;
  #attempts = 0;
  #closed = false;

  constructor(options: LastingSubscriptionOptions) {
    this.#options = options;
    this.#deadlines = new Deadlines(options.env, options.timeoutMs);
  }

  /** Resolves while the server is listened to. */
  async ready(): Promise<void> {
    if (this.#closed) throw closedError();
    if (this.#subscription !== null) return;
    this.#subscribing ??= this.#subscribe().finally(() => {
      this.#subscribing = null;
    });
    await this.#subscribing;
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#deadlines.close();
    this.#subscription?.close();
    this.#subscription = null;
  }

  async #subscribe(): Promise<void> {
    const { driver, channels, onMessage, onGap } = this.#options;
    const attempt = new AbortController();
    let own: Subscription | null = null;
    let ended = false;
    const onEnd = (): void => {
      ended = true;
      if (own !== null && own === this.#subscription) this.#lose();
    };
    try {
      own = await this.#inTime(driver.subscribe(channels, onMessage, { signal: attempt.signal, onEnd }), () =>
        attempt.abort(),
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
    onGap();
  }

  #lose(): void {
    this.#subscription = null;
    if (this.#closed) return;
    const backoffMs = Math.min(FIRST_RETRY_MS * 2 ** this.#attempts, LAST_RETRY_MS);
    this.#attempts += 1;
    this.#later(backoffMs, () => {
      this.ready().catch(() => this.#lose());
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
