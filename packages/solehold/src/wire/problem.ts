/**
 * Problems: how every answer that is not a success looks (RFC 9457, application/problem+json). The tables of reasons say
 * which status and code a reason has: core's for decisions, the one below for what ends a request before it is a command.
 *
 * No problem carries a token, an API key, or what another tenant holds.
 */
import { type LeaseServiceCode, type Purpose, REASONS, type Reason } from "../core/index.ts";

export type ProblemCode = LeaseServiceCode | "LS_UNAUTHENTICATED" | "LS_FORBIDDEN" | "LS_TOO_MANY";

interface RequestReasonRow {
  readonly code: number;
  readonly status: number;
  readonly serviceCode: ProblemCode;
}

const row = (code: number, status: number, serviceCode: ProblemCode): RequestReasonRow => ({
  code,
  status,
  serviceCode,
});

/** What can go wrong before a request becomes a command. The numbers continue core's, in a range of their own. */
const TABLE = {
  UNAUTHENTICATED: row(0x4c530101, 401, "LS_UNAUTHENTICATED"),
  FORBIDDEN: row(0x4c530102, 403, "LS_FORBIDDEN"),
  TOO_MANY_REQUESTS: row(0x4c530103, 429, "LS_TOO_MANY"),
  ROUTE_NOT_FOUND: row(0x4c530104, 404, "LS_INVALID"),
  METHOD_NOT_ALLOWED: row(0x4c530105, 405, "LS_INVALID"),
  MEDIA_TYPE_UNSUPPORTED: row(0x4c530106, 415, "LS_INVALID"),
  BODY_TOO_LARGE: row(0x4c530107, 413, "LS_INVALID"),
  DRAINING: row(0x4c530108, 503, "LS_UNAVAILABLE"),
  STORE_UNAVAILABLE: row(0x4c530109, 503, "LS_UNAVAILABLE"),
  SELECTION_REFUSED: row(0x4c53010a, 400, "LS_INVALID"),
  CLIENT_GONE: row(0x4c53010b, 499, "LS_UNAVAILABLE"),
  STORE_CANNOT: row(0x4c53010c, 501, "LS_UNAVAILABLE"),
};

export type RequestReason = keyof typeof TABLE;
export type ProblemReason = Reason | RequestReason;

/** Core's reasons, and those of requests that never became a command. */
export const PROBLEM_REASONS: { readonly [reason in ProblemReason]: RequestReasonRow } = {
  ...REASONS,
  ...TABLE,
};

/** More about the problem. Absent fields do not apply. */
export interface ProblemFacts {
  /** What has to be corrected in the request. */
  readonly field?: string;
  /** The grant that a denial was decided against. */
  readonly leaseId?: string;
  /** The purpose that the request required. With `actual`, of a mismatch alone. */
  readonly expected?: Purpose;
  /** The purpose that the lease was granted for. */
  readonly actual?: Purpose;
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
  readonly reason: ProblemReason;
  readonly detail: string;
  readonly facts?: ProblemFacts;
  /** Only where it is not the reason's own. */
  readonly status?: number;
  /** Only where it is not the reason's own. */
  readonly code?: ProblemCode;
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

export interface WireAnswer<Body = unknown> {
  readonly status: number;
  readonly body: Body;
}

const TITLES: Readonly<Record<number, string>> = {
  400: "The request cannot be decided",
  401: "The caller is not known",
  403: "Not allowed",
  404: "Not found",
  405: "Method not allowed",
  408: "The request did not arrive in time",
  409: "Denied",
  412: "Fenced: a newer grant exists",
  413: "The request is too large",
  415: "The body must be JSON",
  429: "Too many",
  431: "The headers are too large",
  499: "The client has gone",
  500: "The server failed",
  501: "Not possible with this store",
  503: "Not available now",
};

export function encodeProblem(input: ProblemInput, traceId: string): WireAnswer<ProblemBody> {
  const { reason, detail, facts } = input;
  const row = PROBLEM_REASONS[reason];
  const { status = row.status, code = row.serviceCode } = input;
  const body: ProblemBody = {
    type: `urn:solehold:problem:${reason.toLowerCase().replaceAll("_", "-")}`,
    title: TITLES[status] ?? "Problem",
    status,
    detail,
    reason,
    reasonCode: row.code,
    code,
    traceId,
    ...facts,
  };
  return { status, body };
}
