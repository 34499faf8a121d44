/**
 * Problems that end a request before it is a command, and errors as problems. How they look, and which status and code
 * each reason has, is the wire format's.
 */
import { StoreError } from "solehold";
import { DATA_LOSS, type ProblemInput } from "solehold/internal";

/**
 * Thrown where a request ends early; HTTP and the stream turn it into the answer. It is an answer and no fault, so it has no
 * stack: to record one is half of what refusing costs (`npm run floods -w packages/server -- malformed`).
 */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  readonly input: ProblemInput;

  constructor(input: ProblemInput) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(input.detail);
    Error.stackTraceLimit = stackTraceLimit;
    this.input = input;
  }
}

/** A field that has to be corrected, before anything was decided. */
export function refusal(field: string, message: string): ProblemInput {
  return { reason: "INPUT_SCHEMA_INVALID", detail: `${field} ${message}`, facts: { field } };
}

export function forbidden(detail: string): ProblemInput {
  return { reason: "FORBIDDEN", detail };
}

export function tooMany(detail: string, retryAfterMs: number): ProblemInput {
  return { reason: "TOO_MANY_REQUESTS", detail, facts: { retryAfterMs: Math.ceil(retryAfterMs) } };
}

/** No other store, no other answer: repeating the request does not help. */
export function storeCannot(detail: string): ProblemInput {
  return { reason: "STORE_CANNOT", detail };
}

/** This process is going away; another replica, or its successor, will answer. */
export function draining(): ProblemInput {
  const detail = "this server is shutting down: ask another replica, or this one again in a moment";
  return { reason: "DRAINING", detail, facts: { retryAfterMs: 1_000, outcome: "not-applied" } };
}

/** For the logs: nobody is left to read it. */
export function clientGone(): ProblemInput {
  return { reason: "CLIENT_GONE", detail: "the connection was closed" };
}

/** What is neither a problem nor a failure of the store is a fault of this server. */
export function problemOf(error: unknown): ProblemInput {
  if (error instanceof ProblemError) return error.input;
  if (error instanceof StoreError) return storeProblem(error);
  return { reason: "INTERNAL_PIPELINE_ERROR", detail: "the server failed" };
}

/** Only the kind of failure leaves the server: the message may name hosts. */
function storeProblem({ kind, outcome }: StoreError): ProblemInput {
  const detail = kind === "data-loss" ? DATA_LOSS : "the store cannot be reached: try again";
  return { reason: "STORE_UNAVAILABLE", detail, facts: { outcome, storeError: kind, retryAfterMs: 1_000 } };
}
