/** What went wrong, as a StoreError of one line that says what to do. Messages never carry a password. */
import { type FailedOutcome, StoreError, type StoreErrorKind } from "../../store/index.ts";
import { DataLossError } from "./lineage.ts";
import { NO_RESPONDERS, RefusedRequest } from "./replies.ts";

interface Diagnosis {
  readonly kind: StoreErrorKind;
  readonly advice: string;
}

const NO_JETSTREAM: Diagnosis = {
  kind: "config",
  advice: "JetStream is not enabled: start the server with --jetstream and enable it for the account",
};
const FULL: Diagnosis = { kind: "full", advice: "its storage is full: raise the limit or free some" };
const NOT_READY: Diagnosis = { kind: "unreachable", advice: "its JetStream is not ready" };

/** By the code of JetStream's error. The server said no, so nothing was done. */
const REFUSALS: Readonly<Record<number, Diagnosis>> = {
  [NO_RESPONDERS]: NO_JETSTREAM,
  10039: NO_JETSTREAM,
  10076: NO_JETSTREAM,
  10008: NOT_READY,
  10009: NOT_READY,
  10118: NOT_READY,
  10002: FULL,
  10023: FULL,
  10028: FULL,
  10047: FULL,
  10077: FULL,
  10026: {
    kind: "full",
    advice: "the account may not have more streams: raise its limit or name another bucket",
  },
  10054: { kind: "config", advice: "the bucket's max_msg_size is too small: raise it to 16384 or more" },
  10005: { kind: "config", advice: "it has too few servers for that many replicas: set fewer" },
  10074: { kind: "config", advice: "it is a single server and keeps one replica: set replicas to 1" },
  10065: { kind: "config", advice: "another stream takes the bucket's subjects: name another bucket" },
};

/** By the text of the error, of connections that fail before or while a request is on its way. */
const FAILURES: readonly (readonly [RegExp, Diagnosis])[] = [
  [
    /Authorization Violation|Authentication|nkey|jwt/i,
    {
      kind: "auth",
      advice: "it refuses the user: correct user and password, or the token, in the URL",
    },
  ],
  [
    /Permissions Violation/i,
    { kind: "auth", advice: "its user may not do this: see docs/stores/nats.md for the rights" },
  ],
  [
    /ECONNREFUSED|connection refused/i,
    { kind: "unreachable", advice: "nothing listens there: start nats-server or correct the URL" },
  ],
  [/ENOTFOUND|EAI_AGAIN/, { kind: "unreachable", advice: "that host is unknown: correct the URL" }],
  [
    /CERT|SELF_SIGNED|UNABLE_TO_VERIFY/,
    { kind: "config", advice: "its TLS certificate is not trusted: set NODE_EXTRA_CA_CERTS to its CA" },
  ],
  [
    /'tls'|ERR_SSL|EPROTO|WRONG_VERSION_NUMBER/,
    { kind: "config", advice: "it does not offer TLS: use nats:, or set it up on the server" },
  ],
  [
    /unexpected response|Unexpected token|Parse Error|max_payload/i,
    { kind: "config", advice: "what answers there is not a NATS server: correct host and port" },
  ],
  [
    /timeout|ETIMEDOUT/i,
    { kind: "unreachable", advice: "it does not answer: check host, port and firewall" },
  ],
];

const LOST: Diagnosis = { kind: "unreachable", advice: "the connection was lost" };

/** `outcome` is what is true of the request if the server did not say that it refused. */
export function storeErrorFrom(error: unknown, address: string, outcome: FailedOutcome): StoreError {
  if (error instanceof StoreError) return error.outcome === outcome ? error : withOutcome(error, outcome);
  const text = describe(error);
  if (error instanceof RefusedRequest) {
    const diagnosis = REFUSALS[error.code] ?? { kind: "internal", advice: "it refused a request" };
    return failure(diagnosis, address, text, "not-applied", error);
  }
  const diagnosis = FAILURES.find(([pattern]) => pattern.test(text))?.[1] ?? LOST;
  // What is not permitted was not done; anything else may have been.
  return failure(diagnosis, address, text, diagnosis.kind === "auth" ? "not-applied" : outcome, error);
}

/** For calls of several requests, of which one failed: the others may have been done. A loss of data undoes all. */
export function asUnknown(error: StoreError): StoreError {
  return error.outcome === "unknown" ? error : withOutcome(error, "unknown");
}

function withOutcome(error: StoreError, outcome: FailedOutcome): StoreError {
  if (error instanceof DataLossError) return error;
  return new StoreError(error.kind, error.message, { outcome, cause: error.cause ?? error });
}

export function closedError(): StoreError {
  return new StoreError("closed", "the NATS store was closed", { outcome: "not-applied" });
}

/** Errors that waiting does not cure. */
export function isLasting(error: StoreError): boolean {
  return error.kind === "auth" || error.kind === "config";
}

function failure(
  { kind, advice }: Diagnosis,
  address: string,
  text: string,
  outcome: FailedOutcome,
  cause: unknown,
): StoreError {
  return new StoreError(kind, `NATS at ${address}: ${advice} (${text})`, { outcome, cause });
}

/** The code as well as the message, and those of what caused it: Node puts what matters into any of them. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as { readonly code?: unknown };
  const message = error.message.split("\n", 1)[0] ?? "";
  const own = typeof code === "string" && !message.includes(code) ? `${code} ${message}` : message;
  return error.cause instanceof Error ? `${own}: ${describe(error.cause)}` : own;
}
