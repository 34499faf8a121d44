/**
 * Statements through a pool of `pg`. A connection whose answer did not come in time, or that broke, is
 * ended and never used again: the next call would wait behind the old one.
 */
import type { Env } from "../../env/index.ts";
import { Deadlines, retryDelayMs } from "./calls.ts";
import type { PgPool, PgPoolConnection } from "./clients.ts";
import { Connections } from "./connections.ts";
import {
  type FollowUp,
  type FollowUpOf,
  type Row,
  type SessionHandlers,
  type SqlDriver,
  type SqlSession,
  textsOf,
  type Values,
} from "./driver.ts";
import { isStalePrepared, storeErrorFrom, timeoutError, unconfirmedError } from "./failures.ts";
import { PgQuery, type QueryEnd } from "./pg-query.ts";
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

interface Call {
  readonly statement: Statement;
  /** Null for a script, which may hold several statements. */
  readonly values: Values | null;
  readonly followUp: FollowUpOf | undefined;
  resolve(rows: readonly Row[]): void;
  reject(error: Error): void;
}

/** One try of a call. It is over when its deadline no longer knows it. */
interface Attempt {
  readonly call: Call;
  readonly number: number;
  /** Null until there is one: then nothing was sent. */
  connection: PgPoolConnection | null;
}

/** All columns as the server writes them, in their order. */
const AS_TEXT = { rowMode: "array", types: { getTypeParser: () => (text: string) => text } } as const;

export class PgDriver implements SqlDriver {
  readonly #options: PgDriverOptions;
  readonly #connections: Connections;
  readonly #deadlines: Deadlines<Attempt>;
  /** Calls that nobody waits for but `close`, and how many there will be in this turn. */
  readonly #followUps = new Set<Promise<void>>();
  #followingSoon = 0;
  #prepare: "named" | "unnamed";
  readonly counts: "yes" | "no";
  readonly confirms: "yes" | "no";

  constructor(options: PgDriverOptions) {
    this.#options = options;
    this.counts = options.ownership === "own" ? "yes" : "no";
    this.confirms = this.counts;
    this.#prepare = options.prepare;
    this.#connections = new Connections(options);
    this.#deadlines = new Deadlines(options.env, options.timeoutMs, (attempt) => this.#expire(attempt));
  }

  query(statement: Statement, values: Values | null, followUp?: FollowUpOf): Promise<readonly Row[]> {
    return new Promise((resolve, reject) => {
      this.#start({ statement, values, followUp, resolve, reject }, 1);
    });
  }

  async script(text: string): Promise<void> {
    await this.query({ name: "", text }, null);
  }

