/**
 * What the errors of a server mean: kind, whether a write can have happened, what to do. A statement that is not listed
 * here and failed is of unknown outcome; one that was never sent was not applied.
 */
import { type FailedOutcome, StoreError, type StoreErrorKind } from "../../store/index.ts";
import { noConnection } from "../support/failures.ts";

export interface MysqlError extends Error {
  readonly errno?: number;
  readonly code?: string;
  readonly fatal?: boolean;
}

type Meaning = readonly [kind: StoreErrorKind, outcome: FailedOutcome, advice: string];

const NOT_ALLOWED: Meaning = [
  "auth",
  "not-applied",
  "grant the account SELECT, INSERT, UPDATE and DELETE on the table",
];
const READ_ONLY: Meaning = [
  "unreachable",
  "not-applied",
  "the server is read-only: a replica, or a failover is under way",
];

const MEANINGS: Readonly<Record<number, Meaning>> = {
  1040: ["unreachable", "not-applied", "raise max_connections or lower `concurrency`"],
  1044: ["auth", "not-applied", "grant the account access to the database"],
  1045: ["auth", "not-applied", "check user and password; a server that wants TLS needs ssl-mode"],
  1047: ["unreachable", "not-applied", "the Galera node has no quorum, or is not ready yet"],
  1049: ["config", "not-applied", "create the database, or correct its name in the URL"],
  1054: ["config", "not-applied", "the table is not one of Solehold's: choose another `table`"],
  1114: ["full", "not-applied", "the table or the disk is full: make room"],
  1142: NOT_ALLOWED,
  1143: NOT_ALLOWED,
  1146: ["config", "not-applied", "the table is gone: open the store anew to create it"],
  1205: ["timeout", "not-applied", "another transaction held the row: end it"],
  1213: ["internal", "not-applied", "deadlocks went on and on: see `show engine innodb status`"],
  1227: ["auth", "not-applied", "the account lacks a privilege"],
  1290: READ_ONLY,
  1792: READ_ONLY,
  1836: READ_ONLY,
  // The account's limits: queries or updates an hour, connections.
  1203: ["unreachable", "not-applied", "the account has too many connections: raise its limit"],
  1226: ["unreachable", "not-applied", "the account has used up a limit: raise it"],
};

export const DUPLICATE_KEY = 1062;
export const DEADLOCK = 1213;
export const ACCESS_DENIED: ReadonlySet<number> = new Set([1044, 1142, 1227]);
/** Connections to a server that is no longer the primary are given up, so that the address is looked up anew. */
const GIVEN_UP = new Set([1047, 1290, 1792, 1836]);

/** The server's number of what a StoreError of `failureOf` is about; 0 where it has none. */
export function errnoOf(error: unknown): number {
  return ((error as Error).cause as MysqlError | undefined)?.errno ?? 0;
}

/** Whether the connection is of no use any more. */
export function endsConnection({ fatal, errno }: MysqlError): boolean {
  return fatal === true || errno === undefined || GIVEN_UP.has(errno);
}

/** `sent`: whether the statement can have reached the server. */
export function failureOf(error: MysqlError, sent: "no" | "perhaps"): StoreError {
  const text = error.message.replaceAll(/\s+/g, " ");
  const what = error.code === undefined || text.includes(error.code) ? text : `${error.code} ${text}`.trim();
  const [kind, outcome, advice] = meaningOf(error, sent);
  return new StoreError(kind, `mysql: ${what}: ${advice}`, { outcome, cause: error });
}

function meaningOf({ errno, message }: MysqlError, sent: "no" | "perhaps"): Meaning {
  const known = MEANINGS[errno ?? 0];
  if (known !== undefined) return known;
  // The client library refused to send on a connection that had ended.
  const unsent = sent === "no" || message.startsWith("Can't add new command");
  const [, , noConnectionAdvice] =
    noConnection("the server").find(([pattern]) => pattern.test(message)) ?? [];
  const advice = unsent
    ? (noConnectionAdvice ?? "nothing was sent; check address and server")
    : "the outcome is unknown";
  const isServers = errno !== undefined && errno >= 1000 && errno < 2000;
  return [isServers ? "internal" : "unreachable", unsent ? "not-applied" : "unknown", advice];
}
