/**
 * Statements through a pool of `pg`. A connection whose answer did not come in time, or that broke, is
 * ended and never used again: its answer could be taken for the next one's.
 */
import type { Env } from "../../env/index.ts";
import type { StoreError } from "../contract.ts";
import { withDeadline, withRetries } from "./calls.ts";
import type { PgPool, PgPoolConnection, PgQueryConfig } from "./clients.ts";
import type { FollowUp, Row, SessionHandlers, SqlDriver, SqlSession, Values } from "./driver.ts";
import { isStalePrepared, storeErrorFrom, timeoutError } from "./failures.ts";
import { PgSession } from "./pg-session.ts";
import type { Statement } from "./statements.ts";

export interface PgDriverOptions {
  readonly pool: PgPool;
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

/** A connection, and how to be rid of it. */
export interface SessionConnection {
  readonly connection: Omit<PgPoolConnection, "release">;
  end(): Promise<void>;
}

export class PgDriver implements SqlDriver {
  readonly #options: PgDriverOptions;
  readonly #followUps = new Set<Promise<void>>();
  #prepare: "named" | "unnamed";

  constructor(options: PgDriverOptions) {
    this.#options = options;
    this.#prepare = options.prepare;
    // A pool without a listener ends the process when an idle connection breaks.
    options.pool.on("error", ignore);
  }

  query(
    statement: Statement,
    values: Values,
    followUp?: (rows: readonly Row[]) => FollowUp | null,
  ): Promise<readonly Row[]> {
    return withRetries(this.#options.env, async () => {
      try {
        return await this.#run(this.#config(statement, values), followUp);
      } catch (error) {
        if (!isStalePrepared(error) || this.#prepare === "unnamed") throw error;
        this.#prepare = "unnamed";
        return this.#run(this.#config(statement, values), followUp);
      }
    });
  }

  async script(text: string): Promise<void> {
    await withRetries(this.#options.env, () => this.#run({ text }));
  }

  openSession(channel: string, handlers: SessionHandlers): Promise<SqlSession> {
    return PgSession.open({ ...this.#options, channel, handlers });
  }

  async close(): Promise<void> {
    await Promise.all(this.#followUps);
    this.#options.pool.removeListener("error", ignore);
    await this.#options.end();
  }

  #config(statement: Statement, values: Values): PgQueryConfig {
    const plain = { text: statement.text, values: [...values] };
    return this.#prepare === "named" ? { ...plain, name: statement.name } : plain;
  }

  async #run(
    config: PgQueryConfig,
    followUp?: (rows: readonly Row[]) => FollowUp | null,
  ): Promise<readonly Row[]> {
    const { env, place, timeoutMs } = this.#options;
    const startedMs = env.monotonicMs();
    const connection = await this.#connect();
    const leftMs = Math.max(0, timeoutMs - (env.monotonicMs() - startedMs));
    const expired = (): Error => timeoutError(place, timeoutMs, "unknown");
    try {
      const { rows } = await withDeadline(connection.query(config), { env, timeoutMs: leftMs, expired });
      this.#finish(connection, followUp?.(rows) ?? null);
      return rows;
    } catch (cause) {
      const error = storeErrorFrom(cause, "sent", place);
      giveBack(connection, error.outcome === "unknown" ? error : undefined);
      throw error;
    }
  }

  async #connect(): Promise<PgPoolConnection> {
    const { env, place, pool, timeoutMs } = this.#options;
    try {
      const connection = await withDeadline(pool.connect(), {
        env,
        timeoutMs,
        expired: () => timeoutError(place, timeoutMs, "not-applied"),
        late: (unused) => unused.release(),
      });
      connection.on("error", ignore);
      return connection;
    } catch (cause) {
      throw storeErrorFrom(cause, "connecting", place);
    }
  }

  /** Sends what follows before anybody hears of the reply, then gives the connection back. */
  #finish(connection: PgPoolConnection, followUp: FollowUp | null): void {
    if (followUp === null) {
      giveBack(connection);
      return;
    }
    const { env, place, timeoutMs } = this.#options;
    const sent = connection.query(this.#config(followUp.statement, followUp.values));
    const expired = (): Error => timeoutError(place, timeoutMs, "unknown");
    const done = withDeadline(sent, { env, timeoutMs, expired })
      .then(
        () => null,
        (cause: unknown) => storeErrorFrom(cause, "sent", place),
      )
      .then((failure) => {
        giveBack(connection, failure ?? undefined);
        followUp.settled(failure);
        this.#followUps.delete(done);
      });
    this.#followUps.add(done);
  }
}

function giveBack(connection: PgPoolConnection, failure?: StoreError): void {
  // Ended connections may still report errors; those in the pool are the pool's to listen to.
  if (failure === undefined) connection.removeListener("error", ignore);
  connection.release(failure);
}

/** Whatever an event reports also fails the call it concerns. */
function ignore(): void {}