  openSession(channel: string, handlers: SessionHandlers): Promise<SqlSession> {
    return PgSession.open({ ...this.#options, channel, handlers });
  }

  async close(): Promise<void> {
    const { env } = this.#options;
    if (this.#followingSoon > 0) await new Promise<void>((resolve) => env.defer(resolve));
    await Promise.all(this.#followUps);
    this.#deadlines.close();
    this.#connections.close();
    await this.#options.end();
  }

  #start(call: Call, number: number): void {
    const attempt: Attempt = { call, number, connection: this.#connections.take() };
    this.#deadlines.add(attempt);
    if (attempt.connection === null) this.#connect(attempt);
    else this.#send(attempt, attempt.connection);
  }

  #connect(attempt: Attempt): void {
    this.#connections.connect().then(
      (connection) => {
        if (!this.#deadlines.has(attempt)) return this.#connections.give(connection);
        attempt.connection = connection;
        this.#send(attempt, connection);
      },
      (cause: unknown) => {
        if (!this.#deadlines.remove(attempt)) return;
        attempt.call.reject(storeErrorFrom(cause, "connecting", this.#options.place));
      },
    );
  }

  #send(attempt: Attempt, connection: PgPoolConnection): void {
    const { call } = attempt;
    const { followUp, resolve } = call;
    const { confirmedBy } = call.statement;
    const end: QueryEnd = (error, rows) => {
      if (!this.#deadlines.remove(attempt)) return;
      if (error !== null) return this.#fail(attempt, connection, error);
      const next = followUp?.(rows) ?? null;
      if (next === null) this.#connections.give(connection);
      else if (next.pace === "now") this.#follow(connection, next);
      else this.#followSoon(connection, next);
      resolve(rows);
    };
    if (confirmedBy === undefined) this.#execute(call, connection, end);
    else this.#executeConfirmed(call, confirmedBy, connection, end);
  }

  /** A caller's pool may be a wrapper of some kind, so it is asked in the documented way. */
  #execute(
    { statement, values }: Pick<Call, "statement" | "values">,
    connection: PgPoolConnection,
    end: QueryEnd,
  ): void {
    const failed = (error: Error): void => end(error, []);
    if (values === null) {
      // The results of a script, one for each statement, are of no interest.
      connection.query({ text: statement.text }).then(() => end(null, []), failed);
    } else if (this.#options.ownership === "own") {
      connection.query(new PgQuery(this.#prepared(statement), values, end));
    } else {
      const { name, text } = this.#prepared(statement);
      const config = { text, values, ...AS_TEXT, ...(name === "" ? {} : { name }) };
      connection.query(config).then(({ rows }) => end(null, rows.map(textsOf)), failed);
    }
  }

  /** Two transactions in one message: the server begins the second when it has answered the first. */
  #executeConfirmed(call: Call, confirmedBy: Statement, connection: PgPoolConnection, end: QueryEnd): void {
    const { place } = this.#options;
    let answer: { readonly error: Error | null; readonly rows: readonly Row[] } = { error: null, rows: [] };
    const first = new PgQuery(this.#prepared(call.statement), call.values ?? [], (error, rows) => {
      answer = { error, rows };
    });
    const second = new PgQuery(this.#prepared(confirmedBy), [], (error) =>
      end(answer.error ?? (error === null ? null : unconfirmedError(error, place)), answer.rows),
    );
    first.followedBy(second);
    connection.query(first);
    connection.query(second);
  }

  #prepared(statement: Statement): Statement {
    return this.#prepare === "named" ? statement : { ...statement, name: "" };
  }

  #fail({ call, number }: Attempt, connection: PgPoolConnection, cause: unknown): void {
    const { env, place } = this.#options;
    const error = storeErrorFrom(cause, "sent", place);
    if (error.outcome === "unknown") this.#connections.discard(connection, error);
    else this.#connections.give(connection);
    const stale = isStalePrepared(error);
    if (stale) this.#prepare = "unnamed";
    const delayMs = stale ? 0 : retryDelayMs(env, error, number);
    if (delayMs === null) call.reject(error);
    else env.timer(delayMs, () => this.#start(call, number + 1), { keepAlive: "yes" });
  }

  #expire({ call, connection }: Attempt): void {
    const { place, timeoutMs } = this.#options;
    const error = timeoutError(place, timeoutMs, connection === null ? "not-applied" : "unknown");
    if (connection !== null) this.#connections.discard(connection, error);
    call.reject(error);
  }

  #followSoon(connection: PgPoolConnection, followUp: FollowUp): void {
    this.#followingSoon += 1;
    this.#options.env.defer(() => {
      this.#followingSoon -= 1;
      this.#follow(connection, followUp);
    });
  }

  /** The connection is free for others when this was answered, too. */
  #follow(connection: PgPoolConnection, followUp: FollowUp): void {
    const done = new Promise<readonly Row[]>((resolve, reject) => {
      const call: Call = {
        get statement() {
          return followUp.message().statement;
        },
        get values() {
          return followUp.message().values;
        },
        followUp: undefined,
        resolve,
        reject,
      };
      const attempt: Attempt = { call, number: 1, connection };
      this.#deadlines.add(attempt);
      this.#send(attempt, connection);
    })
      .then(
        () => followUp.settled(null),
        (failure: Error) => followUp.settled(failure),
      )
      .finally(() => this.#followUps.delete(done));
    this.#followUps.add(done);
  }
}
