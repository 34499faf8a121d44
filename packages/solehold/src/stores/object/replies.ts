/** What a server's reply, or the lack of one, means for a read and for a conditional write. */
import { StoreError, type StoreErrorKind } from "../../store/index.ts";
import { HttpFailure, type HttpReply } from "./http.ts";
import { type PutOutcome, plainEtag } from "./port.ts";

/** The server's own word for an error, from its body or a header; empty when it has none. */
export type ErrorCodeOf = (reply: HttpReply) => string;

/** Codes that say that the place itself does not exist, and not merely the object. */
const NO_PLACE = new Set(["NoSuchBucket", "ContainerNotFound", "ContainerBeingDeleted", "NoSuchWebsite"]);

export interface Words {
  readonly place: string;
  readonly errorCodeOf: ErrorCodeOf;
  /** How to give credentials, and how to make the place, in a few words. */
  readonly credentialsAdvice: string;
  readonly placeAdvice: string;
}

/** The outcome of a conditional write. Throws a StoreError when it was certainly refused for another reason. */
export function outcomeOf(words: Words, reply: HttpReply): PutOutcome {
  const { status, dateMs } = reply;
  const code = words.errorCodeOf(reply);
  if (status >= 200 && status < 300) return { kind: "applied", etag: plainEtag(reply.headers.etag), dateMs };
  // Azure's word for a failed If-None-Match; other conflicts may be about a write that is still going on.
  if (status === 409 && code === "BlobAlreadyExists") return { kind: "precondition-failed", dateMs };
  if (status === 412) return { kind: "precondition-failed", dateMs };
  if (status === 404 && !NO_PLACE.has(code)) return { kind: "precondition-failed", dateMs };
  if (status === 409 || status === 408 || status === 429 || status >= 500)
    return { kind: "unknown", cause: new Error(replyText(words, reply)), dateMs };
  throw refusal(words, reply);
}

/** A request without a whole reply: not sent at all, or nobody knows. */
export function outcomeOfFailure(words: Words, error: unknown): PutOutcome {
  const failure = failureOf(words, error);
  if (failure.outcome === "not-applied") throw failure;
  return { kind: "unknown", cause: failure, dateMs: null };
}

export function failureOf(words: Words, error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  if (!(error instanceof HttpFailure)) {
    const message = `${words.place}: ${error instanceof Error ? error.message : String(error)}`;
    return new StoreError("internal", message, { outcome: "not-applied", cause: error });
  }
  const outcome = error.sent === "no" ? "not-applied" : "unknown";
  const kind: StoreErrorKind = error.reason === "timeout" ? "timeout" : "unreachable";
  const advice = connectionAdvice(error.message);
  return new StoreError(kind, `${words.place}: ${advice} (${error.message})`, { outcome, cause: error });
}

function connectionAdvice(message: string): string {
  if (/ECONNREFUSED/.test(message)) return "nothing listens there: start the server or correct the endpoint";
  if (/ENOTFOUND|EAI_AGAIN/.test(message)) return "that host is unknown: correct the endpoint";
  if (/CERT|SELF_SIGNED|UNABLE_TO_VERIFY/.test(message))
    return "its TLS certificate is not trusted: set NODE_EXTRA_CA_CERTS to its CA";
  if (/EPROTO|ERR_SSL|WRONG_VERSION/.test(message))
    return "it does not speak TLS on that port: use http: in the endpoint";
  return "it does not answer: check host, port and network";
}

/** The object's reply, or null when there is no such object. Throws a StoreError for everything else. */
export function foundIn(words: Words, reply: HttpReply): HttpReply | null {
  const { status } = reply;
  if (status === 200) return reply;
  if (status === 404 && !NO_PLACE.has(words.errorCodeOf(reply))) return null;
  throw refusal(words, reply);
}

export function refusal(words: Words, reply: HttpReply): StoreError {
  const { status } = reply;
  const text = replyText(words, reply);
  const fail = (kind: StoreErrorKind, advice: string): StoreError =>
    new StoreError(kind, `${words.place}: ${advice} (${text})`, { outcome: "not-applied" });
  const code = words.errorCodeOf(reply);
  if (/TimeTooSkewed/.test(code)) return fail("config", "this machine's clock is wrong: set it");
  if (status === 401 || status === 403 || /^(InvalidAccessKeyId|AuthenticationFailed)$/.test(code))
    return fail("auth", `access is denied: ${words.credentialsAdvice}`);
  if (status === 404) return fail("config", `it does not exist: ${words.placeAdvice}`);
  if (status >= 300 && status < 400) return fail("config", "it is elsewhere: correct region and endpoint");
  if (status === 408 || status === 429 || status >= 500)
    return fail("unreachable", "it cannot answer now: try again later");
  return fail("config", "it refused the request: check endpoint, region and names");
}

function replyText({ errorCodeOf }: Words, reply: HttpReply): string {
  const code = errorCodeOf(reply);
  return `HTTP ${reply.status}${code === "" ? "" : ` ${code}`}`;
}
