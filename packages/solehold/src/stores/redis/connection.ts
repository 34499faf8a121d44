/**
 * A connection that comes back. Callers get the wire of the moment, or wait for the next one, but never
 * longer than the timeout. A request is sent on one wire, once: if that ends or stays silent the outcome
 * is unknown, and finding out is the caller's business.
 */
import { type Env, jittered, type Timer } from "../../env/index.ts";
import { type FailedOutcome, StoreError } from "../../store/index.ts";
import { Deadlines } from "../support/deadlines.ts";
import type { RedisArgument, RedisDriver, RedisWire } from "./driver.ts";
import { closedError, isLasting, isMissingScript, storeErrorFrom } from "./errors.ts";
import type { RedisScript } from "./scripts.ts";

const FIRST_RETRY_MS = 20;
const LAST_RETRY_MS = 2_000;

interface NextWire {
  readonly promise: Promise<RedisWire>;
  readonly resolve: (wire: RedisWire) => void;
  readonly reject: (error: StoreError) => void;
}

export class RedisConnection {
  readonly #env: Env;
  readonly #driver: RedisDriver;
  readonly #timeoutMs: number;
  readonly #deadlines: Deadlines;
  #wire: RedisWire | null = null;
  #next: NextWire = nextWire();
  #lastFailure: StoreError | null = null;
  #retry: Timer | null = null;
  #attempts = 0;
  #closed = false;

  private constructor(env: Env, driver: RedisDriver, timeoutMs: number) {
    this.#env = env;
    this.#driver = driver;
    this.#timeoutMs = timeoutMs;
    this.#deadlines = new Deadlines(env, timeoutMs);
  }

  /** The first attempt is the only one: a wrong address is told at once. */
  static async open(env: Env, driver: RedisDriver, timeoutMs: number): Promise<RedisConnection> {
    const connection = new RedisConnection(env, driver, timeoutMs);
    try {
      await connection.#connect();
    } catch (error) {
      connection.close();
      throw storeErrorFrom(error, driver.address, "not-applied");
    }
    return connection;
  }

  get address(): string {
    return this.#driver.address;
  }

  get topology(): RedisDriver["topology"] {
    return this.#driver.topology;
  }

  /** Null while there is no connection. */
  get current(): RedisWire | null {
    return this.#wire;
  }

  /** The wire, now or as soon as there is one. */
  async ready(): Promise<RedisWire> {
    if (this.#closed) throw closedError();
    if (this.#wire !== null) return this.#wire;
    return this.#deadlines.bound(this.#next.promise, () => this.#lastFailure ?? this.#silence("not-applied"));
  }

  /**
   * Runs a script on this wire and no other. `args` begin with its SHA-1, which is replaced by its source
   * when the server does not know it. `outcome` is what is true of it when no reply comes.
   */
  run(
    wire: RedisWire,
    script: RedisScript,
    args: readonly RedisArgument[],
    outcome: FailedOutcome,
  ): Promise<unknown> {
    if (this.#closed) return Promise.reject(closedError());
    if (wire !== this.#wire) return Promise.reject(this.lost());
    return this.#deadlines.bound(
      wire.call("evalsha", args),
      () => {
        // A connection that does not answer is not worth keeping, and may be dead without our knowing.
        wire.close();
        if (wire === this.#wire) this.#lose();
        return this.#silence(outcome);
      },
      async (error) => {
        if (!isMissingScript(error)) throw storeErrorFrom(error, this.address, outcome);
        try {
          return await wire.call("eval", [script.source, ...args.slice(1)]);
        } catch (second) {
          throw storeErrorFrom(second, this.address, outcome);
        }
      },
    );
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#retry?.cancel();
    this.#deadlines.close();
    this.#wire?.close();
    this.#wire = null;
    this.#next.reject(closedError());
  }

  async #connect(): Promise<RedisWire> {
    let own: RedisWire | null = null;
    let ended = false;
    const attempt = new AbortController();
    const onEnd = (): void => {
      ended = true;
      if (own !== null && own === this.#wire) this.#lose();
    };
    const connecting = this.#driver.connect({ signal: attempt.signal, onEnd });
    const wire = await this.#deadlines.bound(connecting, () => {
      attempt.abort();
      return this.#silence("not-applied");
    });
    own = wire;
    if (ended || this.#closed) {
      wire.close();
      throw this.#closed ? closedError() : this.lost();
    }
    this.#wire = wire;
    this.#attempts = 0;
    this.#lastFailure = null;
    const { resolve } = this.#next;
    this.#next = nextWire();
    resolve(wire);
    return wire;
  }

  #lose(): void {
    this.#wire = null;
    this.#lastFailure = this.lost();
    if (!this.#closed) this.#reconnect();
  }

  #reconnect(): void {
    const backoffMs = Math.min(FIRST_RETRY_MS * 2 ** this.#attempts, LAST_RETRY_MS);
    this.#attempts += 1;
    this.#retry = this.#env.timer(jittered(this.#env, backoffMs, 0.3), () => {
      this.#connect().catch((error: unknown) => this.#failedToConnect(error));
    });
  }

  #failedToConnect(error: unknown): void {
    if (this.#closed) return;
    const failure = storeErrorFrom(error, this.address, "not-applied");
    this.#lastFailure = failure;
    if (isLasting(failure)) {
      const { reject } = this.#next;
      this.#next = nextWire();
      reject(failure);
    }
    this.#reconnect();
  }

  #silence(outcome: FailedOutcome): StoreError {
    return new StoreError(
      "timeout",
      `Redis at ${this.address} gave no answer within ${this.#timeoutMs} ms: check that it runs and is not overloaded`,
      { outcome },
    );
  }

  /** Why nothing could be sent. */
  lost(): StoreError {
    return new StoreError("unreachable", `Redis at ${this.address}: the connection was lost`, {
      outcome: "not-applied",
    });
  }
}

/** Nobody may be waiting when it is rejected: that is no unhandled rejection. */
function nextWire(): NextWire {
  let resolve: NextWire["resolve"] = () => undefined;
  let reject: NextWire["reject"] = () => undefined;
  const promise = new Promise<RedisWire>((fulfil, fail) => {
    resolve = fulfil;
    reject = fail;
  });
  promise.catch(() => undefined);
  return { promise, resolve, reject };
}
