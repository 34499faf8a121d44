/** From what the library answers or throws to a failure with the documented exit code. */
import {
  type CommandOutcome,
  CorruptRecordError,
  type LeaseDecision,
  LeaseDeniedError,
  LeaseHeldError,
  LeaseLostError,
  LeaseRefusedError,
  LeaseUnavailableError,
  type Reason,
  StoreError,
} from "solehold";
import { EXIT } from "./exit-codes.ts";
import { Failure, type FailureDetails, oneLine } from "./failure.ts";
import { shortDuration } from "./text/duration.ts";

type Applied = Extract<CommandOutcome, { kind: "applied" }>;

/** Who asks: the holder of a lease, or an operator that ends somebody's. */
export type Asker = "holder" | "operator";

/** The grant, or a failure that says why there is none. */
export function appliedOrThrow(outcome: CommandOutcome, name: string, asker: Asker): Applied {
  if (outcome.kind === "applied") return outcome;
  if (outcome.kind === "unsettled") throw unavailable(name, outcome.outcome, outcome.cause);
  throw rejected(outcome.decision, name, asker);
}

/** What stands against a holder that asks about its own lease: it is over, or a rule forbids this one thing. */
const NOT_A_LOSS: ReadonlySet<Reason> = new Set<Reason>([
  "LEASE_PURPOSE_MISMATCH",
  "LEASE_RESUME_REQUIRED",
  "LEASE_BREAKING",
  "QUORUM_NOT_MET",
  "CAPACITY_EXCEEDED",
  "RECORD_CORRUPT",
]);

const IN_WORDS: { readonly [reason in Reason]?: string } = {
  LEASE_HELD_BY_OTHER: "it is held by another",
  LEASE_HELD_BY_SELF: "this holder already has it, under another token",
  LEASE_TOKEN_INVALID: "the token is not that of the current grant",
  LEASE_NOT_FOUND: "there is no such lease",
  LEASE_EXPIRED: "it has expired",
  LEASE_REVOKED: "it was revoked",
  LEASE_ALREADY_REVOKED: "it was revoked before",
  LEASE_FENCED: "a newer term was seen",
  LEASE_PURPOSE_MISMATCH: "it was granted for another purpose",
  LEASE_HANDOFF_PENDING: "it is reserved for a successor",
  LEASE_BREAKING: "an operator asked for it back: it can be used until it ends, but not prolonged",
  LEASE_RESUME_REQUIRED:
    "the last holder did not finish: rebuild from persisted state, then 'solehold resume'",
  LEASE_GENERATION_STALE: "another grant is current: look at the fence that 'get' shows",
  FENCE_EXHAUSTED: "its fences are used up",
  QUORUM_NOT_MET: "approvals are missing",
  CAPACITY_EXCEEDED: "there are too many leases",
  RECORD_CORRUPT: "its record is damaged: an operator has to repair it with 'solehold repair'",
  FENCE_WENT_BACK: "the store lost writes: its fences went back",
};

export function reasonInWords(reason: Reason): string {
  return IN_WORDS[reason] ?? reason;
}

function rejected(
  decision: Exclude<LeaseDecision, { kind: "granted" }>,
  name: string,
  asker: Asker,
): Failure {
  const { reason } = decision;
  if (decision.kind === "refused") return refused(reason, decision.field, decision.message);
  const by = decision.heldBy === null ? "" : `, by ${decision.heldBy}`;
  const words = reason === "LEASE_HELD_BY_OTHER" ? `${reasonInWords(reason)}${by}` : reasonInWords(reason);
  const lost = asker === "holder" && !NOT_A_LOSS.has(reason);
  return new Failure(`${name}: ${words} (${reason})`, {
    exitCode: lost ? EXIT.lost : EXIT.error,
    code: lost ? "LEASE_LOST" : "LEASE_DENIED",
    facts: { key: name, reason, holder: decision.heldBy },
  });
}

/** The library's names of fields, as they are called on the command line. */
const OPTION_OF_FIELD: Readonly<Record<string, string>> = {
  ttlMs: "--ttl",
  "key.name": "KEY",
  "key.tenant": "--tenant",
  withinMs: "--within",
  periodMs: "--period",
  idempotencyKey: "--idempotency-key",
  successor: "--to",
};

function refused(reason: Reason, field: string, message: string): Failure {
  const option = OPTION_OF_FIELD[field] ?? `--${field}`;
  return new Failure(oneLine(`${option} ${message}`), {
    exitCode: EXIT.usage,
    code: "LEASE_REFUSED",
    facts: { reason, field },
  });
}

