/**
 * The client libraries, as far as the store uses them. They are described by shape and not imported, so that
 * any version, wrapper or instance of the caller's fits.
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

/** A query of a class of its own, which `pg` hands the connection and the server's messages to. */
export interface PgSubmittable {
  submit(wire: PgWire): Error | null;
  handleDataRow(message: { readonly fields: readonly (string | null)[] }): void;
  handleError(error: Error): void;
  handleReadyForQuery(): void;
}

/** The protocol's side of a connection of `pg`, as its own and other packages' queries use it. */
export interface PgWire {
  readonly parsedStatements: Readonly<Record<string, string | undefined>>;
  readonly stream: {
    readonly writable: boolean;
    write(bytes: Uint8Array): unknown;
    write(text: string, encoding: "latin1"): unknown;
    /** What is written in between leaves together. */
    cork(): void;
    uncork(): void;
  };
  parse(statement: { readonly name: string; readonly text: string }): void;
}

export interface PgNotification {
  readonly channel: string;
  readonly payload?: string | undefined;
}

/** A connection of `pg`. */
export interface PgConnection {
  query(config: PgQueryConfig): Promise<{ readonly rows: readonly (readonly unknown[])[] }>;
  /** Its end is told to the query itself. */
  query(query: PgSubmittable): unknown;
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

export interface PostgresJsQuery extends PromiseLike<unknown> {
  /** Rows as arrays. */
  values(): PromiseLike<readonly (readonly unknown[])[]>;
}

/** `postgres(url)` of postgres.js. */
export interface PostgresJsClient {
  unsafe(text: string, values?: (string | null)[], options?: { readonly prepare?: boolean }): PostgresJsQuery;
  listen?(
    channel: string,
    onPayload: (payload: string) => void,
    onListen?: () => void,
  ): Promise<{ unlisten(): Promise<void> }>;
}

export function isPgPool(client: PgPool | PostgresJsClient): client is PgPool {
  return "connect" in client && typeof client.connect === "function";
}
