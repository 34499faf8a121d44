/**
 * Changes by LISTEN, over one session for all watches of the store.
 *
 * While it listens it holds, in shared mode, the lock that makes writers announce. A writer looks at the lock once its
 * transaction has a number. So after taking the lock the listener waits until every transaction that already had one is
 * over: from then on no change can pass unannounced.
 *
 * Whether notifications arrive (behind a transaction pooler they do not) is found out by sending one to itself, before
 * the lock is taken, and again every few seconds: that also notices a connection that fell silent, and a data set that
 * was replaced, whose channel is another one. After each loss of a session the watches get a reset.
 */
import { delay, type Env, jittered, randomId, type Timer } from "../../env/index.ts";
import {
  StoreError,
  type StoreWatch,
  type WatchListener,
  type WatchScope,
  withDeadline,
} from "../../store/index.ts";
import { Reconnecting } from "../support/reconnecting.ts";
import { Watchers } from "../support/watchers.ts";
import type { Calls } from "./calls.ts";
import { eventFrom } from "./changes.ts";
import { isTrue, type Listening, NotificationsUnavailable, type SqlDriver } from "./driver.ts";
import type { Statements } from "./statements.ts";
import type { ChangeSource } from "./watching.ts";

const PROBE_MARK = "?";
const PROBE_TIMEOUT_MS = 2_000;
const PROBE_INTERVAL_MS = 10_000;
const OLD_WRITERS_STEP_MS = 20;
/** Transactions of other programs may be open for hours: after this share of `timeoutMs` a reset makes up for them. */
const OLD_WRITERS_SHARE = 0.2;

export interface ListenerOptions {
  readonly env: Env;
  readonly driver: SqlDriver;
  readonly calls: Calls;
  readonly statements: Statements;
  readonly lock: string;
  /** No write of any client takes longer, for its caller. */
  readonly timeoutMs: number;
  channel(): Promise<string>;
}

/** A session, from the moment it is opened to its end. */
class Session {
  listening: Listening | null = null;
  state: "open" | "ended" = "open";
  readonly timers: Timer[] = [];
}

export class Listener implements ChangeSource {
  readonly #options: ListenerOptions;
  readonly #watchers = new Watchers();
  readonly #link: Reconnecting<Session>;
  /** By their payloads, the notifications to itself that did not arrive yet. */
  readonly #probes = new Map<string, () => void>();
  #closed = false;

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#link = new Reconnecting({
      env: options.env,
      name: "postgres",
      open: () => this.#open(),
      close: (session) => end(session),
    });
  }

  async watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch> {
    const watch = this.#watchers.add(scope, listener);
    try {
      await this.#session();
      return watch;
    } catch (error) {
      await watch.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#watchers.clear();
    await this.#link.close();
  }

  async #session(): Promise<void> {
    for (;;) if ((await this.#link.get()).state === "open") return;
  }

  async #open(): Promise<Session> {
    const { calls, driver, lock, timeoutMs } = this.#options;
    const session = new Session();
    const handlers = {
      onPayload: (payload: string) => this.#receive(payload),
      onLost: () => this.#lose(session),
    };
    const channel = await this.#options.channel();
    const listening = await calls.inTime(driver.listen(channel, handlers), (late) => void late.close());
    session.listening = listening;
    try {
      await this.#probe();
      await calls.inTime(listening.holdLock(lock));
      const writers = await this.#awaitOlderWriters();
      if (session.state === "ended") throw lostError();
      if (writers === "some remain") this.#after(session, timeoutMs, () => this.#reset());
      this.#scheduleProbe(session);
      return session;
    } catch (error) {
      await end(session);
      throw error;
    }
  }

  /** Sends a notification to itself and waits for it. Resolves with whether anybody holds the lock. */
  async #probe(): Promise<boolean> {
    const { calls, env, statements } = this.#options;
    const payload = PROBE_MARK + randomId(env);
    try {
      const arrival = new Promise<void>((resolve) => this.#probes.set(payload, resolve));
      const [row = []] = await calls.query(statements.probe, [payload]);
      await withDeadline(env, PROBE_TIMEOUT_MS, arrival, () => new NotificationsUnavailable());
      return isTrue(row[0]);
    } finally {
      this.#probes.delete(payload);
    }
  }

  async #awaitOlderWriters(): Promise<"all done" | "some remain"> {
    const { calls, env, statements, timeoutMs } = this.#options;
    const transactions = async (): Promise<readonly [oldest: bigint, next: bigint]> => {
      const [[oldest, next] = []] = await calls.query(statements.transactions, []);
      return [BigInt(oldest ?? 0), BigInt(next ?? 0)];
    };
    const [, limit] = await transactions();
    for (let waitedMs = 0; waitedMs <= timeoutMs * OLD_WRITERS_SHARE; waitedMs += OLD_WRITERS_STEP_MS) {
      const [oldest] = await transactions();
      if (oldest >= limit) return "all done";
      await delay(env, OLD_WRITERS_STEP_MS);
    }
    return "some remain";
  }

  #receive(payload: string): void {
    if (payload.startsWith(PROBE_MARK)) {
      this.#probes.get(payload)?.();
      return;
    }
    const event = eventFrom(payload);
    if (event !== null) this.#watchers.announce(event);
  }

  #reset(): void {
    this.#watchers.announce({ kind: "reset" });
  }

  /** A session outlives its last watch until then: the next one may come soon, and opening takes a few round trips. */
  #scheduleProbe(session: Session): void {
    this.#after(session, jittered(this.#options.env, PROBE_INTERVAL_MS, 0.2), () => {
      if (this.#watchers.size === 0) return this.#lose(session);
      this.#probe().then(
        (isLocked) => (isLocked ? this.#scheduleProbe(session) : this.#lose(session)),
        () => this.#lose(session),
      );
    });
  }

  #after(session: Session, delayMs: number, callback: () => void): void {
    const timer = this.#options.env.timer(delayMs, () => session.state === "open" && callback());
    session.timers.push(timer);
  }

  #lose(session: Session): void {
    if (session.state === "ended") return;
    session.state = "ended";
    this.#link.lose(session).then(() => this.#reopen());
  }

  async #reopen(): Promise<void> {
    while (this.#watchers.size > 0 && !this.#closed) {
      try {
        await this.#session();
        this.#reset();
        return;
      } catch {
        // The next attempt comes after a pause.
      }
    }
  }
}

async function end(session: Session): Promise<void> {
  session.state = "ended";
  for (const timer of session.timers) timer.cancel();
  await session.listening?.close().catch(() => "it ended with its connection");
}

function lostError(): StoreError {
  return new StoreError("unreachable", "PostgreSQL ended the connection for notifications: try again", {
    outcome: "not-applied",
  });
}
