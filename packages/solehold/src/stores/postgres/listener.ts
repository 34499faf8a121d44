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
import { type StoreWatch, type WatchListener, type WatchScope, withDeadline } from "../../store/index.ts";
import { WatchFeed } from "../support/watch-feed.ts";
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
  readonly listening: Listening;
  isEnded: boolean;
  nextProbe: Timer | null;
  lateReset: Timer | null;
}

export class Listener {
  readonly #context: StoreContext;
  readonly #channel: () => Promise<string>;
  readonly #feed: WatchFeed<Session>;
  /** By their payloads, the notifications to itself that did not arrive yet. */
  readonly #probes = new Map<string, () => void>();

  constructor(context: StoreContext, channel: () => Promise<string>) {
    const { env } = context;
    this.#context = context;
    this.#channel = channel;
    const open = (onLost: () => void): Promise<Session> => this.#open(onLost);
    // To open a session takes a few round trips: the last one goes at its next probe, if nobody watches then.
    this.#feed = new WatchFeed({ env, name: "postgres", open, close: end, keepsSource: true });
  }

  /** Resolves once every later change will be reported. Rejects with NotificationsUnavailable where none would be. */
  watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch> {
    return this.#feed.watch(scope, listener);
  }

  close(): Promise<void> {
    return this.#feed.close();
  }

  async #open(onLost: () => void): Promise<Session> {
    const { calls, driver, env, names, timeoutMs } = this.#context;
    const onPayload = (payload: string): void => this.#receive(payload);
    const opening = driver.listen(await this.#channel(), { onPayload, onLost });
    const listening = await calls.connecting(opening, (late) => void late.close());
    const session: Session = { listening, isEnded: false, nextProbe: null, lateReset: null };
    try {
      await this.#probe();
      await calls.connecting(listening.holdLock(names.listenerLock));
      const writers = await this.#awaitOlderWriters();
      if (writers === "some remain")
        session.lateReset = env.timer(timeoutMs, () => this.#feed.announce({ kind: "reset" }));
      this.#scheduleProbe(session, onLost);
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
    else for (const event of eventsFrom(payload)) this.#feed.announce(event);
  }

  #scheduleProbe(session: Session, onLost: () => void): void {
    const { env } = this.#context;
    session.nextProbe = env.timer(jittered(env, PROBE_INTERVAL_MS, 0.2), () => {
      if (!this.#feed.isWatched) return onLost();
      this.#probe().then((isLocked) => {
        if (!isLocked) onLost();
        else if (!session.isEnded) this.#scheduleProbe(session, onLost);
      }, onLost);
    });
  }
}

async function end(session: Session): Promise<void> {
  session.isEnded = true;
  session.nextProbe?.cancel();
  session.lateReset?.cancel();
  await session.listening.close();
}
