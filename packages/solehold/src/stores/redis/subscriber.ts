/**
 * Channels, on a connection of their own. It is opened when somebody first listens and opened again when it is lost;
 * then `onGap` is called, because nobody got what was published in between.
 */
import { jittered, type Timer } from "../../env/index.ts";
import { Reconnecting } from "../support/reconnecting.ts";
import type { RedisConnection } from "./driver.ts";
import { type LinkOptions, RedisLink } from "./link.ts";

export interface ChannelListener {
  readonly onMessage: (message: string) => void;
  readonly onGap: () => void;
}

/** A connection on which nobody speaks may be dead, or lead to the wrong server: how long that may go unnoticed. */
const HEARTBEAT_MS = 10_000;

const ping = (connection: RedisConnection): Promise<unknown> => connection.call("ping", []);

export class RedisSubscriber {
  readonly #options: LinkOptions;
  readonly #onHeartbeat: () => void;
  readonly #listeners = new Map<string, ChannelListener>();
  readonly #links: Reconnecting<RedisLink>;
  #current: RedisLink | null = null;
  #heartbeat: Timer | null = null;
  #isClosed = false;

  constructor(options: LinkOptions, onHeartbeat: () => void) {
    this.#options = options;
    this.#onHeartbeat = onHeartbeat;
    const close = (link: RedisLink): void => link.end();
    this.#links = new Reconnecting({ env: options.env, name: "redis", open: () => this.#open(), close });
  }

  /** Resolves once every later message of the channel will arrive. */
  async listen(channel: string, listener: ChannelListener): Promise<void> {
    const link = await this.#links.get();
    if (this.#listeners.has(channel)) return;
    await link.request((connection) => connection.subscribe(channel));
    this.#listeners.set(channel, listener);
  }

  forget(channel: string): void {
    if (!this.#listeners.delete(channel)) return;
    this.#current?.request((connection) => connection.unsubscribe(channel)).catch(() => undefined);
  }

  /** The address may mean another server by now: listens there. */
  reconnect(): void {
    this.#current?.end();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#listeners.clear();
    await this.#links.close();
  }

  async #open(): Promise<RedisLink> {
    const onMessage = (channel: string, message: string): void => {
      this.#listeners.get(channel)?.onMessage(message);
    };
    const link = await RedisLink.open(this.#options, { onEnd: () => this.#onEnd(), onMessage });
    try {
      for (const channel of this.#listeners.keys()) {
        await link.request((connection) => connection.subscribe(channel));
      }
      await link.request(ping);
    } catch (error) {
      link.end();
      throw error;
    }
    this.#current = link;
    this.#beatLater(link);
    for (const { onGap } of this.#listeners.values()) onGap();
    return link;
  }

  /** Does nothing while a connection is being opened: that fails by itself. */
  #onEnd(): void {
    const link = this.#current;
    if (link === null || !link.hasEnded) return;
    this.#current = null;
    this.#heartbeat?.cancel();
    void this.#links.lose(link);
    if (this.#listeners.size > 0) this.#listenAgain();
  }

  /** The pauses between the attempts are those of `Reconnecting`. */
  #listenAgain(): void {
    this.#links.get().catch(() => {
      if (!this.#isClosed) this.#listenAgain();
    });
  }

  #beatLater(link: RedisLink): void {
    const { env } = this.#options;
    this.#heartbeat = env.timer(jittered(env, HEARTBEAT_MS, 0.3), () => {
      this.#onHeartbeat();
      const beaten = link.request(ping);
      beaten.then(() => link === this.#current && this.#beatLater(link)).catch(() => link.end());
    });
  }
}