function unavailable(name: string, outcome: "unknown" | "not-applied", cause: Error): Failure {
  if (cause instanceof StoreError && cause.kind === "data-loss")
    return dataLoss(cause, { key: name, outcome });
  const hint = outcome === "unknown" ? " (it may have taken effect: repeating the command is safe)" : "";
  const answered = cause instanceof StoreError && (cause.kind === "auth" || cause.kind === "config");
  const what = answered ? cause.message : `the store did not answer: ${cause.message}${hint}`;
  return new Failure(oneLine(`${name}: ${what}`), {
    exitCode: EXIT.error,
    code: "LEASE_UNAVAILABLE",
    facts: { key: name, outcome },
  });
}

/** Said once by the store; the next command works on what is left. */
function dataLoss({ message }: StoreError, facts: FailureDetails["facts"] & object): Failure {
  const wayOut =
    "leases that were granted may be missing, and their holders may still believe in them: make sure that they have stopped, then repeat the command";
  return new Failure(oneLine(`the store lost data that it had acknowledged: ${message}; ${wayOut}`), {
    exitCode: EXIT.dataLoss,
    code: "STORE_DATA_LOSS",
    facts: { kind: "data-loss", ...facts },
  });
}

/** Anything that was thrown, as a failure. */
export function failureOf(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (error instanceof LeaseHeldError) return heldFailure(error);
  if (error instanceof LeaseRefusedError) return refused(error.reason, error.field, fieldless(error));
  if (error instanceof LeaseUnavailableError) {
    const cause = error.cause instanceof Error ? error.cause : error;
    return unavailable(error.key.name, error.outcome === "unknown" ? "unknown" : "not-applied", cause);
  }
  if (error instanceof LeaseLostError) {
    return new Failure(`${error.key.name}: the lease is over: ${error.reason}`, {
      exitCode: EXIT.lost,
      code: "LEASE_LOST",
      facts: { key: error.key.name, reason: error.reason },
    });
  }
  if (error instanceof LeaseDeniedError) {
    return new Failure(`${error.key.name}: ${reasonInWords(error.reason)} (${error.reason})`, {
      exitCode: EXIT.error,
      code: "LEASE_DENIED",
      facts: { key: error.key.name, reason: error.reason },
    });
  }
  if (error instanceof CorruptRecordError) {
    const { key, version, detail } = error;
    const fix = `nothing is granted until somebody repairs it: solehold repair ${key.name}`;
    return new Failure(
      oneLine(`the record of ${key.name} (version ${version}) is damaged: ${detail}; ${fix}`),
      {
        exitCode: EXIT.error,
        code: error.code,
        facts: { key: key.name, version },
      },
    );
  }
  const message = oneLine(error instanceof Error ? error.message : String(error));
  if (error instanceof StoreError && error.kind === "data-loss")
    return dataLoss(error, { outcome: error.outcome });
  if (error instanceof StoreError) {
    // A store that was described wrongly is a mistake of the command line, not of the store.
    const exitCode = error.kind === "config" ? EXIT.usage : EXIT.error;
    const { kind, outcome } = error;
    return new Failure(message, { exitCode, code: "STORE_ERROR", facts: { kind, outcome } });
  }
  // The library throws RangeError for what a caller wrote wrong: a URL, a tenant, a timing.
  if (error instanceof RangeError) return new Failure(message, { exitCode: EXIT.usage, code: "USAGE" });
  return new Failure(message, { exitCode: EXIT.error, code: "ERROR" });
}

function fieldless(error: LeaseRefusedError): string {
  return error.message.startsWith(`${error.field} `)
    ? error.message.slice(error.field.length + 1)
    : error.message;
}

export function heldFailure(error: LeaseHeldError): Failure {
  const { holder, reason, retryAfterMs, key } = error;
  const verb = reason === "LEASE_HANDOFF_PENDING" ? "reserved for" : "held by";
  const by = holder === null ? `not free: ${reasonInWords(reason)}` : `${verb} ${holder}`;
  const until = retryAfterMs === null ? "" : `, for at most another ${shortDuration(retryAfterMs)}`;
  const self = reason === "LEASE_HELD_BY_SELF" ? " (your own name: renew it with its token)" : "";
  return new Failure(`${key.name} is ${by}${until}${self}`, {
    exitCode: EXIT.held,
    code: error.code,
    facts: {
      key: key.name,
      reason,
      holder,
      retryAfterMs: retryAfterMs === null ? null : Math.ceil(retryAfterMs),
    },
  });
}
