/**
 * `pg`, through its pool: the store's own, made from a URL, or the caller's.
 *
 * A broken connection of `pg` emits "error", and without a listener that ends the process. While a connection is idle the
 * pool listens; when it hands one out nobody does until the caller's promise has run. So each connection gets a listener
 * of ours in the pool's own "acquire" event, before that gap, and keeps it for good. What the error says also fails the
 * statement that was under way, or the next one.
 */
import type { PgConnection, PgPool } from "./clients.ts";
import {
  type Listening,
  type ListeningHandlers,
  type SqlConnection,
  type SqlDriver,
  textsOf,
} from "./driver.ts";
import { bad, type ResolvedOptions } from "./options.ts";

const IDLE_MS = 60_000;
/**
 * A plan is made once and kept. Made while the table is small it would read the whole of it, and go on doing so when it
 * has grown, until the server counts its rows again.
 */
const BY_INDEX = "-c enable_seqscan=off -c jit=off";
/** The server gives up before the caller does, so that a wait for a lock ends with a certain "not applied". */
const LOCK_SHARE_OF_TIMEOUT = 0.8;

/** All columns as the server writes them, in their order. */
const AS_TEXT = { rowMode: "array", types: { getTypeParser: () => (text: string) => text } } as const;

interface OwnPool extends PgPool {
  end(): Promise<void>;
}

interface PgLibrary {
  readonly Pool: new (config: object) => OwnPool;
}

export class PgDriver implements SqlDriver {
  readonly phase = "sent";
  readonly place: string;
  readonly #pool: PgPool;
  readonly #end: () => Promise<void>;

  constructor(pool: PgPool, place = "the given pool", end: () => Promise<void> = async () => {}) {
    this.#pool = pool;
    this.place = place;
    this.#end = end;
    if (isNewHere(pool)) {
      pool.on("error", ignore);
      pool.on("acquire", ignoreErrorsOf);
    }
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

  async listen(channel: string, handlers: ListeningHandlers): Promise<Listening> {
    const connection = await this.#pool.connect();
    let state: "open" | "ended" = "open";
    /** It listened to a channel, so nobody else should get this connection. */
    const end = (why: string): boolean => {
      if (state === "ended") return false;
      state = "ended";
      connection.unref?.();
      connection.release(new Error(why));
      return true;
    };
    const lose = (): void => {
      if (end("the connection for notifications broke")) handlers.onLost();
    };
    connection.on("error", lose);
    connection.on("end", lose);
    connection.on("notification", ({ channel: from, payload = "" }) => {
      if (state === "open" && from === channel) handlers.onPayload(payload);
    });
    const run = async (text: string): Promise<void> => {
      await connection.query({ text }).catch((error: unknown) => {
        end("listening failed");
        throw error;
      });
    };
    await run(`listen "${channel}"`);
    return {
      holdLock: (lock) => run(`select pg_advisory_lock_shared(${lock})`),
      close: async () => void end("the watch ended"),
    };
  }

  close(): Promise<void> {
    return this.#end();
  }
}

export async function pgDriverOnUrl(url: string, options: ResolvedOptions): Promise<PgDriver> {
  const place = placeOf(url);
  const { Pool } = await loadPg();
  const { pooler, timeoutMs, maxConnections } = options;
  // A transaction pooler refuses settings at the start of a connection, because it shares its own.
  const settings =
    pooler === "none"
      ? { lock_timeout: Math.ceil(timeoutMs * LOCK_SHARE_OF_TIMEOUT), options: BY_INDEX }
      : {};
  const pool = new Pool({
    connectionString: url,
    connectionTimeoutMillis: timeoutMs,
    keepAlive: true,
    fallback_application_name: "solehold",
    ...settings,
    max: maxConnections + 1,
    idleTimeoutMillis: IDLE_MS,
    allowExitOnIdle: true,
  });
  return new PgDriver(pool, place, () => pool.end());
}

const known = new WeakSet<object>();

function isNewHere(emitter: object): boolean {
  if (known.has(emitter)) return false;
  known.add(emitter);
  return true;
}

function ignoreErrorsOf(connection: PgConnection): void {
  if (isNewHere(connection)) connection.on("error", ignore);
}

function ignore(): void {}

async function loadPg(): Promise<PgLibrary> {
  try {
    const library = (await import("pg")) as unknown as PgLibrary & { readonly default?: PgLibrary };
    return library.default ?? library;
  } catch (cause) {
    throw bad("the package 'pg' is missing: run `npm install pg`", cause);
  }
}

/** Host, port and database: what a message may show. */
function placeOf(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (parsed === null || !/^postgres(ql)?:\/\//i.test(url)) {
    const got = parsed === null ? "no URL" : `'${parsed.protocol}'`;
    throw bad(`option 'url' must begin with postgres:// or postgresql://, got ${got}`);
  }
  return `${parsed.hostname || "localhost"}:${parsed.port || 5432}${parsed.pathname}`;
}
