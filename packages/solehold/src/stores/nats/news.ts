/**
 * Wake-ups: a consumer of the server's that delivers every later change of a record. It ends with its
 * connection; then another one is made, and all watchers are told to look for themselves, as they are when
 * the deliveries have a gap. A consumer that says nothing for three heartbeats counts as dead.
 */
import { decodeRecord } from "../../core/index.ts";
import { type Env, jittered, type Timer } from "../../env/index.ts";
import { isInScope, type StoreEvent, type StoreWatch, type WatchScope } from "../../store/index.ts";
import type { NatsMessage } from "./client.ts";
import type { NatsConnection } from "./connection.ts";
import type { Joined, NatsDataSet } from "./data-set.ts";
import { closedError } from "./errors.ts";
import { answerOf, bufferOf } from "./replies.ts";

interface Watcher {
  readonly scope: WatchScope;
  readonly listener: (event: StoreEvent) => void;
}

/** One consumer, for as long as it delivers. */
interface Feed {
  readonly joined: Joined;
  /** How many messages it has delivered. */
  delivered: number;
  stop: () => void;
}

export interface NewsOptions {
  readonly env: Env;
  readonly connection: NatsConnection;
  readonly data: NatsDataSet;
}

const FIRST_RETRY_MS = 20;
const LAST_RETRY_MS = 2_000;
const HEARTBEAT_MS = 5_000;
const STATUS = 100;
const NANOS_PER_MS = 1_000_000;
const RESET: StoreEvent = Object.freeze({ kind: "reset" });

export class NatsNews {
  readonly #options: NewsOptions;
  readonly #watchers = new Set<Watcher>();
  #feed: Feed | null = null;
  #starting: Promise<void> | null = null;
  #retry: Timer | null = null;
  #silence: Timer | null = null;
  #attempts = 0;
  #closed = false;

  constructor(options: NewsOptions) {
    this.#options = options;
  }

  async watch(scope: WatchScope, listener: (event: StoreEvent) => void): Promise<StoreWatch> {
    if (this.#closed) throw closedError();
    await this.#started();
    const watcher: Watcher = { scope, listener };
    this.#watchers.add(watcher);
    return { close: async () => void this.#watchers.delete(watcher) };
  }

  /** Begins anew, on the data of now. */
  restart(): void {
    if (this.#feed !== null) this.#lose(this.#feed);
  }

  close(): void {
    this.#closed = true;
    this.#watchers.clear();
    this.#retry?.cancel();
    this.#silence?.cancel();
    this.#feed?.stop();
    this.#feed = null;
  }

  /** Resolves while news are delivered; whoever watched before a gap is told of it. */
  async #started(): Promise<void> {
    if (this.#feed !== null) return;
    this.#starting ??= this.#start().finally(() => {
      this.#starting = null;
    });
    await this.#starting;
  }

  async #start(): Promise<void> {
    const { data, connection } = this.#options;
    const joined = await data.join();
    const { wire, id } = joined;
    const feed: Feed = { joined, delivered: 0, stop: () => undefined };
    const { subject, stop } = wire.listen((message) => this.#hear(feed, message));
    feed.stop = stop;
    const { layout } = data;
    const request = {
      stream_name: layout.stream,
      config: {
        deliver_subject: subject,
        deliver_policy: "new",
        ack_policy: "none",
        filter_subject: layout.allRecords(id),
        max_deliver: 1,
        num_replicas: 1,
        mem_storage: true,
        flow_control: true,
        idle_heartbeat: HEARTBEAT_MS * NANOS_PER_MS,
      },
    };
    try {
      const creating = wire.request(layout.api("CONSUMER.CREATE"), JSON.stringify(request)).then(answerOf);
      await connection.inTime(wire, creating, "not-applied");
    } catch (error) {
      stop();
      throw error;
    }
    if (this.#closed) {
      stop();
      throw closedError();
    }
    this.#feed = feed;
    this.#attempts = 0;
    this.#listenFor(feed);
    wire.onEnd(() => this.#lose(feed));
    this.#reset();
  }

  #lose(feed: Feed): void {
    if (feed !== this.#feed) return;
    feed.stop();
    this.#feed = null;
    this.#silence?.cancel();
    if (!this.#closed) this.#startLater();
  }

  #startLater(): void {
    const { env } = this.#options;
    const backoffMs = Math.min(FIRST_RETRY_MS * 2 ** this.#attempts, LAST_RETRY_MS);
    this.#attempts += 1;
    this.#retry?.cancel();
    this.#retry = env.timer(jittered(env, backoffMs, 0.3), () => {
      this.#started().catch(() => {
        if (!this.#closed) this.#startLater();
      });
    });
  }

  #listenFor(feed: Feed): void {
    this.#silence?.cancel();
    this.#silence = this.#options.env.timer(3 * HEARTBEAT_MS, () => this.#lose(feed));
  }

  #hear(feed: Feed, message: NatsMessage): void {
    if (message.headers?.code === STATUS) {
      this.#hearStatus(feed, message);
      return;
    }
    const delivered = deliveryNumber(message.reply ?? "");
    if (delivered !== feed.delivered + 1) this.#reset();
    feed.delivered = delivered;
    const key = this.#options.data.layout.keyOf(feed.joined.id, message.subject);
    if (key === null) return;
    const decoded = decodeRecord(bufferOf(message.data).toString(), key);
    const event: StoreEvent = { kind: "changed", key, record: decoded.ok ? decoded.record : null };
    for (const watcher of this.#watchers) {
      if (isInScope(watcher.scope, key)) this.#tell(watcher, event);
    }
  }

  /** A heartbeat, or the question whether more may be sent. */
  #hearStatus(feed: Feed, { reply = "", headers }: NatsMessage): void {
    const { wire } = feed.joined;
    const stalled = headers?.get("Nats-Consumer-Stalled") ?? "";
    if (reply !== "") wire.tell(reply);
    if (stalled !== "") wire.tell(stalled);
    if (feed !== this.#feed) return;
    this.#listenFor(feed);
    const last = headers?.get("Nats-Last-Consumer") ?? "";
    if (last === "" || Number(last) === feed.delivered) return;
    feed.delivered = Number(last);
    this.#reset();
  }

  #reset(): void {
    for (const watcher of this.#watchers) this.#tell(watcher, RESET);
  }

  /** In a turn of its own, so that a listener that throws is its owner's problem alone. */
  #tell(watcher: Watcher, event: StoreEvent): void {
    this.#options.env.defer(() => {
      if (this.#watchers.has(watcher)) watcher.listener(event);
    });
  }
}

/** From `$JS.ACK.{stream}.{consumer}.{times}.{sequence}.{number}.{time}.{pending}`, or the longer form with a domain. */
function deliveryNumber(reply: string): number {
  const tokens = reply.split(".");
  return Number(tokens[tokens.length > 9 ? 8 : 6]);
}
