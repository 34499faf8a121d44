/**
 * What the errors of a server mean: kind, whether a write can have happened, what to do. A statement that is not listed
 * here and failed is of unknown outcome; one that was never sent was not applied.
 */
import { type FailedOutcome, StoreError, type StoreErrorKind } from "../../store/index.ts";
import { errorText, noConnection } from "../support/failures.ts";

export interface MysqlError extends Error {
  readonly errno?: number;
  readonly code?: string;
  readonly fatal?: boolean;
}

type Advice = readonly [kind: StoreErrorKind, advice: string];
type Refusal = readonly [errnos: readonly number[], ...Advice];

/** The server said no, and nothing was done. */
const REFUSALS: readonly Refusal[] = [
  [[1040], "unreachable", "raise max_connections or lower `concurrency`"],
  [[1044], "auth", "grant the account access to the database"],
  [[1045], "auth", "check user and password; a server that wants TLS needs ssl-mode"],
  [[1047], "unreachable", "the Galera node has no quorum, or is not ready yet"],
  [[1049], "config", "create the database, or correct its name in the URL"],
  [[1054], "config", "the table is not one of Solehold's: choose another `table`"],
  [[1114], "full", "the table or the disk is full: make room"],
  [[1142, 1143], "auth", "grant the account SELECT, INSERT, UPDATE and DELETE on the table"],
  [[1146], "config", "the table is gone: open the store anew to create it"],
  [[1203], "unreachable", "the account has too many connections: raise its limit"],
  [[1205], "timeout", "another transaction held the row: end it"],
  [[1213], "internal", "deadlocks went on and on: see `show engine innodb status`"],
  [[1226], "unreachable", "the account has used up a limit: raise it"],
  [[1227], "auth", "the account lacks a privilege"],
  [[1290, 1792, 1836], "unreachable", "the server is read-only: a replica, or a failover is under way"],
];

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
  const refusal = REFUSALS.find(([errnos]) => errnos.includes(error.errno ?? 0));
  // The client library refuses to send on a connection that had ended.
  const isUnsent = sent === "no" || error.message.startsWith("Can't add new command");
  const outcome: FailedOutcome = refusal !== undefined || isUnsent ? "not-applied" : "unknown";
  const [, kind, advice] = refusal ?? [[], ...otherwise(error, outcome)];
  return new StoreError(kind, `mysql: ${errorText(error)}: ${advice}`, { outcome, cause: error });
}

function otherwise({ errno, message }: MysqlError, outcome: FailedOutcome): Advice {
  const isServers = errno !== undefined && errno >= 1000 && errno < 2000;
  const kind = isServers ? "internal" : "unreachable";
  if (outcome === "unknown") return [kind, "the outcome is unknown"];
  const [, , advice] = noConnection("the server").find(([pattern]) => pattern.test(message)) ?? [];
  return [kind, advice ?? "nothing was sent; check address and server"];
}
