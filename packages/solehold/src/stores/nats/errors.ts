/** What went wrong, as a StoreError of one line that says what to do. Messages never carry a password. */
import { type FailedOutcome, StoreError, type StoreErrorKind } from "../../store/index.ts";
import { type Diagnosis, noConnection } from "../support/failures.ts";

/** The code of a request that reached nobody: there is no such stream, or no JetStream at all. */
const NO_RESPONDERS = 503;
export const STREAM_NOT_FOUND = 10_059;
export const STREAM_NAME_IN_USE = 10_058;
const WRONG_LAST_SEQUENCE = 10_071;
/** As before, where another write to the same key is still on its way to the replicas. */
const WRONG_LAST_SEQUENCE_UNKNOWN = 10_164;

/** What a reply shows is not the data that was joined: joining again finds out whether something was lost. */
export class DoubtfulData extends Error {
  override readonly name = "DoubtfulData";
  override readonly message = "the bucket was purged, replaced or set back";
}

/** By the code of JetStream's error. The server said no, so nothing was done. */
const REFUSALS: readonly (readonly [readonly number[], StoreErrorKind, string])[] = [
  [
    [NO_RESPONDERS, 10039, 10076],
    "config",
    "JetStream is not enabled: start the server with --jetstream and enable it for the account",
  ],
  [[10008, 10009, 10118], "unreachable", "its JetStream is not ready"],
  [[10002, 10023, 10028, 10047, 10077], "full", "its storage is full: raise the limit or free some"],
  [[10026], "full", "the account may not have more streams: raise its limit or name another bucket"],
  [[10054], "config", "the bucket's max_msg_size is too small: raise it to 16384 or more"],
  [[10005], "config", "it has too few servers for that many replicas: set fewer"],
  [[10074], "config", "it is a single server and keeps one replica: set replicas to 1"],
  [[10065], "config", "another stream takes the bucket's subjects: name another bucket"],
];

/** By the text of the error, of connections that fail before or while a request is on its way. */
const FAILURES: readonly Diagnosis[] = [
  [/DoubtfulData/, "unreachable", "the bucket changed during the call: try again"],
  [/Permissions Violation/i, "auth", "its user may not do this: see docs/stores/nats.md for the rights"],
  [
    /Authorization Violation|Authentication|nkey|jwt/i,
    "auth",
    "it refuses the user: correct user and password, or the token, in the URL",
  ],
  ...noConnection("nats-server"),
  [
    /'tls'|ERR_SSL|EPROTO|WRONG_VERSION_NUMBER/,
    "config",
    "it does not offer TLS: use nats:, or set it up on the server",
  ],
  [
    /unexpected response|Unexpected token|Parse Error|max_payload/i,
    "config",
    "what answers there is not a NATS server: correct host and port",
  ],
  [/timeout|ETIMEDOUT/i, "timeout", "it does not answer: check host, port and firewall"],
  [/no leader/, "unreachable", "its cluster is electing a leader: try again"],
];

/** What was not permitted to be sent, or never was, was not done. */
const NEVER_SENT = /Permissions Violation for Publish|ClosedConnectionError/i;

/** JetStream's code, of this error or of what caused it; null when the server did not say no. */
export function errorCodeOf(error: unknown): number | null {
  if (!(error instanceof Error)) return null;
  if (error.name === "NoResponders") return NO_RESPONDERS;
  const { code } = error as { readonly code?: unknown };
  return typeof code === "number" ? code : errorCodeOf(error.cause);
}

export function isConflict(error: unknown): boolean {
  const code = errorCodeOf(error);
  return code === WRONG_LAST_SEQUENCE || code === WRONG_LAST_SEQUENCE_UNKNOWN;
}

/** Whether the data may not be there any more, so that it has to be joined again. */
export function isDoubt(error: unknown): boolean {
  if (error instanceof DoubtfulData) return true;
  if (error instanceof StoreError) return isDoubt(error.cause);
  const code = errorCodeOf(error);
  return code === NO_RESPONDERS || code === STREAM_NOT_FOUND;
}

/** `outcome` is what is true of the request if the server did not say that it refused. */
export function storeErrorFrom(error: unknown, address: string, outcome: FailedOutcome): StoreError {
  if (error instanceof StoreError) return error;
  const text = describe(error);
  const code = errorCodeOf(error);
  const [, kind, advice] = diagnose(code, text);
  const isDone = code === null && !NEVER_SENT.test(text) ? outcome : "not-applied";
  return new StoreError(kind, `NATS at ${address}: ${advice} (${text})`, { outcome: isDone, cause: error });
}

function diagnose(code: number | null, text: string): readonly [unknown, StoreErrorKind, string] {
  if (code === null)
    return (
      FAILURES.find(([pattern]) => pattern.test(text)) ?? [text, "unreachable", "the connection was lost"]
    );
  return REFUSALS.find(([codes]) => codes.includes(code)) ?? [code, "internal", "it refused a request"];
}

/** Names, codes and messages of an error and of what caused it: what matters may stand in any of them. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as { readonly code?: unknown };
  const message = error.message.split("\n", 1)[0] ?? "";
  const label = typeof code === "string" ? code : error.name;
  const own = label === "Error" || message.includes(label) ? message : `${label} ${message}`;
  if (!(error.cause instanceof Error)) return own;
  const cause = describe(error.cause);
  return cause.includes(message) ? cause : `${own}: ${cause}`;
}
