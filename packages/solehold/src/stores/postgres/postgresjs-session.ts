/**
 * A session of postgres.js: its own listening connection, which the library renews by itself, and a
 * reserved one that holds the listener's lock. When either was renewed, news may be missing.
 */
import type { PostgresJsClient, PostgresJsReserved } from "./clients.ts";
import type { Row, SessionHandlers, SqlSession } from "./driver.ts";

export interface PostgresJsSessionOptions {
  readonly channel: string;
  readonly handlers: SessionHandlers;
  readonly listen: NonNullable<PostgresJsClient["listen"]>;
  readonly reserve: NonNullable<PostgresJsClient["reserve"]>;
  inTime<Result>(call: PromiseLike<Result>): Promise<Result>;
}

export class PostgresJsSession implements SqlSession {
  readonly #options: PostgresJsSessionOptions;
  readonly #reserved: PostgresJsReserved;
  readonly #unlisten: () => Promise<void>;

  private constructor(
    options: PostgresJsSessionOptions,
    reserved: PostgresJsReserved,
    unlisten: () => Promise<void>,
  ) {
    this.#options = options;
    this.#reserved = reserved;
    this.#unlisten = unlisten;
  }

  static async open(options: PostgresJsSessionOptions): Promise<PostgresJsSession> {
    const { channel, handlers, inTime } = options;
    let listens = 0;
    const onListen = (): void => {
      listens += 1;
      if (listens > 1) handlers.onLost();
    };
    const listening = await inTime(options.listen(channel, handlers.onPayload, onListen));
    const unlisten = (): Promise<void> => listening.unlisten();
    try {
      return new PostgresJsSession(options, await inTime(options.reserve()), unlisten);
    } catch (error) {
      await unlisten();
      throw error;
    }
  }

  run(text: string): Promise<readonly Row[]> {
    return this.#options.inTime(this.#reserved.unsafe(text));
  }

  async close(): Promise<void> {
    const { inTime } = this.#options;
    this.#reserved.release();
    await inTime(this.#unlisten()).catch(() => undefined);
  }
}
