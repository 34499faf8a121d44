/**
 * One connection that is opened when it is first needed and opened again after it was lost. Attempts are spaced out,
 * from 20 ms up to 2 s with jitter, as long as they fail. Nothing here repeats a request: what was under way when a
 * connection was lost fails, with whatever outcome its store finds right.
 */
import { delay, type Env, jittered } from "../../env/index.ts";
import { StoreError, withDeadline } from "../../store/index.ts";
import { closedError } from "./failures.ts";

const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 2_000;

export interface ReconnectingOptions<Connection> {
  readonly env: Env;
  readonly open: () => Promise<Connection>;
  /** Must not throw. */
  readonly close: (connection: Connection) => void | Promise<void>;
  /** For the message of calls after `close`. */
  readonly name: string;
}

export class Reconnecting<Connection> {
  readonly #options: ReconnectingOptions<Connection>;
  readonly #closing = new AbortController();
  #attempt: Promise<Connection> | null = null;
  /** What the last attempt opened, until it is lost. */
  #current: Connection | null = null;
  /** What was lost before the attempt that opened it ended: nobody may get it. */
  readonly #lostEarly = new Set<Connection>();
  #failures = 0;
  #lastFailure: Error | null = null;

  constructor(options: ReconnectingOptions<Connection>) {
    this.#options = options;
  }

  /** The connection, opened if there is none. Rejects as `open` does; the next call then tries again. */
  get(): Promise<Connection> {
    if (this.#isClosed) return Promise.reject(closedError(this.#options.name));
    this.#attempt ??= this.#open();
    return this.#attempt;
  }

  /** As `get`. When that takes longer, rejects with the reason of the last failed attempt, or `onExpiry()`. */
  getWithin(timeoutMs: number, onExpiry: () => Error): Promise<Connection> {
    return withDeadline(this.#options.env, timeoutMs, this.get(), () => this.#lastFailure ?? onExpiry());
  }

  /** This connection is of no use any more. The next `get` opens another; one that was lost before is left alone. */
  async lose(connection: Connection): Promise<void> {
    if (this.#current === connection) this.#forget();
    else if (this.#current === null) this.#lostEarly.add(connection);
    await this.#options.close(connection);
  }

  /** Does not wait for an attempt that is under way: what it opens is closed at once. */
  async close(): Promise<void> {
    this.#closing.abort();
    const connection = this.#current;
    this.#forget();
    if (connection !== null) await this.#options.close(connection);
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  async #open(): Promise<Connection> {
    const { env, open, close } = this.#options;
    try {
      if (this.#failures > 0) await delay(env, this.#pauseMs(), this.#closing.signal);
      if (this.#isClosed) throw closedError(this.#options.name);
      const connection = await open();
      if (this.#lostEarly.has(connection)) throw this.#lostError();
      this.#failures = 0;
      this.#lastFailure = null;
      this.#lostEarly.clear();
      if (!this.#isClosed) {
        this.#current = connection;
        return connection;
      }
      await close(connection);
      throw closedError(this.#options.name);
    } catch (error) {
      this.#failures += 1;
      this.#lastFailure = error instanceof Error ? error : new Error(String(error));
      this.#forget();
      throw error;
    }
  }

  #forget(): void {
    this.#attempt = null;
    this.#current = null;
    this.#lostEarly.clear();
  }

  #pauseMs(): number {
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(this.#failures - 1, 10));
    return jittered(this.#options.env, pauseMs, 0.5);
  }

  #lostError(): StoreError {
    const message = `the connection of the ${this.#options.name} store was lost as soon as it was open: try again`;
    return new StoreError("unreachable", message, { outcome: "not-applied" });
  }
}
