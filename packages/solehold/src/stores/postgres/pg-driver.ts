/**
 * `pg`, through its pool: the store's own, made from a URL, or the caller's.
 *
 * A broken connection of `pg` emits "error", and without a listener that ends the process. While a connection is idle the
 * pool listens; when it hands one out nobody does until the caller's promise has run. So each connection gets a listener
 * of ours in the pool's "acquire" event, before that gap, and keeps it for good. What the error says also fails the
 * statement that is under way, or the next one.
 *
 * The library is described by shape and not imported, so that any version or wrapper of the caller's fits.
 */
import { loadPackage } from "../support/options.ts";
import {
  type Listening,
  type ListeningHandlers,
  type SqlConnection,
  type SqlDriver,
  textsOf,
} from "./driver.ts";
import type { ResolvedOptions } from "./options.ts";

export interface PgConnection {
  query(config: object): Promise<{ readonly rows: readonly (readonly unknown[])[] }>;
  on(
    event: "notification",
    listener: (message: { channel: string; payload?: string | undefined }) => void,
  ): unknown;
  on(event: "error" | "end", listener: () => void): unknown;
  /** With an error the pool ends the connection instead of keeping it. */
  release(failure?: Error): void;
  /** The connection no longer keeps the process alive. */
  unref?(): void;
}

/** `new Pool()` of `pg`. */
export interface PgPool {
  connect(): Promise<PgConnection>;
  on(event: "error", listener: () => void): unknown;
  on(event: "acquire", listener: (connection: PgConnection) => void): unknown;
}

interface PgLibrary {
  readonly Pool: new (config: object) => PgPool & { end(): Promise<void> };
}

const IDLE_MS = 60_000;
/**
 * A plan is made once and kept. Made while the table is small it would read the whole of it, and go on doing so when it
 * has grown, until the server counts its rows again.
 */
const BY_INDEX = "-c enable_seqscan=off -c jit=off";
/** The server gives up before the caller does, so that a wait for a lock ends with a certain "not applied". */
const LOCK_SHARE_OF_TIMEOUT = 0.8;

/** All columns as the server writes them, in their order. */
const AS_TEXT = { rowMode: "array", types: { getTypeParser: () => (text: string) => text } };

export class PgDriver implements SqlDriver {
  readonly phase = "sent";
  readonly place: string;
  readonly #pool: PgPool;
  readonly #end: () => Promise<void>;

  constructor(pool: PgPool, place = "the given pool", end: () => Promise<void> = async () => {}) {
    this.#pool = pool;
    this.place = place;
    this.#end = end;
    once(pool, () => {
      pool.on("error", ignore);
      pool.on("acquire", (connection) => once(connection, () => connection.on("error", ignore)));
    });
  }

  async connect(): Promise<SqlConnection> {
    const connection = await this.#pool.connect();
    return {
      query: async ({ name, text }, values) => {
        // The results of a script, one for each statement, are of no interest.
        if (values === null) return connection.query({ text }).then(() => []);
        const { rows } = await connection.query({ text, values, ...AS_TEXT, ...(name !== "" && { name }) });
        return rows.map(textsOf);
      },
      release: (failure) => connection.release(failure),
    };
  }

  async listen(channel: string, { onPayload, onLost }: ListeningHandlers): Promise<Listening> {
    const connection = await this.#pool.connect();
    connection.unref?.();
    let isOpen = true;
    const end = (onEnd?: () => void): void => {
      if (!isOpen) return;
      isOpen = false;
      // With an error: nobody else should get a connection that listens.
      connection.release(new Error("the watch ended"));
      onEnd?.();
    };
    connection.on("error", () => end(onLost));
    connection.on("end", () => end(onLost));
    connection.on("notification", (message) => {
      if (isOpen && message.channel === channel) onPayload(message.payload ?? "");
    });
    const run = (text: string): Promise<void> =>
      connection.query({ text }).then(
        () => undefined,
        (error: unknown) => {
          end();
          throw error;
        },
      );
    await run(`listen "${channel}"`);
    return { holdLock: (lock) => run(`select pg_advisory_lock_shared(${lock})`), close: async () => end() };
  }

  close(): Promise<void> {
    return this.#end();
  }
}

const prepared = new WeakSet<object>();

function once(emitter: object, prepare: () => void): void {
  if (prepared.has(emitter)) return;
  prepared.add(emitter);
  prepare();
}

function ignore(): void {}

export async function pgDriverOnUrl(url: string, options: ResolvedOptions): Promise<PgDriver> {
  const { pooler, timeoutMs, maxConnections } = options;
  const place = placeOf(url);
  const { Pool } = await loadPg();
  const lockTimeoutMs = Math.ceil(timeoutMs * LOCK_SHARE_OF_TIMEOUT);
  const pool = new Pool({
    connectionString: url,
    connectionTimeoutMillis: timeoutMs,
    keepAlive: true,
    fallback_application_name: "solehold",
    max: maxConnections + 1,
    idleTimeoutMillis: IDLE_MS,
    allowExitOnIdle: true,
    // A transaction pooler refuses settings at the start of a connection, because it shares its own.
    ...(pooler === "none" && { lock_timeout: lockTimeoutMs, options: BY_INDEX }),
  });
  return new PgDriver(pool, place, () => pool.end());
}

async function loadPg(): Promise<PgLibrary> {
  const library = await loadPackage("postgres", "pg", () => import("pg"));
  return (library as unknown as { readonly default: PgLibrary }).default ?? library;
}

/** Host, port and database: what a message may show. */
function placeOf(url: string): string {
  const { hostname, port, pathname } = new URL(url);
  return `${hostname || "localhost"}:${port || 5432}${pathname}`;
}
