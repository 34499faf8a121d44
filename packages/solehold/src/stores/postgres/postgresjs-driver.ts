/**
 * Statements through postgres.js. It keeps its connections to itself: one that does not answer in time
 * cannot be ended from here, so a call that gave up may still hold its place in the library's queue.
 */
import type { Env } from "../../env/index.ts";
import { withDeadline, withRetries } from "./calls.ts";
import type { PostgresJsClient } from "./clients.ts";
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
import { isStalePrepared, storeErrorFrom, timeoutError } from "./failures.ts";
import { PostgresJsSession } from "./postgresjs-session.ts";
import type { Statement } from "./statements.ts";

const PLACE = "the given client";

export interface PostgresJsDriverOptions {
  readonly client: PostgresJsClient;
  readonly env: Env;
  readonly timeoutMs: number;
  readonly prepare: "named" | "unnamed";
}

export class PostgresJsDriver implements SqlDriver {
  readonly counts = "no";
  readonly confirms = "no";
  readonly #options: PostgresJsDriverOptions;
  readonly #followUps = new Set<Promise<void>>();
  #prepare: "named" | "unnamed";

  constructor(options: PostgresJsDriverOptions) {
    this.#options = options;
    this.#prepare = options.prepare;
  }

  query(statement: Statement, values: Values, followUp?: FollowUpOf): Promise<readonly Row[]> {
    return withRetries(this.#options.env, async () => {
      const rows = await this.#send(statement, values).catch((error: unknown) => {
        if (!isStalePrepared(error)) throw error;
        this.#prepare = "unnamed";
        return this.#send(statement, values);
      });
      const next = followUp?.(rows) ?? null;
      if (next !== null) this.#follow(next);
      return rows;
    });
  }

  async script(text: string): Promise<void> {
    const { env, client } = this.#options;
    await withRetries(env, () => this.#inTime(client.unsafe(text)));
  }

  openSession(channel: string, handlers: SessionHandlers): Promise<SqlSession> | null {
    const { client } = this.#options;
    if (client.listen === undefined) return null;
    const inTime = <Result>(call: PromiseLike<Result>): Promise<Result> => this.#inTime(call);
    return PostgresJsSession.open({ channel, handlers, client, listen: client.listen, inTime });
  }

  async close(): Promise<void> {
    await Promise.all(this.#followUps);
  }

  async #send(statement: Statement, values: Values): Promise<readonly Row[]> {
    const options = { prepare: this.#prepare === "named" };
    const rows = await this.#inTime(this.#options.client.unsafe(statement.text, values, options).values());
    return rows.map(textsOf);
  }

  #follow(next: FollowUp): void {
    const { statement, values } = next.message();
    const done = this.#send(statement, values)
      .then(
        () => next.settled(null),
        (failure: Error) => next.settled(failure),
      )
      .finally(() => this.#followUps.delete(done));
    this.#followUps.add(done);
  }

  async #inTime<Result>(call: PromiseLike<Result>): Promise<Result> {
    const { env, timeoutMs } = this.#options;
    const expired = (): Error => timeoutError(PLACE, timeoutMs, "unknown");
    try {
      return await withDeadline(call, { env, timeoutMs, expired });
    } catch (cause) {
      throw storeErrorFrom(cause, "unclear", PLACE);
    }
  }
}
