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

type Advice = readonly [kind: StoreErrorKind, text: string];

/** Classes of SQLSTATE whose errors mean that the transaction was rolled back. */
const ROLLED_BACK = /^(0A|22|23|25|26|28|34|3D|3F|42|44|53|54|55)|^(40001|40002|40P01|57014)$/;
const CANNOT_HAVE_BEEN_SENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "CONNECT_TIMEOUT"]);

const CREATE_TABLE: Advice = ["config", "run the statements of postgresSchema() once"];
const CORRECT_HOST: Advice = ["unreachable", "correct the host in the URL"];

const BY_CODE: Readonly<Record<string, Advice>> = {
  "28P01": ["auth", "correct the password in the URL, or the role's"],
  "28000": ["auth", "correct the user in the URL, or let it in by pg_hba.conf"],
  "42501": ["auth", "grant this role select, insert, update and delete on the table and usage on its schema"],
  "3D000": ["config", "create the database, or correct its name in the URL"],
  "3F000": CREATE_TABLE,
  "42P01": CREATE_TABLE,
  "42703": ["config", "the table is somebody else's or of another version; give the store another 'table'"],
  "25006": ["config", "the server is read-only; connect to the primary"],
  "53100": ["full", "free space on the server's disk"],
  "53300": ["unreachable", "raise max_connections, or use fewer"],
  "55P03": ["timeout", "somebody holds the rows; find out who, in pg_locks"],
  "57014": ["timeout", "somebody holds the rows, or the server is overloaded"],
  "57P01": ["unreachable", "the server is shutting down"],
  "57P02": ["unreachable", "the server is restarting after a crash"],
  "57P03": ["unreachable", "the server is starting or stopping; try again"],
  ENOTFOUND: CORRECT_HOST,
  EAI_AGAIN: CORRECT_HOST,
  ECONNREFUSED: ["unreachable", "start the server, or correct the URL"],
};

const BY_MESSAGE: readonly (readonly [RegExp, Advice])[] = [
  [
    /startup parameter|command-line options/i,
    [
      "config",
      `this is a pooler; set the option pooler: "transaction", or add ?pooler=transaction to the URL`,
    ],
  ],
  [/does not support SSL|certificate|self.signed/i, ["config", "correct 'sslmode' in the URL"]],
  [/password must be a string|no password supplied/i, ["auth", "put the password into the URL"]],
];

export function storeErrorFrom(error: unknown, phase: CallPhase, place: string): StoreError {
  if (error instanceof StoreError) return error;
  const [kind, text] = adviceFor(error, phase);
  const message = `PostgreSQL at ${place}: ${messageOf(error).replace(/\s*\n\s*/g, " ")}: ${text}`;
  return new StoreError(kind, message, { outcome: outcomeOf(codeOf(error), phase), cause: error });
}

/** The statement lost against another one and was rolled back: the same statement may succeed now. */
export const isRetryable = hasCode("40001", "40P01");

/** A pooler gave the call to a connection that does not know the prepared statement. */
export const isStalePrepared = hasCode("26000", "42P05");

export const isMissingTable = hasCode("3F000", "42P01");

function hasCode(...codes: readonly string[]): (error: unknown) => boolean {
  return (error) => error instanceof StoreError && codes.includes(codeOf(error.cause));
}

function outcomeOf(code: string, phase: CallPhase): FailedOutcome {
  if (phase === "connecting") return "not-applied";
  if (phase === "unclear" && CANNOT_HAVE_BEEN_SENT.has(code)) return "not-applied";
  return ROLLED_BACK.test(code) ? "not-applied" : "unknown";
}

function adviceFor(error: unknown, phase: CallPhase): Advice {
  const code = codeOf(error);
  const known = BY_CODE[code] ?? BY_MESSAGE.find(([pattern]) => pattern.test(messageOf(error)))?.[1];
  if (known !== undefined) return known;
  if (/^(?!08)(?=.*\d)[0-9A-Z]{5}$/.test(code))
    return ["internal", `the server refused the statement (SQLSTATE ${code})`];
  return ["unreachable", phase === "connecting" ? "it cannot be reached" : "the connection was lost"];
}

function codeOf(error: unknown): string {
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : "";
  return typeof code === "string" ? code : "";
}

/** A refusal of several addresses at once (IPv6, then IPv4) has an empty message of its own. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") return messageOf(error.errors[0]);
  return error instanceof Error ? error.message : String(error);
}
