/**
 * Watching: one ordered consumer of the stream for all watchers of this store, from the moment at which it starts. It
 * resumes by itself where deliveries have a gap. When it ends, with its connection or its stream, another one is
 * started, and all watchers get a reset because events may be missing. It runs as long as somebody watches.
 */
import type { JsMsg } from "@nats-io/jetstream";
import type { Env } from "../../env/index.ts";
import type { StoreWatch, WatchListener, WatchScope } from "../../store/index.ts";
import { WatchFeed } from "../support/watch-feed.ts";
import type { NatsCalls } from "./calls.ts";
import type { NatsSession } from "./session.ts";

/** The client looks after a consumer that is silent for two of these. */
const HEARTBEAT_MS = 5_000;
/** The server removes the consumer of a client that is gone. */
const INACTIVE_MS = 30_000;

interface RunningConsumer {
  stop(): Promise<unknown>;
}

export class NatsWatching {
  readonly #feed: WatchFeed<RunningConsumer>;

  constructor(env: Env, calls: NatsCalls) {
    this.#feed = new WatchFeed({
      env,
      name: "nats",
      open: (onLost) => calls.callSilently((session) => this.#start(session, onLost)),
      // Nobody waits for it: its connection may be gone.
      close: (consumer) => void consumer.stop().catch(() => undefined),
    });
  }

  watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch> {
    return this.#feed.watch(scope, listener);
  }

  close(): Promise<void> {
    return this.#feed.close();
  }

  async #start(session: NatsSession, onLost: () => void): Promise<RunningConsumer> {
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
    void messages.closed().then(onLost, onLost);
    return { stop: () => messages.close().then(() => consumer.delete()) };
  }

  #deliver(session: NatsSession, { subject, seq, data, headers }: JsMsg): void {
    const key = session.data.layout.keyOf(session.data.identity.dataId, subject);
    if (key === null) return;
    const stored = session.stored(key, { seq, data, ...(headers && { header: headers }) });
    this.#feed.announce({ kind: "changed", key, stored });
  }
}
