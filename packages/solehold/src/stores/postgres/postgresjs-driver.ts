/**
 * postgres.js, through its documented interface. The library keeps its connections to itself: one that does not answer
 * in time cannot be ended from here, so a call that gave up may still occupy the library's queue.
 *
 * It listens on a connection that nobody else can use, opens it again by itself when it broke, and says so by calling
 * `onListen` once more. The listeners' lock therefore lives in an idle transaction on another connection.
 */
import type { Env } from "../../env/index.ts";
import type { PostgresJsClient } from "./clients.ts";
import {
  type Listening,
  type ListeningHandlers,
  NotificationsUnavailable,
  type SqlConnection,
  type SqlDriver,
  textsOf,
} from "./driver.ts";

/** Limits that would end a transaction that does nothing but hold a lock. The second is new in PostgreSQL 17. */
const WITHOUT_TIMEOUTS =
  "select set_config(name, '0', true) from pg_settings where name in ('idle_in_transaction_session_timeout', 'transaction_timeout')";

interface Subscription {
  handlers: ListeningHandlers;
  unlisten(): Promise<void>;
}

export class PostgresJsDriver implements SqlDriver {
  readonly place = "the given client";
  readonly phase = "unclear";
  readonly #client: PostgresJsClient;
  readonly #env: Env;
  /** By channel, for good: each further `listen` would add a callback that nobody can remove after a reconnection. */
  readonly #subscriptions = new Map<string, Promise<Subscription>>();

  constructor(client: PostgresJsClient, env: Env) {
    this.#client = client;
    this.#env = env;
  }

  async connect(): Promise<SqlConnection> {
    const client = this.#client;
    return {
      query: async ({ name, text }, values) => {
        if (values === null) return Promise.resolve(client.unsafe(text)).then(() => []);
        return (await client.unsafe(text, values, { prepare: name !== "" }).values()).map(textsOf);
      },
      release: () => {},
    };
  }

  async listen(channel: string, handlers: ListeningHandlers): Promise<Listening> {
    // The lock's transaction would occupy the only connection.
    if (this.#client.options?.max === 1) throw new NotificationsUnavailable();
    let subscribing = this.#subscriptions.get(channel);
    if (subscribing === undefined) {
      subscribing = this.#subscribe(channel);
      this.#subscriptions.set(channel, subscribing);
      subscribing.catch(() => this.#subscriptions.delete(channel));
    }
    const subscription = await subscribing;
    subscription.handlers = handlers;
    const ends: (() => void)[] = [];
    return {
      holdLock: (lock) => this.#holdLock(lock, handlers, ends),
      close: async () => {
        subscription.handlers = NOBODY;
        // A lost transaction is known by then: to end it would write to a connection that is gone.
        await new Promise<void>((resolve) => this.#env.defer(resolve));
        for (const end of ends) end();
      },
    };
  }

  async close(): Promise<void> {
    const subscriptions = await Promise.allSettled(this.#subscriptions.values());
    for (const result of subscriptions)
      if (result.status === "fulfilled") result.value.unlisten().catch(() => "it ended with the connection");
  }

  async #subscribe(channel: string): Promise<Subscription> {
    const subscription = { handlers: NOBODY, unlisten: async () => {} };
    let listens = 0;
    const onPayload = (payload: string): void => subscription.handlers.onPayload(payload);
    const onListen = (): void => {
      listens += 1;
      if (listens > 1) subscription.handlers.onLost();
    };
    const { unlisten } = await this.#client.listen(channel, onPayload, onListen);
    subscription.unlisten = unlisten;
    return subscription;
  }

  /** The body never rejects, and never returns once the connection is lost: the library would then use it again. */
  #holdLock(lock: string, { onLost }: ListeningHandlers, ends: (() => void)[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const holding = this.#client.begin(async (transaction) => {
        const ended = new Promise<void>((end) => ends.push(end));
        transaction.unsafe(WITHOUT_TIMEOUTS).then(() => undefined, reject);
        transaction.unsafe(`select pg_advisory_xact_lock_shared(${lock})`).then(() => resolve(), reject);
        await ended;
      });
      holding.catch((error: unknown) => {
        ends.length = 0;
        reject(error);
        onLost();
      });
    });
  }
}

const NOBODY: ListeningHandlers = { onPayload: () => {}, onLost: () => {} };
