/**
 * News by LISTEN, over one connection for all watches of the store.
 *
 * While it listens it holds the shared lock that tells writers to announce. A writer looks at the lock once
 * its transaction has a number, so after taking the lock the listener waits until every transaction that
 * already had one is over: from then on no change can pass unannounced.
 *
 * Behind a transaction-mode pooler notifications never arrive. That is found out by announcing something to
 * oneself before the first watch begins; `subscribe` then rejects with NotificationsUnavailable.
 */
import { delay, type Env, jittered, randomId, type Timer } from "../../env/index.ts";
import { StoreError, type WatchScope } from "../../store/index.ts";
import type { SqlDriver, SqlSession } from "./driver.ts";
import { closedError } from "./failures.ts";
import {
  type NewsSource,
  NotificationsUnavailable,
  type ScopeHandlers,
  type ScopeSubscription,
} from "./news.ts";
import { changesFrom, EVERYTHING } from "./payloads.ts";
import { arrayLiteral } from "./sql-text.ts";
import type { Statement } from "./statements.ts";

const PROBE_MARK = "?";
const PROBE_TIMEOUT_MS = 2_000;
const HEARTBEAT_MS = 10_000;
const RECONNECT_MS = 200;
const LONGEST_RECONNECT_MS = 5_000;
const OLD_WRITERS_STEP_MS = 20;
/** Transactions of other programs may be open for hours: after this share of `timeoutMs` a reset makes up for them. */
const OLD_WRITERS_SHARE = 0.2;

const SNAPSHOT =
  "select pg_snapshot_xmin(pg_current_snapshot())::text, pg_snapshot_xmax(pg_current_snapshot())::text";

export interface ListenerOptions {
  readonly env: Env;
  readonly driver: SqlDriver;
  readonly channel: string;
  readonly watchedLock: string;
  readonly notify: Statement;
  /** No write of any client takes longer, for its caller. */
  readonly timeoutMs: number;
}

export class Listener implements NewsSource {
  readonly #options: ListenerOptions;
  readonly #subscribers = new Set<ScopeHandlers>();
  readonly #timers = new Set<Timer>();
  #starting: Promise<void> | null = null;
  #session: SqlSession | null = null;
  #probe: { readonly payload: string; heard(): void } | null = null;
  /** Raised by each end of a session, so that what belonged to an older one stops. */
  #epoch = 0;

  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  async subscribe(_scope: WatchScope, handlers: ScopeHandlers): Promise<ScopeSubscription> {
    this.#subscribers.add(handlers);
    try {
      this.#starting ??= this.#connect("first");
      await this.#starting;
    } catch (error) {
      this.#starting = null;
      this.#subscribers.delete(handlers);
      throw error;
    }
    return { close: () => this.#unsubscribe(handlers) };
  }

  async close(): Promise<void> {
    this.#subscribers.clear();
    await this.#stop();
  }

  async #unsubscribe(handlers: ScopeHandlers): Promise<void> {
    this.#subscribers.delete(handlers);
    if (this.#subscribers.size === 0) await this.#stop();
  }

  async #stop(): Promise<void> {
    const session = this.#forget();
    this.#starting = null;
    if (session !== null) await this.#end(session);
  }

