/** Failures that every engine has, in the same words. `place` begins the message: "Redis at db:6379". */
import { type FailedOutcome, StoreError, type StoreErrorKind } from "../../store/index.ts";

/** What an error's text looks like, what kind it is of, and what to do about it. */
export type Diagnosis = readonly [pattern: RegExp, kind: StoreErrorKind, advice: string];

/** What Node's errors say of connections that could not be made, in whichever client. */
export function noConnection(program: string): readonly Diagnosis[] {
  return [
    [
      /ECONNREFUSED|connection refused/i,
      "unreachable",
      `nothing listens there: start ${program} or correct the URL`,
    ],
    [/ENOTFOUND|EAI_AGAIN|resolution failed/, "unreachable", "that host is unknown: correct the URL"],
    [
      /CERT|SELF_SIGNED|UNABLE_TO_VERIFY/,
      "config",
      "its TLS certificate is not trusted: set NODE_EXTRA_CA_CERTS to its CA",
    ],
  ];
}

/** The first line of an error's message, with its code: Node puts what matters into either. */
export function errorText(error: unknown): string {
  // A host with several addresses fails with one error for each of them.
  if (error instanceof AggregateError) return [...new Set(error.errors.map(errorText))].join(" ");
  if (!(error instanceof Error)) return String(error);
  const { code } = error as { readonly code?: unknown };
  const message = error.message.split("\n", 1)[0] ?? "";
  return typeof code === "string" && !message.includes(code) ? `${code} ${message}`.trim() : message;
}

export function silenceError(place: string, timeoutMs: number, outcome: FailedOutcome): StoreError {
  const message = `${place} gave no answer within ${Math.ceil(timeoutMs)} ms: check that it runs, can be reached and is not overloaded`;
  return new StoreError("timeout", message, { outcome });
}

/** To be thrown once for each loss: afterwards the client works on what is there. */
export function lossError(place: string, loss: string, outcome: FailedOutcome): StoreError {
  const meaning =
    "leases may be granted again, although their holders may still believe in them until their ttl ends";
  return new StoreError("data-loss", `${place} lost data (${loss}): ${meaning}`, { outcome });
}

/** For calls of a store that was closed. */
export function closedError(store: string): StoreError {
  return new StoreError("closed", `the ${store} store was closed`, { outcome: "not-applied" });
}

/** The same failure with another outcome: of a call that did not send what its caller asks about, or had sent more. */
export function endedAs(outcome: FailedOutcome): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof StoreError)) throw error;
    throw new StoreError(error.kind, error.message, { outcome, cause: error.cause ?? error });
  };
}
