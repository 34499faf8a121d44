/**
 * What the store needs of a client library, and nothing more: statements, each a transaction of its own,
 * and a session that stays open for notifications. One implementation for `pg`, one for `postgres` (postgres.js).
 */
import type { Statement } from "./statements.ts";

/** The columns in the order selected, each as text: no client's type parser is involved. */
export type Row = readonly (string | null)[];
/** The client libraries want arrays that they could change. */
export type Values = (string | null)[];

export interface Message {
  readonly statement: Statement;
  readonly values: Values;
}

/** A statement to send right behind another one. */
export interface FollowUp {
  /** Asked for when it is sent, and always the same. */
  message(): Message;
  /**
   * "now": on its way before anybody hears of the reply, so that it is sent even if the process ends next. "soon": in the
   * same turn, but whoever waits for the reply need not wait for this.
   */
  readonly pace: "now" | "soon";
  /** Its end. Nobody waits for it, so nobody else would see its failure. */
  settled(failure: Error | null): void;
}

export type FollowUpOf = (rows: readonly Row[]) => FollowUp | null;

export interface SessionHandlers {
  onPayload(payload: string): void;
  /** Once at most: the session is gone, and what was announced since may be missing. */
  onLost(): void;
}

/** A connection of its own that listens to one channel. */
export interface SqlSession {
  /** One statement without parameters; rejects with a StoreError, also when it takes too long. */
  run(text: string): Promise<readonly Row[]>;
  close(): Promise<void>;
}

export interface SqlDriver {
  /** Whether it runs statements whose answer is "counted". */
  readonly counts: "yes" | "no";
  /** Whether it runs statements that are confirmed by another. */
  readonly confirms: "yes" | "no";
  /**
   * Runs one statement. Rejects with a StoreError that says whether it can have happened; an answer that
   * does not come in time ends the connection where the library allows it. `followUp` is asked once the reply is there.
   */
  query(statement: Statement, values: Values, followUp?: FollowUpOf): Promise<readonly Row[]>;
  /** Several statements without parameters, in one transaction. */
  script(text: string): Promise<void>;
  /** Null where the library gives no session. */
  openSession(channel: string, handlers: SessionHandlers): Promise<SqlSession> | null;
  close(): Promise<void>;
}

/** A row of a library that reads values by their types. */
export function textsOf(values: readonly unknown[]): Row {
  return values.map((value) => (value === null || value === undefined ? null : String(value)));
}

/** What a boolean column says: the server writes it in one way, some libraries in another. */
export function isTrue(text: string | null | undefined): boolean {
  return text === "t" || text === "true";
}
