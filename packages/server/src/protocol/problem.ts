/**
 * Problems: how every answer that is not a success looks (RFC 9457, application/problem+json). The status of a command's
 * outcome is chosen in response-codec.ts; problems that end a request before it is a command name their status here and
 * beside the check that finds them.
 *
 * No problem carries a token, an API key, or what another tenant holds.
 */

import type { LeaseServiceCode } from "solehold/internal";
import { REASON_CODES, type Reason } from "solehold/internal";

/** What can go wrong before a request becomes a command. The numbers continue core's, in a range of their own. */
export const SERVER_REASON_CODES = {
  UNAUTHENTICATED: 0x4c530101,
  FORBIDDEN: 0x4c530102,
  TOO_MANY_REQUESTS: 0x4c530103,
  ROUTE_NOT_FOUND: 0x4c530104,
  METHOD_NOT_ALLOWED: 0x4c530105,
  MEDIA_TYPE_UNSUPPORTED: 0x4c530106,
  BODY_TOO_LARGE: 0x4c530107,
  DRAINING: 0x4c530108,
  STORE_UNAVAILABLE: 0x4c530109,
  SELECTION_REFUSED: 0x4c53010a,
  CLIENT_GONE: 0x4c53010b,
  STORE_CANNOT: 0x4c53010c,
} as const;

export type ServerReason = keyof typeof SERVER_REASON_CODES;
export type ProblemReason = Reason | ServerReason;
export type ProblemCode = LeaseServiceCode | "LS_UNAUTHENTICATED" | "LS_FORBIDDEN" | "LS_TOO_MANY";

/** More about the problem. Absent fields do not apply. */
export interface ProblemFacts {
  /** What has to be corrected in the request. */
  readonly field?: string;
  readonly heldBy?: string | null;
  readonly heldUntilMs?: number | null;
  readonly retryAfterMs?: number;
  /** After a 503: whether the command may have been carried out. */
  readonly outcome?: "unknown" | "not-applied";
  /** What kind of failure the store reported. */
  readonly storeError?: string;
  readonly storeTimeMs?: number;
  /** How the approvals were judged, where a rule asked for some. */
  readonly quorum?: object;
  /** Of a record that cannot be read: the store's version, and what is wrong. */
  readonly recordVersion?: string;
  readonly recordDetail?: string;
  /** The coordinator's own code, where it refused. */
  readonly coordinatorCode?: string;
}

export interface ProblemInput {
  readonly status: number;
  readonly reason: ProblemReason;
  readonly code: ProblemCode;
  readonly detail: string;
  readonly facts?: ProblemFacts;
}

export interface ProblemBody extends ProblemFacts {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly reason: ProblemReason;
  readonly reasonCode: number;
  readonly code: ProblemCode;
  readonly traceId: string;
}

/** Thrown where a request ends early; the app turns it into the answer. */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  readonly input: ProblemInput;

  constructor(input: ProblemInput) {
    super(input.detail);
    this.input = input;
  }
}

const TITLES: Readonly<Record<number, string>> = {
  400: "The request cannot be decided",
  401: "Who is asking is not known",
  403: "Not allowed",
  404: "Not found",
  405: "Method not allowed",
  409: "Denied",
  412: "Fenced: a newer grant exists",
  413: "The request is too large",
  415: "The body must be JSON",
  429: "Too many",
  499: "The client has gone",
  500: "The server failed",
  501: "Not possible with this store",
  503: "Not available now",
};

export function problemBody(
  { status, reason, code, detail, facts }: ProblemInput,
  traceId: string,
): ProblemBody {
  return {
    type: `urn:solehold:problem:${reason.toLowerCase().replaceAll("_", "-")}`,
    title: TITLES[status] ?? "Problem",
    status,
    detail,
    reason,
    reasonCode: codeOf(reason),
    code,
    traceId,
    ...facts,
  };
}

function codeOf(reason: ProblemReason): number {
  return reason in REASON_CODES
    ? REASON_CODES[reason as Reason]
    : SERVER_REASON_CODES[reason as ServerReason];
}

/** A field that has to be corrected, before anything was decided. */
export function refusal(field: string, message: string): ProblemInput {
  return {
    status: 400,
    reason: "INPUT_SCHEMA_INVALID",
    code: "LS_INVALID",
    detail: `${field} ${message}`,
    facts: { field },
  };
}

export function forbidden(detail: string): ProblemInput {
  return { status: 403, reason: "FORBIDDEN", code: "LS_FORBIDDEN", detail };
}

export function tooMany(detail: string, retryAfterMs: number): ProblemInput {
  const facts = { retryAfterMs: Math.ceil(retryAfterMs) };
  return { status: 429, reason: "TOO_MANY_REQUESTS", code: "LS_TOO_MANY", detail, facts };
}

/** What a store lost its users have to know, whatever they asked for. */
export const DATA_LOSS =
  "the store lost data that it had acknowledged (a failover, a restored backup or a flush): leases that were granted may be missing from it, and their holders may still believe in them; look after those holders, and ask again";

/** No other store, no other answer: repeating the request does not help. */
export function storeCannot(detail: string): ProblemInput {
  return { status: 501, reason: "STORE_CANNOT", code: "LS_UNAVAILABLE", detail };
}

/** This process is going away; another replica, or its successor, will answer. */
export function draining(): ProblemInput {
  return {
    status: 503,
    reason: "DRAINING",
    code: "LS_UNAVAILABLE",
    detail: "this server is shutting down: ask another replica, or this one again in a moment",
    facts: { retryAfterMs: 1_000, outcome: "not-applied" },
  };
}

/** For the logs: nobody is left to read it. */
export function clientGone(): ProblemInput {
  return { status: 499, reason: "CLIENT_GONE", code: "LS_UNAVAILABLE", detail: "the connection was closed" };
}

/** Retry-After counts whole seconds; rounded up, so that nobody comes too early. */
export function retryAfterSeconds(retryAfterMs: number): string {
  return String(Math.max(1, Math.ceil(retryAfterMs / 1_000)));
}
