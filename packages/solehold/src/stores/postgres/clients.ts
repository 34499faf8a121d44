/**
 * The client libraries, as far as the store uses their documented interface. They are described by shape and not
 * imported, so that any version, wrapper or instance of the caller's fits.
 */
export interface PgQueryConfig {
  readonly text: string;
  readonly values?: (string | null)[];
  readonly name?: string;
  /** Rows as arrays instead of objects. */
  readonly rowMode?: "array";
  /** How values are read; without it, as the library is set up. */
  readonly types?: { getTypeParser(): (text: string) => string };
}

/** A connection out of a pool of `pg`. */
export interface PgConnection {
  query(config: PgQueryConfig): Promise<{ readonly rows: readonly (readonly unknown[])[] }>;
  on(
    event: "notification",
    listener: (notification: { readonly channel: string; readonly payload?: string | undefined }) => void,
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

export interface PostgresJsQuery extends PromiseLike<unknown> {
  /** Rows as arrays. */
  values(): PromiseLike<readonly (readonly unknown[])[]>;
}

export interface PostgresJsTransaction {
  unsafe(text: string): PostgresJsQuery;
}

/** `postgres(url)` of postgres.js. */
export interface PostgresJsClient {
  readonly options?: { readonly max?: number };
  unsafe(text: string, values?: (string | null)[], options?: { readonly prepare?: boolean }): PostgresJsQuery;
  begin<Result>(body: (transaction: PostgresJsTransaction) => Promise<Result>): Promise<unknown>;
  listen(
    channel: string,
    onPayload: (payload: string) => void,
    onListen?: () => void,
  ): Promise<{ unlisten(): Promise<void> }>;
}

export function isPgPool(client: PgPool | PostgresJsClient): client is PgPool {
  return "connect" in client && typeof client.connect === "function";
}

/**
 * A lone connection of `pg`, which only the caller could open again, and in whose open transaction an acknowledged
 * write could be rolled back.
 */
export function isPgClient(client: object): boolean {
  return "connect" in client && "escapeLiteral" in client;
}