  /** Some libraries keep the connection, so that its end alone would not release the lock. */
  async #end(session: SqlSession): Promise<void> {
    await session
      .run(unlockStatement(this.#options.watchedLock))
      .catch(() => "a connection that is gone holds no lock");
    await session.close();
  }

  async #connect(occasion: "first" | "again"): Promise<void> {
    const { channel, driver, timeoutMs, watchedLock } = this.#options;
    const epoch = this.#epoch;
    const link: { state: "connecting" | "established" | "lost" } = { state: "connecting" };
    const opened = driver.openSession(channel, {
      onPayload: (payload) => this.#hear(payload),
      onLost: () => {
        if (link.state === "established" && epoch === this.#epoch) this.#lost();
        link.state = "lost";
      },
    });
    if (opened === null) throw new NotificationsUnavailable();
    const session = await opened;
    try {
      if (occasion === "first") await this.#assertHeard();
      await session.run(`select pg_advisory_lock_shared(${watchedLock})`);
      const writers = await this.#awaitOlderWriters(session);
      if (epoch !== this.#epoch) throw closedError();
      if (link.state === "lost") throw lostError();
      link.state = "established";
      this.#session = session;
      this.#beat();
      if (writers === "some remain") this.#after(timeoutMs, () => this.#reset());
    } catch (error) {
      await this.#end(session);
      throw error;
    }
  }

  /** Announces something to itself, by another connection, and waits to hear it. */
  async #assertHeard(): Promise<void> {
    const { driver, env, notify } = this.#options;
    const payload = PROBE_MARK + randomId(env);
    const heard = new Promise<boolean>((resolve) => {
      const timer = env.timer(PROBE_TIMEOUT_MS, () => resolve(false), { keepAlive: "yes" });
      this.#probe = {
        payload,
        heard: () => {
          timer.cancel();
          resolve(true);
        },
      };
    });
    await driver.query(notify, [arrayLiteral([payload])]);
    if (!(await heard)) throw new NotificationsUnavailable();
  }

  async #awaitOlderWriters(session: SqlSession): Promise<"all done" | "some remain"> {
    const { env, timeoutMs } = this.#options;
    const numbers = async (): Promise<readonly [oldest: bigint, next: bigint]> => {
      const [[oldest, next] = []] = await session.run(SNAPSHOT);
      return [BigInt(oldest ?? 0), BigInt(next ?? 0)];
    };
    const [, limit] = await numbers();
    for (let waitedMs = 0; waitedMs <= timeoutMs * OLD_WRITERS_SHARE; waitedMs += OLD_WRITERS_STEP_MS) {
      const [oldest] = await numbers();
      if (oldest >= limit) return "all done";
      await delay(env, OLD_WRITERS_STEP_MS);
    }
    return "some remain";
  }

  #hear(payload: string): void {
    if (payload.startsWith(PROBE_MARK)) {
      if (this.#probe?.payload === payload) this.#probe.heard();
      return;
    }
    if (payload === EVERYTHING) this.#reset();
    const changes = changesFrom(payload);
    for (const subscriber of this.#subscribers) subscriber.onChanges(changes);
  }

  #reset(): void {
    for (const subscriber of this.#subscribers) subscriber.onReset();
  }

  /** A broken connection is not always reported: a machine may just vanish. */
  #beat(): void {
    const { env } = this.#options;
    this.#after(jittered(env, HEARTBEAT_MS, 0.2), () => {
      this.#session?.run("select 1").then(
        () => this.#beat(),
        () => this.#lost(),
      );
    });
  }

  #lost(): void {
    const session = this.#forget();
    if (session !== null) void this.#end(session);
    if (this.#subscribers.size > 0) this.#reconnect(RECONNECT_MS);
  }

  #reconnect(delayMs: number): void {
    this.#after(jittered(this.#options.env, delayMs, 0.5), () => {
      if (this.#subscribers.size === 0) return;
      this.#connect("again").then(
        () => this.#reset(),
        () => this.#subscribers.size > 0 && this.#reconnect(Math.min(delayMs * 2, LONGEST_RECONNECT_MS)),
      );
    });
  }

  #forget(): SqlSession | null {
    const session = this.#session;
    this.#session = null;
    this.#epoch += 1;
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
    return session;
  }

  #after(delayMs: number, callback: () => void): void {
    const timer = this.#options.env.timer(delayMs, () => {
      this.#timers.delete(timer);
      callback();
    });
    this.#timers.add(timer);
  }
}

/** Only what this connection holds: to release more would be answered with a warning, which some clients print. */
function unlockStatement(lock: string): string {
  return `select pg_advisory_unlock_shared(${lock}) from pg_locks where locktype = 'advisory' and mode = 'ShareLock' and pid = pg_backend_pid() and (classid::bigint << 32) | objid::bigint = ${lock}`;
}

function lostError(): StoreError {
  return new StoreError("unreachable", "PostgreSQL ended the connection for notifications: try again", {
    outcome: "not-applied",
  });
}
