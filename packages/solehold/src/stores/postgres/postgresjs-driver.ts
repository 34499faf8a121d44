/**
 * postgres.js, through its documented interface. The library keeps its connections to itself: one that does not answer
 * in time cannot be ended from here, so a call that gave up may still occupy the library's queue.
 *
 * It listens on a connection that nobody else can use, opens it again by itself when it broke, and says so by calling
 * `onListen` once more. So the listeners' lock lives on another connection, in a transaction that does nothing else.
 */
import type { Env } from "../../env/index.ts";
import {
  type Listening,
  type ListeningHandlers,
  NotificationsUnavailable,
  type SqlConnection,
  type SqlDriver,
  textsOf,
} from "./driver.ts";

interface PostgresJsQuery extends PromiseLike<unknown> {
  /** Rows as arrays. */
  values(): PromiseLike<readonly (readonly unknown[])[]>;
}

/** `postgres(url)` of postgres.js. */
export interface PostgresJsClient {
  readonly options?: { readonly max?: number };
  unsafe(text: string, values?: (string | null)[], options?: { readonly prepare?: boolean }): PostgresJsQuery;
  begin(body: (transaction: { unsafe(text: string): PostgresJsQuery }) => Promise<void>): Promise<unknown>;
  listen(
    channel: string,
    onPayload: (payload: string) => void,
    onListen?: () => void,
  ): Promise<{ unlisten(): Promise<void> }>;
}

/** Without the limits that would end an idle transaction; the second is new in PostgreSQL 17. */
const WITHOUT_TIMEOUTS =
  "select set_config(name, '0', true) from pg_settings where name in ('idle_in_transaction_session_timeout', 'transaction_timeout')";
const NOBODY: ListeningHandlers = { onPayload: () => {}, onLost: () => {} };

export class PostgresJsDriver implements SqlDriver {
  readonly place = "the given client";
  readonly phase = "unclear";
  readonly #client: PostgresJsClient;
  readonly #env: Env;
  #handlers = NOBODY;
  /** One for each channel: after a reconnection of the library nobody could remove a callback any more. */
  readonly #subscriptions = new Map<string, ReturnType<PostgresJsClient["listen"]>>();

  constructor(client: PostgresJsClient, env: Env) {
    this.#client = client;
    this.#env = env;
  }

  async connect(): Promise<SqlConnection> {
    const client = this.#client;
    return {
      query: async ({ name, text }, values) => {
        if (values === null) return client.unsafe(text).then(() => []);
        const rows = await client.unsafe(text, values, { prepare: name !== "" }).values();
        // After a connection was lost in the middle of an answer, the library counts the rows of the next one from there.
        return rows.filter(() => "not a hole").map(textsOf);
      },
      release: () => {},
    };
  }

  async listen(channel: string, handlers: ListeningHandlers): Promise<Listening> {
    // The lock's transaction would occupy the only connection.
    if (this.#client.options?.max === 1) throw new NotificationsUnavailable();
    await this.#subscribe(channel);
    this.#handlers = handlers;
    let endTransaction = (): void => {};
    let isLost = false;
    const holdLock = (lock: string): Promise<void> =>
      new Promise((resolve, reject) => {
        // It never rejects, and does not return when the connection is lost: the library would write to it again.
        const body: Parameters<PostgresJsClient["begin"]>[0] = async (transaction) => {
          transaction.unsafe(WITHOUT_TIMEOUTS).then(() => {}, reject);
          transaction.unsafe(`select pg_advisory_xact_lock_shared(${lock})`).then(() => resolve(), reject);
          await new Promise<void>((end) => {
            endTransaction = end;
          });
        };
        this.#client.begin(body).catch((error: unknown) => {
          isLost = true;
          reject(error);
          handlers.onLost();
        });
      });
    const close = async (): Promise<void> => {
      if (this.#handlers === handlers) this.#handlers = NOBODY;
      await new Promise<void>((resolve) => this.#env.defer(resolve));
      if (!isLost) endTransaction();
    };
    return { holdLock, close };
  }

  async close(): Promise<void> {
    for (const subscription of this.#subscriptions.values())
      subscription.then(({ unlisten }) => unlisten()).catch(() => "it ended with the connection");
  }

  async #subscribe(channel: string): Promise<void> {
    let listens = 0;
    const onListen = (): void => {
      listens += 1;
      if (listens > 1) this.#handlers.onLost();
    };
    const onPayload = (payload: string): void => this.#handlers.onPayload(payload);
    const known = this.#subscriptions.get(channel);
    const subscription = known ?? this.#client.listen(channel, onPayload, onListen);
    this.#subscriptions.set(channel, subscription);
    await subscription.catch((error: unknown) => {
      this.#subscriptions.delete(channel);
      throw error;
    });
  }
}
