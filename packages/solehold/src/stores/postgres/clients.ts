/**
 * The client libraries, as far as the store uses them. They are described by shape and not imported, so that
 * any version, wrapper or instance of the caller's fits.
 */
import type { Row } from "./driver.ts";

export interface PgQueryConfig {
  readonly text: string;
  readonly values?: (string | null)[];
  readonly name?: string;
}

export interface PgNotification {
  readonly channel: string;
  readonly payload?: string | undefined;
}

/** A connection of `pg`. */
export interface PgConnection {
  query(config: PgQueryConfig): Promise<{ readonly rows: readonly Row[] }>;
  on(event: "notification", listener: (notification: PgNotification) => void): unknown;
  on(event: "error" | "end", listener: () => void): unknown;
  removeListener(event: string, listener: () => void): unknown;
  /** Whether the connection keeps the process alive. */
  ref?(): void;
  unref?(): void;
}

export interface PgPoolConnection extends PgConnection {
  /** With an error the pool ends the connection instead of keeping it. */
  release(failure?: Error): void;
}

/** `new Pool()` of `pg`. */
export interface PgPool {
  connect(): Promise<PgPoolConnection>;
  on(event: "error", listener: () => void): unknown;
  removeListener(event: string, listener: () => void): unknown;
}

/** `postgres(url)` of postgres.js. */
export interface PostgresJsClient {
  unsafe(
    text: string,
    values?: (string | null)[],
    options?: { readonly prepare?: boolean },
  ): PromiseLike<readonly Row[]>;
  listen?(
    channel: string,
    onPayload: (payload: string) => void,
    onListen?: () => void,
  ): Promise<{ unlisten(): Promise<void> }>;
}

export function isPgPool(client: PgPool | PostgresJsClient): client is PgPool {
  return "connect" in client && typeof client.connect === "function";
}
