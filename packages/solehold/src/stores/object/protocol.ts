/**
 * What differs between the protocols of object stores, and what a server's reply means for a read and for a
 * conditional write: the operator's table of errors.
 */
import { type FailedOutcome, StoreError, type StoreErrorKind } from "../../store/index.ts";
import type { HttpClient, HttpReply } from "../support/http.ts";

export interface Protocol {
  /** For messages: "S3 bucket 'x' at http://host". Never with a secret. */
  readonly place: string;
  /** Adds what proves who sends a request. */
  readonly http: Pick<HttpClient, "send" | "close">;
  /** How to give credentials, and how to make the place, in a few words. */
  readonly credentialsAdvice: string;
  readonly placeAdvice: string;
  /** Headers of every write of an object. */
  readonly putHeaders: Readonly<Record<string, string>>;
  /** The server's own word for an error, from its body or a header; empty when it has none. */
  errorCodeOf(reply: HttpReply): string;
  urlOf(name: string): string;
  /** Null where the protocol has no listing. */
  readonly listing: {
    url(prefix: string, after: string | null, limit: number): string;
    parse(body: string): { readonly names: readonly string[]; readonly next: string | null };
  } | null;
}

/** Codes of S3 for temporary credentials that hold no longer. */
export const EXPIRED_TOKEN = /^(ExpiredToken|TokenRefreshRequired|InvalidToken)$/;
/** Codes that say that the place itself does not exist, and not merely the object. */
const NO_PLACE = /^(NoSuchBucket|ContainerNotFound|ContainerBeingDeleted|NoSuchWebsite)$/;

/** What a reply says about a conditional write; "refused" is certain, and not because of the condition. */
export function verdictOf(
  protocol: Protocol,
  reply: HttpReply,
): "applied" | "precondition-failed" | "unknown" | "refused" {
  const { status } = reply;
  const code = protocol.errorCodeOf(reply);
  if (status >= 200 && status < 300) return "applied";
  // Azure's word for a failed If-None-Match; other conflicts may be about a write that is still going on.
  if (status === 412 || code === "BlobAlreadyExists") return "precondition-failed";
  if (status === 404 && !NO_PLACE.test(code)) return "precondition-failed";
  return isTemporary(status) ? "unknown" : "refused";
}

/** Whether the reply to a read shows an object; null when there is none. Throws a StoreError for everything else. */
export function foundIn(protocol: Protocol, reply: HttpReply): HttpReply | null {
  if (reply.status === 200) return reply;
  if (reply.status === 404 && !NO_PLACE.test(protocol.errorCodeOf(reply))) return null;
  throw refusal(protocol, reply, "not-applied");
}

/** What is wrong, in one line that says what to do. */
export function refusal(protocol: Protocol, reply: HttpReply, outcome: FailedOutcome): StoreError {
  const { status } = reply;
  const code = protocol.errorCodeOf(reply);
  const said = `HTTP ${status} ${code}`.trim();
  const fail = (kind: StoreErrorKind, advice: string): StoreError =>
    new StoreError(kind, `${protocol.place}: ${advice} (${said})`, { outcome });
  if (/TimeTooSkewed/.test(code)) return fail("config", "this machine's clock is wrong: set it");
  if (EXPIRED_TOKEN.test(code))
    return fail("auth", "the session token has expired: pass as credentials a function that gets new ones");
  if (status === 401 || status === 403 || code === "InvalidAccessKeyId")
    return fail("auth", `access is denied: ${protocol.credentialsAdvice}`);
  if (status === 404) return fail("config", `it does not exist: ${protocol.placeAdvice}`);
  if (status >= 300 && status < 400) return fail("config", "it is elsewhere: correct region and endpoint");
  if (status === 409) return fail("conflict", "another write got in the way: read, then try again");
  if (isTemporary(status)) return fail("unreachable", "it cannot answer now: try again later");
  return fail("config", "it refused the request: check endpoint, region and names");
}

function isTemporary(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500;
}
