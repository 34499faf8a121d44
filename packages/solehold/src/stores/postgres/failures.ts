/**
 * From the errors of servers and client libraries to a StoreError: what went wrong in one line, what to do about it, and
 * whether the statement can have happened.
 *
 * A statement that the server answered with an error of the classes below was rolled back. Everything else that ends a
 * call after it was sent (a lost connection, a shutdown, no answer) leaves the outcome unknown. A cancelled statement
 * (57014) was rolled back, too: a cancel that comes while a commit waits for a synchronous standby is answered by the
 * server with success and a warning.
 */
import { type FailedOutcome, StoreError, type StoreErrorKind } from "../../store/index.ts";

/** "connecting": nothing was sent. "sent": the statement is on its way. "unclear": the library does not say. */
export type CallPhase = "connecting" | "sent" | "unclear";

const CANNOT_HAVE_BEEN_SENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "CONNECT_TIMEOUT"]);

/** Classes of SQLSTATE whose errors mean that the transaction was rolled back. */
const ROLLED_BACK = /^(0A|22|23|25|26|28|34|3D|3F|42|44|53|54|55)|^(40001|40002|40P01|57014)$/;
const RETRYABLE = new Set(["40001", "40P01"]);
const STALE_PREPARED = new Set(["26000", "42P05"]);

interface Advice {
  readonly kind: StoreErrorKind;
  readonly text: string;
}

const BY_STATE: ReadonlyMap<string, Advice> = new Map([
  ["28P01", { kind: "auth", text: "correct the password in the URL, or the role's" }],
  ["28000", { kind: "auth", text: "correct the user in the URL, or let it in by pg_hba.conf" }],
  ["42501", { kind: "auth", text: "grant this role what it lacks, or connect as another" }],
  ["3D000", { kind: "config", text: "create the database, or correct its name in the URL" }],
  ["3F000", { kind: "config", text: "run the statements of postgresSchema() once" }],
  ["42P01", { kind: "config", text: "run the statements of postgresSchema() once" }],
  ["42703", { kind: "config", text: "the table is not of this version; give the store another 'table'" }],
  ["25006", { kind: "config", text: "the server is read-only; connect to the primary" }],
  ["53100", { kind: "full", text: "free space on the server's disk" }],
  ["53300", { kind: "unreachable", text: "raise max_connections, or use fewer" }],
  ["55P03", { kind: "timeout", text: "somebody holds the rows; find out who, in pg_locks" }],
  ["57014", { kind: "timeout", text: "somebody holds the rows, or the server is overloaded" }],
  ["57P01", { kind: "unreachable", text: "the server is shutting down" }],
  ["57P02", { kind: "unreachable", text: "the server is restarting after a crash" }],
  ["57P03", { kind: "unreachable", text: "the server is starting or stopping; try again" }],
]);

const BY_MESSAGE: readonly (readonly [RegExp, Advice])[] = [
  [
    /unsupported startup parameter|command-line options/i,
    { kind: "config", text: `this is a pooler; set the option pooler: "transaction"` },
  ],
  [/does not support SSL|certificate|self.signed/i, { kind: "config", text: "correct 'sslmode' in the URL" }],
  [
    /password must be a string|no password supplied/i,
    { kind: "auth", text: "put the password into the URL" },
  ],
];

export function storeErrorFrom(error: unknown, phase: CallPhase, place: string): StoreError {
  if (error instanceof StoreError) return error;
  const code = codeOf(error);
  const { kind, text } = adviceFor(error, code, phase);
  const message = `PostgreSQL at ${place}: ${messageOf(error).replace(/\s*\n\s*/g, " ")}: ${text}`;
  return new StoreError(kind, message, { outcome: outcomeOf(code, phase), cause: error });
}

export function timeoutError(place: string, timeoutMs: number, outcome: FailedOutcome): StoreError {
  const missing = outcome === "unknown" ? "no answer" : "no connection";
  const message = `PostgreSQL at ${place}: ${missing} within ${timeoutMs} ms: look at the server and the network, or raise 'timeoutMs'`;
  return new StoreError("timeout", message, { outcome });
}

/** A read that a standby answered: it may be old. */
export function readOnlyError(place: string): StoreError {
  const message = `PostgreSQL at ${place}: a standby answered: the server is read-only; connect to the primary`;
  return new StoreError("config", message, { outcome: "not-applied" });
}

export function closedError(): StoreError {
  return new StoreError("closed", "the postgres store was closed", { outcome: "not-applied" });
}

/** The statement lost against another one and was rolled back: the same statement may succeed now. */
export function isRetryable(error: StoreError): boolean {
  return RETRYABLE.has(codeOf(error.cause));
}

/** A pooler gave the call to a connection that does not know the prepared statement. */
export function isStalePrepared(error: StoreError): boolean {
  return STALE_PREPARED.has(codeOf(error.cause));
}

function outcomeOf(code: string, phase: CallPhase): FailedOutcome {
  if (phase === "connecting") return "not-applied";
  if (phase === "unclear" && CANNOT_HAVE_BEEN_SENT.has(code)) return "not-applied";
  return ROLLED_BACK.test(code) ? "not-applied" : "unknown";
}

function adviceFor(error: unknown, code: string, phase: CallPhase): Advice {
  const known = BY_STATE.get(code) ?? BY_MESSAGE.find(([pattern]) => pattern.test(messageOf(error)))?.[1];
  if (known !== undefined) return known;
  if (code === "ENOTFOUND" || code === "EAI_AGAIN")
    return { kind: "unreachable", text: "correct the host in the URL" };
  if (code === "ECONNREFUSED") return { kind: "unreachable", text: "start the server, or correct the URL" };
  if (/^[0-9A-Z]{5}$/.test(code) && /\d/.test(code) && !code.startsWith("08"))
    return { kind: "internal", text: `the server refused the statement (SQLSTATE ${code})` };
  const lost = phase === "connecting" ? "it cannot be reached" : "the connection was lost";
  return { kind: "unreachable", text: lost };
}

function codeOf(error: unknown): string {
  if (typeof error !== "object" || error === null || !("code" in error)) return "";
  return typeof error.code === "string" ? error.code : "";
}

/** A refusal of several addresses at once (IPv6, then IPv4) has an empty message of its own. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") return messageOf(error.errors[0]);
  return error instanceof Error ? error.message : String(error);
}
