/** A driver on `pg`: on a pool of the store's own, made from a URL, or on the caller's. */
import type { Env } from "../../env/index.ts";
import { StoreError } from "../../store/index.ts";
import type { PgConnection, PgPool } from "./clients.ts";
import { PgDriver } from "./pg-driver.ts";
import type { SessionConnection } from "./pg-session.ts";

const IDLE_MS = 60_000;
/**
 * A plan is made once and kept. Made while the table is small it would read the whole of it, and go on to
 * when it has grown, until the server has counted its rows again.
 */
const BY_INDEX = "-c enable_seqscan=off -c jit=off";
/** The server gives up before the caller does, so that a wait for a lock ends with a clear "not applied". */
const SERVER_SHARE_OF_TIMEOUT = 0.8;

export interface PgDriverSettings {
  readonly env: Env;
  readonly timeoutMs: number;
  readonly prepare: "named" | "unnamed";
}

export interface OwnPoolSettings extends PgDriverSettings {
  readonly url: string;
  readonly pooler: "none" | "transaction";
  readonly maxConnections: number;
}

interface PgClient extends PgConnection {
  connect(): Promise<unknown>;
  end(): Promise<void>;
}

interface OwnPgPool extends PgPool {
  end(): Promise<void>;
}

interface PgLibrary {
  readonly Pool: new (
    config: object,
  ) => OwnPgPool & {
    on(event: "connect" | "remove", listener: (client: PgClient) => void): unknown;
  };
  readonly Client: new (config: object) => PgClient;
}

export function driverOnPool(pool: PgPool, settings: PgDriverSettings): PgDriver {
  const connectSession = async (): Promise<SessionConnection> => {
    const connection = await pool.connect();
    // It listened to a channel: no one else should get it.
    const end = async (): Promise<void> => connection.release(new Error("the watch ended"));
    return { connection, end };
  };
  const end = async (): Promise<void> => {};
  return new PgDriver({
    ...settings,
    pool,
    ownership: "borrowed",
    place: "the given pool",
    connectSession,
    end,
  });
}

export async function driverOnUrl(settings: OwnPoolSettings): Promise<PgDriver> {
  const { url, env, timeoutMs } = settings;
  const place = placeOf(url);
  const { Pool, Client } = await loadPg();
  const base = {
    connectionString: url,
    connectionTimeoutMillis: timeoutMs,
    keepAlive: true,
    fallback_application_name: "solehold",
  };
  // A transaction pooler refuses settings at the start of a connection, because it shares its own.
  const own =
    settings.pooler === "none"
      ? { lock_timeout: Math.ceil(timeoutMs * SERVER_SHARE_OF_TIMEOUT), options: BY_INDEX }
      : {};
  const pool = new Pool({
    ...base,
    ...own,
    max: settings.maxConnections,
    idleTimeoutMillis: IDLE_MS,
    allowExitOnIdle: true,
  });
  const clients = new Set<PgClient>();
  pool.on("connect", (client: PgClient) => void clients.add(client));
  pool.on("remove", (client: PgClient) => void clients.delete(client));

  const connectSession = async (): Promise<SessionConnection> => {
    const connection = new Client(base);
    connection.on("error", () => {});
    await connection.connect();
    return { connection, end: () => endWithin(env, timeoutMs, [connection], () => connection.end()) };
  };
  const end = (): Promise<void> => endWithin(env, timeoutMs, clients, () => pool.end());
  return new PgDriver({ ...settings, pool, ownership: "own", place, connectSession, end });
}

/** A frozen server never confirms the end of a connection; then nobody waits, and nothing keeps the process. */
async function endWithin(
  env: Env,
  timeoutMs: number,
  clients: Iterable<PgClient>,
  end: () => Promise<void>,
): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = env.timer(timeoutMs, () => {
      for (const client of clients) client.unref?.();
      resolve();
    });
    end()
      .catch(() => undefined)
      .finally(() => {
        timer.cancel();
        resolve();
      });
  });
}

async function loadPg(): Promise<PgLibrary> {
  try {
    const library = (await import("pg")) as unknown as PgLibrary & { readonly default?: PgLibrary };
    return library.default ?? library;
  } catch (cause) {
    throw configError("the package 'pg' is missing: run `npm install pg`", cause);
  }
}

/** Host, port and database: what a message may show. */
function placeOf(url: string): string {
  const parsed = parsedUrl(url);
  if (parsed === null || !/^postgres(ql)?:\/\//i.test(url))
    throw configError(
      `option 'url' must begin with postgres:// or postgresql://, got ${parsed === null ? "no URL" : `'${parsed.protocol}'`}`,
    );
  return `${parsed.hostname || "localhost"}:${parsed.port || 5432}${parsed.pathname}`;
}

function parsedUrl(url: string): URL | null {
  try {
    return new URL(url);
  } catch {
    return null;
  }
}

function configError(message: string, cause?: unknown): StoreError {
  return new StoreError("config", message, { outcome: "not-applied", cause });
}
