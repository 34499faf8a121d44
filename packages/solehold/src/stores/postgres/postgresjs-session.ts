/**
 * A session of postgres.js: the connection on which the library listens. It has one for all channels, opens
 * it anew by itself when it broke, and says so by calling `onListen` again; what was announced in between
 * is lost, and so is the lock that was held on it.
 *
 * The connection is reached through a property that the library does not document. Without it nothing else
 * would be safe: a reserved connection that broke ends the whole process at its next use. Where the property
 * is missing the store looks for changes instead.
 */
import type { PostgresJsClient } from "./clients.ts";
import { type Row, type SessionHandlers, type SqlSession, textsOf } from "./driver.ts";
import { NotificationsUnavailable } from "./news.ts";

type Listen = NonNullable<PostgresJsClient["listen"]>;

export interface PostgresJsSessionOptions {
  readonly channel: string;
  readonly handlers: SessionHandlers;
  readonly client: PostgresJsClient;
  readonly listen: Listen;
  inTime<Result>(call: PromiseLike<Result>): Promise<Result>;
}

export class PostgresJsSession implements SqlSession {
  readonly #options: PostgresJsSessionOptions;
  readonly #connection: Pick<PostgresJsClient, "unsafe">;
  readonly #unlisten: () => Promise<void>;

  private constructor(
    options: PostgresJsSessionOptions,
    connection: Pick<PostgresJsClient, "unsafe">,
    unlisten: () => Promise<void>,
  ) {
    this.#options = options;
    this.#connection = connection;
    this.#unlisten = unlisten;
  }

  static async open(options: PostgresJsSessionOptions): Promise<PostgresJsSession> {
    const { channel, client, handlers, inTime, listen } = options;
    let listens = 0;
    const onListen = (): void => {
      listens += 1;
      if (listens === 2) handlers.onLost();
    };
    const onPayload = (payload: string): void => handlers.onPayload(payload);
    const listening = await inTime(listen.call(client, channel, onPayload, onListen));
    const unlisten = (): Promise<void> => listening.unlisten();
    const connection = listeningConnection(listen);
    if (connection !== null) return new PostgresJsSession(options, connection, unlisten);
    await unlisten();
    throw new NotificationsUnavailable();
  }

  async run(text: string): Promise<readonly Row[]> {
    return (await this.#options.inTime(this.#connection.unsafe(text).values())).map(textsOf);
  }

  async close(): Promise<void> {
    await this.#options.inTime(this.#unlisten()).catch(() => "the library forgets it with the connection");
  }
}

function listeningConnection(listen: Listen): Pick<PostgresJsClient, "unsafe"> | null {
  const found: unknown = Reflect.get(listen, "sql");
  return typeof found === "function" && "unsafe" in found ? (found as Listen & PostgresJsClient) : null;
}
