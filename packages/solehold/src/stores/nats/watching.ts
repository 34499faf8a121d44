/**
 * Watching: one ordered consumer of the stream for all watchers of this store, from the moment at which it starts. It
 * resumes by itself where deliveries have a gap. When it ends, with its connection or its stream, another one is
 * started, and all watchers get a reset because events may be missing. It runs as long as somebody watches.
 */
import type { JsMsg } from "@nats-io/jetstream";
import { delay, type Env } from "../../env/index.ts";
import type { StoreWatch, WatchListener, WatchScope } from "../../store/index.ts";
import { Watchers } from "../support/watchers.ts";
import type { NatsSession } from "./session.ts";

const RETRY_PAUSE_MS = 200;
/** A consumer that is silent for two of these is looked after by the client. */
const HEARTBEAT_MS = 5_000;

/** A running consumer. */
interface Feed {
  /** Resolves when it has ended, for whatever reason. */
  readonly ended: Promise<unknown>;
  stop(): Promise<unknown>;
}

export interface WatchingOptions {
  readonly env: Env;
  /** Runs on a session that has joined the data; rejects with a StoreError. */
  readonly run: <Value>(work: (session: NatsSession) => Promise<Value>) => Promise<Value>;
  /** The consumer of this session ended although the connection may be alive. */
  readonly onEnd: (session: NatsSession) => void;
}

export class NatsWatching {
  readonly #options: WatchingOptions;
  readonly #watchers = new Watchers();
  #feed: Promise<Feed> | null = null;
  #closed = false;

  constructor(options: WatchingOptions) {
    this.#options = options;
  }

  /** Listeners run in a turn of their own: one that throws is its owner's problem alone. */
  async watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch> {
    const { env } = this.#options;
    const watch = this.#watchers.add(
      scope,
      (event) => env.defer(() => listener(event)),
      () => this.#stopIfUnused(),
    );
    try {
      await this.#started();
      return watch;
    } catch (error) {
      await watch.close();
      throw error;
    }
  }

  close(): void {
    this.#closed = true;
    this.#watchers.clear();
    this.#stopIfUnused();
  }

  #started(): Promise<Feed> {
    if (this.#feed === null) {
      const starting = this.#options.run((session) => this.#start(session));
      this.#feed = starting;
      starting.then(
        (feed) => feed.ended.then(() => this.#restart(starting)),
        () => {
          if (this.#feed === starting) this.#feed = null;
        },
      );
    }
    return this.#feed;
  }

  async #start(session: NatsSession): Promise<Feed> {
    const { client, layout, dataId } = session;
    const { state } = await session.check();
    const consumer = await client.jetstream.consumers.get(layout.stream, {
      filter_subjects: layout.allRecords(dataId),
      opt_start_seq: state.last_seq + 1,
    });
    const messages = await consumer.consume({
      callback: (message) => this.#announce(session, message),
      idle_heartbeat: HEARTBEAT_MS,
      abort_on_missing_resource: true,
    });
    const ended = messages.closed().then(
      () => this.#options.onEnd(session),
      () => this.#options.onEnd(session),
    );
    const stop = async (): Promise<void> => {
      await messages.close();
      await consumer.delete();
    };
    return { ended, stop };
  }

  async #restart(ended: Promise<Feed>): Promise<void> {
    if (this.#feed !== ended) return;
    this.#feed = null;
    while (!this.#closed && this.#watchers.size > 0) {
      try {
        await this.#started();
        this.#watchers.announce({ kind: "reset" });
        return;
      } catch {
        await delay(this.#options.env, RETRY_PAUSE_MS);
      }
    }
  }

  #announce(session: NatsSession, message: JsMsg): void {
    const key = session.layout.keyOf(session.dataId, message.subject);
    if (key === null) return;
    const { seq, data, headers } = message;
    const stored = session.stored(key, { seq, data, header: headers ?? session.client.newHeaders() });
    this.#watchers.announce({ kind: "changed", key, stored });
  }

  #stopIfUnused(): void {
    if (this.#watchers.size > 0 || this.#feed === null) return;
    const feed = this.#feed;
    this.#feed = null;
    // One that cannot be deleted goes by itself after a while without requests.
    feed.then(({ stop }) => stop()).catch(() => undefined);
  }
}
