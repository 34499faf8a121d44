/** What went wrong, as a StoreError of one line that says what to do. Messages never carry a password. */
import { type FailedOutcome, StoreError, type StoreErrorKind } from "../../store/index.ts";

interface Diagnosis {
  readonly kind: StoreErrorKind;
  readonly advice: string;
}

const NO_PERMISSION = "its user may not do this: see docs/stores/redis.md for the ACL";

/**
 * The request was refused or never sent. A script is stopped at its first write then, so nothing was done. Older
 * servers put words of their own before the code of an error inside a script.
 */
const REFUSALS: readonly (readonly [RegExp, Diagnosis])[] = [
  [
    /\bWRONGPASS\b|invalid password/,
    { kind: "auth", advice: "the user name or password is wrong: correct it in the URL" },
  ],
  [
    /\bNOAUTH\b/,
    { kind: "auth", advice: "it wants a password: put it into the URL, redis://user:password@host" },
  ],
  [/^NOPERM\b/, { kind: "auth", advice: NO_PERMISSION }],
  [/\bOOM\b/, { kind: "full", advice: "its memory is full: raise maxmemory or remove other data" }],
  [/\bMISCONF\b/, { kind: "full", advice: "it cannot save to its disk and refuses writes: repair the disk" }],
  [/\bREADONLY\b/, { kind: "unreachable", advice: "it is a replica: use the address of the primary" }],
  [
    /\bNOREPLICAS\b/,
    { kind: "unreachable", advice: "too few replicas are connected for it to accept writes" },
  ],
  [
    /\b(LOADING|BUSY|MASTERDOWN|TRYAGAIN|CLUSTERDOWN)\b/,
    { kind: "unreachable", advice: "it is not ready: wait, or look into its log" },
  ],
  [
    /Stream isn't writeable|client is (closed|offline)/,
    { kind: "unreachable", advice: "there is no connection at the moment" },
  ],
  [/max number of clients/, { kind: "unreachable", advice: "it has no connection left: raise maxclients" }],
  [
    /\b(MOVED|ASK|CROSSSLOT)\b/,
    {
      kind: "config",
      advice: "it is part of a Redis Cluster: pass a cluster client of ioredis or node-redis",
    },
  ],
  [
    /DB index is out of range|invalid DB index/,
    { kind: "config", advice: "it has no database of that number: correct the end of the URL" },
  ],
  [
    /unknown command|NOPROTO/i,
    {
      kind: "config",
      advice: "it lacks a command that is needed: Redis 5 or later, or Valkey, with scripts",
    },
  ],
];

/** Failures on the way, or in the middle of a script: the request may have been carried out. */
const FAILURES: readonly (readonly [RegExp, Diagnosis])[] = [
  [/NOPERM|ACL failure|The user executing the script/, { kind: "auth", advice: NO_PERMISSION }],
  [/ECONNREFUSED/, { kind: "unreachable", advice: "nothing listens there: start Redis or correct the URL" }],
  [/ENOTFOUND|EAI_AGAIN/, { kind: "unreachable", advice: "that host is unknown: correct the URL" }],
  [
    /ETIMEDOUT|timeout/i,
    { kind: "unreachable", advice: "it does not answer: check host, port and firewall" },
  ],
  [
    /CERT|SELF_SIGNED|UNABLE_TO_VERIFY/,
    { kind: "config", advice: "its TLS certificate is not trusted: set NODE_EXTRA_CA_CERTS to its CA" },
  ],
  [
    /WRONG_VERSION_NUMBER|EPROTO|ERR_SSL|packet length too long/,
    { kind: "config", advice: "it does not speak TLS on that port: use redis:, or the port for rediss:" },
  ],
  [
    /Failed to refresh slots cache|None of the root nodes is available/,
    { kind: "unreachable", advice: "none of its nodes can be reached: check their addresses" },
  ],
  [
    /Protocol error|Unknown RESP type|reply type byte|ParserError/i,
    { kind: "config", advice: "what answers there is not Redis: correct host and port" },
  ],
];

/** `outcome` is what is true of the request if the server did not say that it refused. */
export function storeErrorFrom(error: unknown, address: string, outcome: FailedOutcome): StoreError {
  if (error instanceof StoreError) return error;
  const text = describe(error);
  const refusal = REFUSALS.find(([pattern]) => pattern.test(text))?.[1];
  if (refusal !== undefined) return failure(refusal, address, text, "not-applied", error);
  const diagnosis = FAILURES.find(([pattern]) => pattern.test(text))?.[1] ?? {
    kind: isReply(error) ? "internal" : "unreachable",
    advice: isReply(error) ? "it refused a script" : "the connection was lost",
  };
  return failure(diagnosis, address, text, outcome, error);
}

/** The address may mean another server by now, or this one another role: a new connection has to find out. */
const ENDS_CONNECTION = /\b(READONLY|LOADING|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|MOVED|ASK|NOAUTH)\b/;

/** Whether nothing more should be sent on the connection on which this happened. */
export function endsConnection(error: unknown): boolean {
  return !isReply(error) || ENDS_CONNECTION.test(describe(error));
}

/** No answer in time. */
export function silenceError(address: string, timeoutMs: number, outcome: FailedOutcome): StoreError {
  const message = `Redis at ${address} gave no answer within ${timeoutMs} ms: check that it runs and is not overloaded`;
  return new StoreError("timeout", message, { outcome });
}

export function isMissingScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("NOSCRIPT");
}

function failure(
  { kind, advice }: Diagnosis,
  address: string,
  text: string,
  outcome: FailedOutcome,
  cause: unknown,
): StoreError {
  return new StoreError(kind, `Redis at ${address}: ${advice} (${text})`, { outcome, cause: bare(cause) });
}

/** Clients hang the whole command onto their errors: a log must not get to see it. */
function bare(cause: unknown): Error {
  const error = new Error(describe(cause));
  if (cause instanceof Error && cause.stack !== undefined) error.stack = cause.stack;
  return error;
}

/** The code as well as the message: Node puts what matters into either. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as { readonly code?: unknown };
  const inner = error instanceof AggregateError ? error.errors.map(describe).join(", ") : "";
  const message = error.message.split("\n", 1)[0] ?? "";
  const parts =
    typeof code === "string" && !message.includes(code) ? [code, message, inner] : [message, inner];
  return parts.filter((part) => part !== "").join(" ");
}

/** Whether the server replied it. Both clients have classes of their own for that. */
export function isReply(error: unknown): boolean {
  return (
    error instanceof Error && /^(ReplyError|SimpleError|ErrorReply|BlobError)$/.test(error.constructor.name)
  );
}
