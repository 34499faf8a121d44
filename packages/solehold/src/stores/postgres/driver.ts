/** What the store needs of a client library, and nothing more. One implementation for `pg`, one for postgres.js. */
import { StoreError } from "../../store/index.ts";

export interface Statement {
  /** Unique for the text, so that stores of several tables can share a pool. Empty: parsed at each use. */
  readonly name: string;
  readonly text: string;
}

/** The columns in the order selected, each as text, and null as an empty one: no client's type parser is involved. */
export type Row = readonly string[];
/** The client libraries want arrays that they could change. */
export type Values = (string | null)[];

export interface SqlConnection {
  /** One statement, which is a transaction of its own; with `null` for values a script of several in one. */
  query(statement: Statement, values: Values | null): Promise<readonly Row[]>;
  /** Call once. With a failure the connection is not used again, where the library allows that. */
  release(failure?: Error): void;
}

/** A session that receives the notifications of one channel until it is lost or closed. */
export interface Listening {
  /** Takes an advisory lock in shared mode, and keeps it until the session ends. */
  holdLock(lock: string): Promise<void>;
  close(): Promise<void>;
}

export interface ListeningHandlers {
  onPayload(payload: string): void;
  /** The session or its lock is gone, and notifications since then may be missing. */
  onLost(): void;
}

export interface SqlDriver {
  /** Host, port and database, for messages. Never a password. */
  readonly place: string;
  /** What a failed statement says about itself: see `failures.ts`. */
  readonly phase: "sent" | "unclear";
  connect(): Promise<SqlConnection>;
  /** Rejects with NotificationsUnavailable where that is known beforehand. */
  listen(channel: string, handlers: ListeningHandlers): Promise<Listening>;
  /** Ends what is the store's own. */
  close(): Promise<void>;
}

/** This client cannot receive notifications. */
export class NotificationsUnavailable extends StoreError {
  constructor() {
    super("config", "notifications of PostgreSQL do not arrive here", { outcome: "not-applied" });
  }
}

export function textsOf(values: readonly unknown[]): Row {
  return values.map((value) => String(value ?? ""));
}

/** The server writes a boolean in one way, some libraries in another. */
export function isTrue(text: string | undefined): boolean {
  return text === "t" || text === "true";
}
