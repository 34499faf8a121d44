/**
 * Channels, on a connection of their own. It is opened when somebody first listens and opened again when it is lost;
 * then `onGap` is called, because what was published in between was heard by nobody.
 */
import { jittered, type Timer } from "../../env/index.ts";
import { StoreError, withDeadline } from "../../store/index.ts";
import { Reconnecting } from "../support/reconnecting.ts";
import type { RedisConnection } from "./driver.ts";
import { silenceError, storeErrorFrom } from "./errors.ts";
import { type LinkOptions, openConnection } from "./link.ts";

export interface ChannelListener {
  readonly onMessage: (message: string) => void;
  readonly onGap: () => void;
}

/** A connection on which nobody speaks may be dead; so long goes by before that is noticed. */
const HEARTBEAT_MS = 10_000;

export class RedisSubscriber {
  readonly #options: LinkOptions;
  readonly #listeners = new Map<string, ChannelListener>();
  readonly #connections: Reconnecting<RedisConnection>;
  #current: RedisConnection | null = null;
  #heartbeat: Timer | null = null;
  #isClosed = false;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#connections = new Reconnecting({
      env: options.env,
      name: "redis",
      open: () => this.#open(),
      close: (connection) => connection.close(),
    });
  }

  /** Resolves once every later message of the channel will arrive. */
  async listen(channel: string, listener: ChannelListener): Promise<void> {
    const connection = await this.#inTime(this.#connections.get());
    if (this.#listeners.has(channel)) return;
    try {
      await this.#inTime(connection.subscribe(channel));
    } catch (error) {
      if (error instanceof StoreError && error.kind === "timeout") this.#lose(connection);
      throw error;
    }
    this.#listeners.set(channel, listener);
  }

  forget(channel: string): void {
    if (this.#listeners.delete(channel)) this.#current?.unsubscribe(channel).catch(() => undefined);
  }

  /** The address may mean another server by now: listens there. */
  reconnect(): void {
    if (this.#current !== null) this.#lose(this.#current);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#heartbeat?.cancel();
    this.#listeners.clear();
    await this.#connections.close();
  }

  async #open(): Promise<RedisConnection> {
    let own: RedisConnection | null = null;
    let hasEnded = false;
    const onEnd = (): void => {
      hasEnded = true;
      if (own !== null && own === this.#current) this.#lose(own);
    };
    const onMessage = (channel: string, message: string): void => {
      this.#listeners.get(channel)?.onMessage(message);
    };
    own = await openConnection(this.#options, { onEnd, onMessage });
    try {
      for (const channel of this.#listeners.keys()) await this.#inTime(own.subscribe(channel));
      if (hasEnded) throw storeErrorFrom(new Error("it ended"), this.#options.driver.address, "not-applied");
    } catch (error) {
      own.close();
      throw error;
    }
    this.#current = own;
    this.#beatLater(own);
    for (const { onGap } of this.#listeners.values()) onGap();
    return own;
  }

  #lose(connection: RedisConnection): void {
    if (connection === this.#current) this.#current = null;
    this.#heartbeat?.cancel();
    void this.#connections.lose(connection);
    if (this.#listeners.size > 0) this.#listenAgain();
  }

  /** The pauses between the attempts are those of `Reconnecting`. */
  #listenAgain(): void {
    this.#connections.get().catch(() => {
      if (!this.#isClosed) this.#listenAgain();
    });
  }

  #beatLater(connection: RedisConnection): void {
    const { env } = this.#options;
    this.#heartbeat = env.timer(jittered(env, HEARTBEAT_MS, 0.3), () => {
      this.#inTime(connection.call("ping", [])).then(
        () => {
          if (connection === this.#current) this.#beatLater(connection);
        },
        () => connection === this.#current && this.#lose(connection),
      );
    });
  }

  async #inTime<Value>(promise: Promise<Value>): Promise<Value> {
    const { env, driver, timeoutMs } = this.#options;
    const onExpiry = (): Error => silenceError(driver.address, timeoutMs, "not-applied");
    try {
      return await withDeadline(env, timeoutMs, promise, onExpiry);
    } catch (error) {
      throw storeErrorFrom(error, driver.address, "not-applied");
    }
  }
}
