/**
 * Statements with their deadlines, outcomes and retries.
 *
 * A connection whose answer did not come in time, that broke, or that leads to a standby is not used again. A statement
 * is sent again only if the server said that it rolled it back for a rival's sake, or that it does not know the prepared
 * statement.
 */
import { delay, type Env, jittered } from "../../env/index.ts";
import { type FailedOutcome, StoreError, withDeadline } from "../../store/index.ts";
import type { Row, SqlConnection, SqlDriver, Statement, Values } from "./driver.ts";
import { isRetryable, isStalePrepared, readOnlyError, storeErrorFrom, timeoutError } from "./failures.ts";
import { comesFromStandby } from "./statements.ts";

const ATTEMPTS = 6;
const FIRST_DELAY_MS = 4;

/** A statement to send behind another one, on the same connection. */
export interface Behind {
  readonly statement: Statement;
  readonly values: Values;
  /** Nobody waits for it, so nobody else would see its failure. */
  settled(failure: StoreError | null): void;
}

export interface CallsOptions {
  readonly env: Env;
  readonly driver: SqlDriver;
  readonly timeoutMs: number;
  readonly prepare: "named" | "unnamed";
}

export class Calls {
  readonly #options: CallsOptions;
  readonly #behind = new Set<Promise<void>>();
  #prepare: "named" | "unnamed";

  constructor(options: CallsOptions) {
    this.#options = options;
    this.#prepare = options.prepare;
  }

  /** Rejects with a StoreError that says whether the statement can have happened. */
  async query(
    statement: Statement,
    values: Values | null,
    behind?: (rows: readonly Row[]) => Behind | null,
  ): Promise<readonly Row[]> {
    const { env } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#send(statement, values, behind);
      } catch (error) {
        if (!(error instanceof StoreError) || attempt === ATTEMPTS) throw error;
        if (isStalePrepared(error)) this.#prepare = "unnamed";
        else if (isRetryable(error)) await delay(env, jittered(env, FIRST_DELAY_MS * 2 ** attempt, 0.5));
        else throw error;
      }
    }
  }

  /** Several statements without parameters, in one transaction. */
  async script(text: string): Promise<void> {
    await this.query({ name: "", text }, null);
  }

  /** For what is not a statement: opening sessions. */
  async inTime<Value>(promise: Promise<Value>, onLate?: (value: Value) => void): Promise<Value> {
    const { driver, timeoutMs } = this.#options;
    try {
      return await this.#until(timeoutMs, promise, "not-applied", onLate);
    } catch (error) {
      throw storeErrorFrom(error, "connecting", driver.place);
    }
  }

  /** Resolves when what was to follow earlier statements is done. */
  async close(): Promise<void> {
    await Promise.all(this.#behind);
  }

  async #send(
    statement: Statement,
    values: Values | null,
    behind?: (rows: readonly Row[]) => Behind | null,
  ): Promise<readonly Row[]> {
    const { driver, env, timeoutMs } = this.#options;
    const startMs = env.monotonicMs();
    const connection = await this.inTime(driver.connect(), (late) => late.release());
    const remainingMs = timeoutMs - (env.monotonicMs() - startMs);
    const rows = await this.#run(connection, statement, values, remainingMs);
    const next = behind?.(rows) ?? null;
    if (next === null) connection.release();
    else this.#follow(connection, next);
    return rows;
  }

  /** Releases the connection if it fails. */
  async #run(
    connection: SqlConnection,
    { name, text }: Statement,
    values: Values | null,
    timeoutMs: number,
  ): Promise<readonly Row[]> {
    const { driver } = this.#options;
    const statement = { name: this.#prepare === "named" ? name : "", text };
    try {
      const answer = Promise.resolve(connection.query(statement, values));
      const rows = await this.#until(timeoutMs, answer, "unknown");
      if (comesFromStandby(rows)) throw readOnlyError(driver.place);
      return rows;
    } catch (cause) {
      const error = storeErrorFrom(cause, driver.phase, driver.place);
      // What is certain says nothing bad about the connection, unless that it leads to a server of no use.
      const isUsable = error.outcome === "not-applied" && error.kind !== "config";
      connection.release(isUsable ? undefined : error);
      throw error;
    }
  }

  #follow(connection: SqlConnection, { statement, values, settled }: Behind): void {
    const done = this.#run(connection, statement, values, this.#options.timeoutMs)
      .then(
        () => {
          connection.release();
          settled(null);
        },
        (failure: StoreError) => settled(failure),
      )
      .finally(() => this.#behind.delete(done));
    this.#behind.add(done);
  }

  #until<Value>(
    timeoutMs: number,
    promise: Promise<Value>,
    outcome: FailedOutcome,
    onLate?: (value: Value) => void,
  ): Promise<Value> {
    const { driver, env, timeoutMs: limitMs } = this.#options;
    const onExpiry = (): Error => timeoutError(driver.place, limitMs, outcome);
    return withDeadline(env, timeoutMs, promise, onExpiry, onLate);
  }
}
