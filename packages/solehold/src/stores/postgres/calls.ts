/**
 * Statements with their deadlines, outcomes and retries.
 *
 * A connection whose answer did not come in time, that broke, or that leads to a standby is not used again. A statement
 * is sent again only if the server said that it rolled it back because of a rival, or that it does not know the prepared
 * statement.
 */
import { delay, jittered } from "../../env/index.ts";
import { type FailedOutcome, withDeadline } from "../../store/index.ts";
import { closedError, silenceError } from "../support/failures.ts";
import { configError } from "../support/options.ts";
import type { Row, SqlConnection, SqlDriver, Statement, Values } from "./driver.ts";
import { isRetryable, isStalePrepared, storeErrorFrom } from "./failures.ts";
import type { ResolvedOptions } from "./options.ts";
import { comesFromStandby } from "./statements.ts";

const ATTEMPTS = 6;
const FIRST_DELAY_MS = 4;

/** A statement to send behind another one, on the same connection. */
export interface FollowUp {
  readonly statement: Statement;
  readonly values: Values;
  /** Nobody waits for it, so nobody else would see its failure. */
  onFailure(): void;
}

export type FollowUpOf = (rows: readonly Row[]) => FollowUp | null;

export class Calls {
  readonly #driver: SqlDriver;
  readonly #options: Pick<ResolvedOptions, "env" | "timeoutMs" | "pooler">;
  readonly #followUps = new Set<Promise<void>>();
  #closed = false;
  #prepare: "named" | "unnamed";

  constructor(driver: SqlDriver, options: Pick<ResolvedOptions, "env" | "timeoutMs" | "pooler">) {
    this.#driver = driver;
    this.#options = options;
    this.#prepare = options.pooler === "none" ? "named" : "unnamed";
  }

  /** Rejects with a StoreError that says whether the statement can have happened. `null`: a script of several. */
  async query(statement: Statement, values: Values | null, followUp?: FollowUpOf): Promise<readonly Row[]> {
    const { env } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#send(statement, values, followUp);
      } catch (error) {
        const isStale = isStalePrepared(error);
        if (attempt === ATTEMPTS || !(isStale || isRetryable(error))) throw error;
        if (isStale) this.#prepare = "unnamed";
        else await delay(env, jittered(env, FIRST_DELAY_MS * 2 ** attempt, 0.5));
      }
    }
  }

  /** For what comes before statements: connections and sessions. */
  async connecting<Value>(promise: Promise<Value>, onLate?: (value: Value) => void): Promise<Value> {
    try {
      return await this.#inTime(this.#options.timeoutMs, "not-applied", promise, onLate);
    } catch (error) {
      throw storeErrorFrom(error, "connecting", this.#driver.place);
    }
  }

  /** Nothing can be asked from now on. Resolves when what follows earlier statements is done. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#followUps);
  }

  async #send(statement: Statement, values: Values | null, followUpOf?: FollowUpOf): Promise<readonly Row[]> {
    if (this.#closed) throw closedError("postgres");
    const { env, timeoutMs } = this.#options;
    const dueMs = env.monotonicMs() + timeoutMs;
    const connection = await this.connecting(this.#driver.connect(), (late) => late.release());
    const rows = await this.#run(connection, statement, values, dueMs - env.monotonicMs());
    const followUp = followUpOf?.(rows) ?? null;
    if (followUp === null) connection.release();
    else this.#follow(connection, followUp);
    return rows;
  }

  #follow(connection: SqlConnection, { statement, values, onFailure }: FollowUp): void {
    const done = this.#run(connection, statement, values, this.#options.timeoutMs)
      .then(() => connection.release(), onFailure)
      .finally(() => this.#followUps.delete(done));
    this.#followUps.add(done);
  }

  /** Releases the connection if it fails. */
  async #run(
    connection: SqlConnection,
    { name, text }: Statement,
    values: Values | null,
    timeoutMs: number,
  ): Promise<readonly Row[]> {
    const { place, phase } = this.#driver;
    const statement = { name: this.#prepare === "named" ? name : "", text };
    try {
      const rows = await this.#inTime(timeoutMs, "unknown", connection.query(statement, values));
      if (comesFromStandby(rows))
        throw configError(`PostgreSQL at ${place}: a standby answered: connect to the primary`);
      return rows;
    } catch (cause) {
      const error = storeErrorFrom(cause, phase, place);
      // After a certain refusal the connection is as good as before, unless it leads to the wrong server.
      const isUsable = error.outcome === "not-applied" && error.kind !== "config";
      connection.release(isUsable ? undefined : error);
      throw error;
    }
  }

  #inTime<Value>(
    timeoutMs: number,
    outcome: FailedOutcome,
    promise: Promise<Value>,
    onLate?: (value: Value) => void,
  ): Promise<Value> {
    const { env, timeoutMs: limitMs } = this.#options;
    const onExpiry = (): Error => silenceError(`PostgreSQL at ${this.#driver.place}`, limitMs, outcome);
    return withDeadline(env, timeoutMs, promise, onExpiry, onLate);
  }
}
