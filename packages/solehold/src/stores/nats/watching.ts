/**
 * Watching: one ordered consumer of the stream for all watchers of this store, from the moment at which it starts. It
 * resumes by itself where deliveries have a gap. When it ends, with its connection or its stream, another one is
 * started, and all watchers get a reset because events may be missing. It runs as long as somebody watches.
 */
import type { JsMsg } from "@nats-io/jetstream";
import { delay, type Env } from "../../env/index.ts";
import type { StoreEvent, StoreWatch, WatchListener, WatchScope } from "../../store/index.ts";
import { Watchers } from "../support/watchers.ts";
import type { NatsCalls } from "./calls.ts";
import type { NatsSession } from "./session.ts";

const RETRY_PAUSE_MS = 200;
/** The client looks after a consumer that is silent for two of these. */
const HEARTBEAT_MS = 5_000;
/** The server removes the consumer of a client that is gone. */
const INACTIVE_MS = 30_000;

/** A running consumer. */
interface Feed {
  /** Settles when it has ended, for whatever reason. */
  readonly ended: Promise<unknown>;
  stop(): Promise<unknown>;
}

export class NatsWatching {
  readonly #env: Env;
  readonly #calls: NatsCalls;
  readonly #watchers = new Watchers();
  #feed: Promise<Feed> | null = null;

  constructor(env: Env, calls: NatsCalls) {
    this.#env = env;
    this.#calls = calls;
  }

  async watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch> {
    const watch = this.#watchers.add(scope, listener, () => this.#stopIfUnused());
    try {
      await this.#started();
      return watch;
    } catch (error) {
      await watch.close();
      throw error;
    }
  }

  close(): void {
    this.#watchers.clear();
    this.#stopIfUnused();
  }

  #started(): Promise<Feed> {
    if (this.#feed === null) {
      const starting = this.#calls.callSilently((session) => this.#start(session));
      this.#feed = starting;
      const onEnd = (): Promise<void> => this.#restart(starting);
      starting.then(
        ({ ended }) => ended.then(onEnd, onEnd),
        () => {
          if (this.#feed === starting) this.#feed = null;
        },
      );
    }
    return this.#feed;
  }

  async #start(session: NatsSession): Promise<Feed> {
    const { layout, identity } = session.data;
    const { state } = await session.check();
    const consumer = await session.client.jetstream.consumers.get(layout.stream, {
      filter_subjects: layout.allRecords(identity.dataId),
      opt_start_seq: state.last_seq + 1,
      inactive_threshold: INACTIVE_MS,
    });
    const messages = await consumer.consume({
      callback: (message) => this.#deliver(session, message),
      idle_heartbeat: HEARTBEAT_MS,
      abort_on_missing_resource: true,
    });
    const stop = (): Promise<unknown> => messages.close().then(() => consumer.delete());
    return { ended: messages.closed(), stop };
  }

  async #restart(ended: Promise<Feed>): Promise<void> {
    if (this.#feed !== ended) return;
    this.#feed = null;
    while (this.#watchers.size > 0) {
      try {
        await this.#started();
        this.#announce({ kind: "reset" });
        return;
      } catch {
        await delay(this.#env, RETRY_PAUSE_MS);
      }
    }
  }

  #deliver(session: NatsSession, { subject, seq, data, headers }: JsMsg): void {
    const key = session.data.layout.keyOf(session.data.identity.dataId, subject);
    if (key === null) return;
    const stored = session.stored(key, { seq, data, ...(headers && { header: headers }) });
    this.#announce({ kind: "changed", key, stored });
  }

  /** In a turn of its own: a listener that throws must not end the consumer. */
  #announce(event: StoreEvent): void {
    this.#env.defer(() => this.#watchers.announce(event));
  }

  #stopIfUnused(): void {
    if (this.#watchers.size > 0 || this.#feed === null) return;
    const feed = this.#feed;
    this.#feed = null;
    feed.then(({ stop }) => stop()).catch(() => undefined);
  }
}
