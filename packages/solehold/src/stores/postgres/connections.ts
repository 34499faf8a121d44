/**
 * Connections out of a pool. Those of the store's own pool are kept for the next call, because fetching one
 * for every statement costs the pool's bookkeeping each time; after a while without calls they go back. Those
 * of a caller's pool go back at once: others may be waiting for them.
 *
 * While a connection lies here it does not keep the process alive.
 */
import { type Env, jittered, type Timer } from "../../env/index.ts";
import type { PgPool, PgPoolConnection } from "./clients.ts";

const KEPT_MS = 5_000;

export interface ConnectionsOptions {
  readonly env: Env;
  readonly pool: PgPool;
  readonly ownership: "own" | "borrowed";
}

export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #kept: PgPoolConnection[] = [];
  readonly #waiting: ((connection: PgPoolConnection) => void)[] = [];
  /** Our listener on each connection that is out of the pool. */
  readonly #listeners = new Map<PgPoolConnection, () => void>();
  readonly #broken = new WeakSet<PgPoolConnection>();
  #state: "idle" | "used" | "closed" = "idle";
  #timer: Timer | null = null;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
    // A pool without a listener ends the process when one of its idle connections breaks.
    options.pool.on("error", ignore);
  }

  /** One that lies ready, or null. */
  take(): PgPoolConnection | null {
    const connection = this.#kept.pop() ?? null;
    connection?.ref?.();
    return connection;
  }

  /** The next that becomes free, or a new one if the pool has it sooner. */
  connect(): Promise<PgPoolConnection> {
    return new Promise((resolve, reject) => {
      this.#waiting.push(resolve);
      this.#options.pool.connect().then(
        (connection) => {
          this.#listenTo(connection);
          // Whoever has waited longest gets it; that need not be the one who asked the pool for it.
          this.give(connection);
        },
        (error: unknown) => {
          const index = this.#waiting.indexOf(resolve);
          if (index >= 0) this.#waiting.splice(index, 1);
          reject(error);
        },
      );
    });
  }

  /** A connection that is free again. */
  give(connection: PgPoolConnection): void {
    if (this.#broken.has(connection)) {
      this.#release(connection, new Error("the connection broke"));
      return;
    }
    const waiting = this.#waiting.shift();
    if (waiting !== undefined) waiting(connection);
    else if (this.#options.ownership === "borrowed" || this.#state === "closed") this.#release(connection);
    else this.#keep(connection);
  }

  /** Ends a connection that must not be used again. */
  discard(connection: PgPoolConnection, failure: Error): void {
    this.#broken.add(connection);
    this.#release(connection, failure);
  }

  close(): void {
    this.#state = "closed";
    this.#timer?.cancel();
    this.#returnKept();
    this.#options.pool.removeListener("error", ignore);
  }

  /** Without a listener a broken connection would end the process. What it reports also fails its call. */
  #listenTo(connection: PgPoolConnection): void {
    const onBroken = (): void => {
      this.#broken.add(connection);
      const index = this.#kept.indexOf(connection);
      if (index < 0) return;
      this.#kept.splice(index, 1);
      this.#release(connection, new Error("the connection broke"));
    };
    connection.on("error", onBroken);
    connection.on("end", onBroken);
    this.#listeners.set(connection, onBroken);
  }

  #release(connection: PgPoolConnection, failure?: Error): void {
    const listener = this.#listeners.get(connection);
    // Two calls that were on it may each find that it broke.
    if (listener === undefined) return;
    this.#listeners.delete(connection);
    // From here on the pool listens; only then may we stop.
    connection.release(failure);
    connection.removeListener("error", listener);
    connection.removeListener("end", listener);
  }

  #keep(connection: PgPoolConnection): void {
    connection.unref?.();
    this.#kept.push(connection);
    this.#state = "used";
    this.#timer ??= this.#nextTimer();
  }

  #nextTimer(): Timer {
    const { env } = this.#options;
    return env.timer(jittered(env, KEPT_MS, 0.2), () => {
      if (this.#state === "idle") this.#returnKept();
      this.#state = "idle";
      this.#timer = this.#kept.length > 0 ? this.#nextTimer() : null;
    });
  }

  #returnKept(): void {
    for (const connection of this.#kept.splice(0)) {
      connection.ref?.();
      this.#release(connection);
    }
  }
}

function ignore(): void {}
