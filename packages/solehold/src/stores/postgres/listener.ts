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
import { delay, jittered, randomId, type Timer } from "../../env/index.ts";
import {
  StoreError,
  type StoreWatch,
  type WatchListener,
  type WatchScope,
  withDeadline,
} from "../../store/index.ts";
import { Reconnecting } from "../support/reconnecting.ts";
import { Watchers } from "../support/watchers.ts";
import { eventsFrom } from "./changes.ts";
import { isTrue, type Listening, NotificationsUnavailable } from "./driver.ts";
import type { StoreContext } from "./options.ts";

const PROBE_MARK = "?";
const PROBE_TIMEOUT_MS = 2_000;
const PROBE_INTERVAL_MS = 10_000;
const OLD_WRITERS_STEP_MS = 20;
/** Transactions of other programs may be open for hours: after this share of `timeoutMs` a reset makes up for them. */
const OLD_WRITERS_SHARE = 0.2;

interface Session {
  listening: Listening | null;
  state: "open" | "ended";
  nextProbe: Timer | null;
  lateReset: Timer | null;
}

export class Listener {
  readonly #context: StoreContext;
  readonly #channel: () => Promise<string>;
  readonly #watchers = new Watchers();
  readonly #link: Reconnecting<Session>;
  /** By their payloads, the notifications to itself that did not arrive yet. */
  readonly #probes = new Map<string, () => void>();

  constructor(context: StoreContext, channel: () => Promise<string>) {
    this.#context = context;
    this.#channel = channel;
    this.#link = new Reconnecting({
      env: context.env,
      name: "postgres",
      open: () => this.#open(),
      close: end,
    });
  }

  /** Resolves once every later change will be reported. Rejects with NotificationsUnavailable where none would be. */
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
    this.#watchers.clear();
    await this.#link.close();
  }

  async #session(): Promise<void> {
    while ((await this.#link.get()).state === "ended");
  }

  async #open(): Promise<Session> {
    const { calls, driver, env, names, timeoutMs } = this.#context;
    const session: Session = { listening: null, state: "open", nextProbe: null, lateReset: null };
    const onPayload = (payload: string): void => this.#receive(payload);
    const onLost = (): void => this.#lose(session);
    const listening = driver.listen(await this.#channel(), { onPayload, onLost });
    session.listening = await calls.connecting(listening, (late) => void late.close());
    try {
      await this.#probe();
      await calls.connecting(session.listening.holdLock(names.listenerLock));
      const writers = await this.#awaitOlderWriters();
      if (session.state === "ended") throw lostError();
      if (writers === "some remain") session.lateReset = env.timer(timeoutMs, () => this.#reset());
      this.#scheduleProbe(session);
      return session;
    } catch (error) {
      await end(session);
      throw error;
    }
  }

  /** Sends a notification to itself and waits for it. Resolves with whether anybody holds the lock. */
  async #probe(): Promise<boolean> {
    const { calls, env, statements } = this.#context;
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
    const { calls, env, statements, timeoutMs } = this.#context;
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
    if (payload.startsWith(PROBE_MARK)) this.#probes.get(payload)?.();
    else for (const event of eventsFrom(payload)) this.#watchers.announce(event);
  }

  #reset(): void {
    this.#watchers.announce({ kind: "reset" });
  }

  /** A session outlives its last watch until then: the next one may come soon, and to open takes a few round trips. */
  #scheduleProbe(session: Session): void {
    const { env } = this.#context;
    session.nextProbe = env.timer(jittered(env, PROBE_INTERVAL_MS, 0.2), () => {
      if (this.#watchers.size === 0) return this.#lose(session);
      this.#probe().then(
        (isLocked) =>
          isLocked && session.state === "open" ? this.#scheduleProbe(session) : this.#lose(session),
        () => this.#lose(session),
      );
    });
  }

  #lose(session: Session): void {
    if (session.state === "ended") return;
    session.state = "ended";
    this.#link.lose(session).then(() => this.#reopen());
  }

  async #reopen(): Promise<void> {
    while (this.#watchers.size > 0) {
      // A failed attempt is followed by another one, after a pause.
      const isOpen = await this.#session().then(
        () => true,
        () => false,
      );
      if (isOpen) return this.#reset();
    }
  }
}

async function end(session: Session): Promise<void> {
  session.state = "ended";
  session.nextProbe?.cancel();
  session.lateReset?.cancel();
  await session.listening?.close();
}

function lostError(): StoreError {
  const message = "PostgreSQL ended the connection for notifications: try again";
  return new StoreError("unreachable", message, { outcome: "not-applied" });
}
