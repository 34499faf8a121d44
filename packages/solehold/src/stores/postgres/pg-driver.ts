/**
 * Statements through a pool of `pg`. A connection whose answer did not come in time, or that broke, is
 * ended and never used again: its answer could be taken for the next one's.
 */
import type { Env } from "../../env/index.ts";
import type { StoreError } from "../contract.ts";
import { withDeadline, withRetries } from "./calls.ts";
import type { PgPool, PgPoolConnection, PgQueryConfig } from "./clients.ts";
import { Connections } from "./connections.ts";
import type { FollowUp, FollowUpOf, Row, SessionHandlers, SqlDriver, SqlSession, Values } from "./driver.ts";
import { isRetryable, isStalePrepared, storeErrorFrom, timeoutError } from "./failures.ts";
import { PgSession, type SessionConnection } from "./pg-session.ts";
import type { Statement } from "./statements.ts";

export interface PgDriverOptions {
  readonly pool: PgPool;
  readonly ownership: "own" | "borrowed";
  readonly env: Env;
  readonly timeoutMs: number;
  /** Host, port and database, for messages. Never a password. */
  readonly place: string;
  readonly prepare: "named" | "unnamed";
  /** A connection for notifications: one of its own, or one out of the pool. */
  connectSession(): Promise<SessionConnection>;
  /** Ends the pool if it is the store's own. */
  end(): Promise<void>;
}

export class PgDriver implements SqlDriver {
  readonly #options: PgDriverOptions;
  readonly #connections: Connections;
  readonly #followUps = new Set<Promise<void>>();
  #prepare: "named" | "unnamed";

  constructor(options: PgDriverOptions) {
    this.#options = options;
    this.#prepare = options.prepare;
    this.#connections = new Connections(options);
  }

  query(statement: Statement, values: Values, followUp?: FollowUpOf): Promise<readonly Row[]> {
    return this.#call(this.#config(statement, values), followUp).catch((error: unknown) => {
      if (isStalePrepared(error)) this.#prepare = "unnamed";
      else if (!isRetryable(error)) throw error;
      return withRetries(this.#options.env, () => this.#call(this.#config(statement, values), followUp));
    });
  }

  async script(text: string): Promise<void> {
    await withRetries(this.#options.env, () => this.#call({ text }));
  }

  openSession(channel: string, handlers: SessionHandlers): Promise<SqlSession> {
    return PgSession.open({ ...this.#options, channel, handlers });
  }

  async close(): Promise<void> {
    await Promise.all(this.#followUps);
    this.#connections.close();
    await this.#options.end();
  }

  #config(statement: Statement, values: Values): PgQueryConfig {
    const { text, name } = statement;
    return this.#prepare === "named" ? { text, values: [...values], name } : { text, values: [...values] };
  }

  /** One attempt, with one deadline over connecting and answering. */
  #call(config: PgQueryConfig, followUp?: FollowUpOf): Promise<readonly Row[]> {
    const { env, place, timeoutMs } = this.#options;
    return new Promise((resolve, reject) => {
      let connection = this.#connections.take();
      let ended = false;
      const end = (): void => {
        ended = true;
        timer.cancel();
      };
      const timer = env.timer(timeoutMs, () => {
        ended = true;
        const error = timeoutError(place, timeoutMs, connection === null ? "not-applied" : "unknown");
        if (connection !== null) this.#connections.discard(connection, error);
        reject(error);
      });
      const send = (on: PgPoolConnection): void => {
        on.query(config).then(
          ({ rows }) => {
            if (ended) return;
            end();
            this.#finish(on, followUp?.(rows) ?? null);
            resolve(rows);
          },
          (cause: unknown) => {
            if (ended) return;
            end();
            reject(this.#failed(on, cause));
          },
        );
      };
      if (connection !== null) {
        send(connection);
        return;
      }
      this.#connections.connect().then(
        (connected) => {
          if (ended) return this.#connections.give(connected);
          connection = connected;
          send(connected);
        },
        (cause: unknown) => {
          if (ended) return;
          end();
          reject(storeErrorFrom(cause, "connecting", place));
        },
      );
    });
  }

  #failed(connection: PgPoolConnection, cause: unknown): StoreError {
    const error = storeErrorFrom(cause, "sent", this.#options.place);
    if (error.outcome === "unknown") this.#connections.discard(connection, error);
    else this.#connections.give(connection);
    return error;
  }

  /** Sends what follows before anybody hears of the reply; the connection is free when that was answered. */
  #finish(connection: PgPoolConnection, followUp: FollowUp | null): void {
    if (followUp === null) {
      this.#connections.give(connection);
      return;
    }
    const { env, place, timeoutMs } = this.#options;
    const sent = connection.query(this.#config(followUp.statement, followUp.values));
    const expired = (): Error => timeoutError(place, timeoutMs, "unknown");
    const done = withDeadline(sent, { env, timeoutMs, expired })
      .then(
        () => {
          this.#connections.give(connection);
          followUp.settled(null);
        },
        (cause: unknown) => followUp.settled(this.#failed(connection, cause)),
      )
      .finally(() => this.#followUps.delete(done));
    this.#followUps.add(done);
  }
}
