/**
 * One connection that is opened when it is first needed and opened again after it was lost. Attempts are spaced out,
 * from 20 ms up to 2 s with jitter, as long as they fail. Nothing here repeats a request: what was under way when a
 * connection was lost fails, with whatever outcome its store finds right.
 */
import { delay, type Env, jittered } from "../../env/index.ts";
import { StoreError } from "../../store/index.ts";

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
  #connection: Promise<Connection> | null = null;
  #failures = 0;
  #closed = false;

  constructor(options: ReconnectingOptions<Connection>) {
    this.#options = options;
  }

  /** The connection, opened if there is none. Rejects as `open` does; the next call then tries again. */
  get(): Promise<Connection> {
    if (this.#closed) {
      const message = `the ${this.#options.name} store was closed`;
      return Promise.reject(new StoreError("closed", message, { outcome: "not-applied" }));
    }
    this.#connection ??= this.#open();
    return this.#connection;
  }

  /** This connection is of no use any more. The next `get` opens another; one that was lost before is left alone. */
  async lose(connection: Connection): Promise<void> {
    const current = this.#connection;
    if (
      current !== null &&
      (await current.catch(() => null)) === connection &&
      this.#connection === current
    ) {
      this.#connection = null;
    }
    await this.#options.close(connection);
  }

  async close(): Promise<void> {
    this.#closed = true;
    const connection = await this.#connection?.catch(() => null);
    this.#connection = null;
    if (connection !== null && connection !== undefined) await this.#options.close(connection);
  }

  async #open(): Promise<Connection> {
    const { env, open, close } = this.#options;
    try {
      if (this.#failures > 0) await delay(env, this.#pauseMs());
      const connection = await open();
      this.#failures = 0;
      if (!this.#closed) return connection;
      await close(connection);
      throw new StoreError("closed", `the ${this.#options.name} store was closed`, {
        outcome: "not-applied",
      });
    } catch (error) {
      this.#failures += 1;
      this.#connection = null;
      throw error;
    }
  }

  #pauseMs(): number {
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(this.#failures - 1, 10));
    return jittered(this.#options.env, pauseMs, 0.5);
  }
}
