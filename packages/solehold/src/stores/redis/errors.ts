/** What went wrong, as a StoreError of one line that says what to do. Messages never carry a password. */
import { type FailedOutcome, StoreError } from "../../store/index.ts";
import { type Diagnosis, errorText, noConnection } from "../support/failures.ts";

const NO_PERMISSION = "its user may not do this: see docs/stores/redis.md for the ACL";

/**
 * The request was refused or never sent. A script is stopped at its first write then, so nothing was done. Older
 * servers put words of their own before the code of an error inside a script.
 */
const REFUSALS: readonly Diagnosis[] = [
  [/\bWRONGPASS\b|invalid password/, "auth", "the user name or password is wrong: correct it in the URL"],
  [/\bNOAUTH\b/, "auth", "it wants a password: put it into the URL, redis://user:password@host"],
  [/^NOPERM\b/, "auth", NO_PERMISSION],
  [/\bOOM\b/, "full", "its memory is full: raise maxmemory or remove other data"],
  [/\bMISCONF\b/, "full", "it cannot save to its disk and refuses writes: repair the disk"],
  [/\bREADONLY\b/, "unreachable", "it is a replica: use the address of the primary"],
  [/\bNOREPLICAS\b/, "unreachable", "too few replicas are connected for it to accept writes"],
  [/\b(LOADING|BUSY|MASTERDOWN|TRYAGAIN|CLUSTERDOWN)\b/, "unreachable", "it is not ready: see its log"],
  [/Stream isn't writeable|client is (closed|offline)/i, "unreachable", "there is no connection now"],
  [/max number of clients/, "unreachable", "it has no connection left: raise maxclients"],
  [/\b(MOVED|ASK|CROSSSLOT)\b/, "config", "it is part of a Redis Cluster: pass a cluster client"],
  [
    /DB index is out of range|invalid DB index/,
    "config",
    "it has no database of that number: correct the URL",
  ],
  [
    /unknown command|NOPROTO/i,
    "config",
    "a command is missing: use Redis 5 or later, or Valkey, with scripts",
  ],
];

/** Failures on the way, or in the middle of a script: the request may have been carried out. */
const FAILURES: readonly Diagnosis[] = [
  [/NOPERM|ACL failure|The user executing the script/, "auth", NO_PERMISSION],
  ...noConnection("Redis"),
  [/ETIMEDOUT|timeout/i, "unreachable", "it does not answer: check host, port and firewall"],
  [/slots cache|root nodes/, "unreachable", "none of its nodes can be reached: check their addresses"],
  [/WRONG_VERSION|EPROTO|ERR_SSL|packet length/, "config", "it does not speak TLS on that port: use redis:"],
  [/Protocol error|RESP type|type byte|ParserError/i, "config", "it is not Redis: correct host and port"],
];

/** What a script replied, with the id of the request: certainly an error of this request and no other. */
export class ScriptError extends Error {
  override readonly name = "ScriptError";
}

/** `outcome` is what is true of the request if it is not certain that the server refused it. */
export function storeErrorFrom(error: unknown, address: string, outcome: FailedOutcome): StoreError {
  if (error instanceof StoreError) return error;
  const text = errorText(error);
  const matches = ([pattern]: Diagnosis): boolean => pattern.test(text);
  const refusal = REFUSALS.find(matches);
  const isCertain = refusal !== undefined && !isReply(error);
  const other: Diagnosis =
    isReply(error) || error instanceof ScriptError
      ? [/./, "internal", "it refused a script"]
      : [/./, "unreachable", "the connection was lost"];
  const [, kind, advice] = refusal ?? FAILURES.find(matches) ?? other;
  // Clients hang the whole command onto their errors: a log must not get to see it.
  const cause = Object.assign(new Error(text), error instanceof Error ? { stack: error.stack } : {});
  return new StoreError(kind, `Redis at ${address}: ${advice} (${text})`, {
    outcome: isCertain ? "not-applied" : outcome,
    cause,
  });
}

/** A script was refused by a server that is a replica now: the address may mean another one. */
export function isDemotion(error: unknown): boolean {
  return error instanceof ScriptError && /\bREADONLY\b/.test(error.message);
}

export function isMissingScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("NOSCRIPT");
}

/** Whether it came as a reply to some request. Both clients have classes of their own for that. */
export function isReply(error: unknown): boolean {
  const name = error instanceof Error ? error.constructor.name : "";
  return /^(ReplyError|SimpleError|ErrorReply|BlobError)$/.test(name);
}
