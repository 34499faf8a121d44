/** From what the library answers or throws to a failure with the documented exit code. */

import {
  LeaseDeniedError,
  LeaseHeldError,
  LeaseLostError,
  LeaseRefusedError,
  LeaseUnavailableError,
  type Reason,
  StoreError,
} from "solehold";
import {
  type AppliedOutcome,
  type CommandOutcome,
  CorruptRecordError,
  type LeaseDecision,
  REASONS,
} from "solehold/internal";
import { EXIT, errorFailure, Failure, type FailureFacts, usageFailure } from "../failure.ts";
import { shortDuration } from "./duration.ts";

/** The grant, or a failure that says why there is none: to a holder it means that its lease is over. */
export function appliedOrThrow(
  outcome: CommandOutcome,
  name: string,
  asker: "holder" | "operator",
): AppliedOutcome {
  if (outcome.kind === "applied") return outcome;
  if (outcome.kind === "unsettled") throw unavailable(name, outcome.outcome, outcome.cause);
  const { decision } = outcome;
  if (decision.kind === "refused") throw refused(decision.reason, decision.field, decision.message);
  throw denied(decision, name, asker);
}

function describeReason(reason: Reason): string {
  return REASONS[reason].sentence;
}

function denied(
  { reason, heldBy }: Extract<LeaseDecision, { kind: "denied" }>,
  name: string,
  asker: "holder" | "operator",
): Failure {
  const by = reason === "LEASE_HELD_BY_OTHER" && heldBy !== null ? `, by ${heldBy}` : "";
  const message = `${name}: ${describeReason(reason)}${by} (${reason})`;
  const facts = { key: name, reason, holder: heldBy };
  const isLost = asker === "holder" && REASONS[reason].loss !== null;
  if (!isLost) return errorFailure("LEASE_DENIED", message, facts);
  return new Failure(message, { exitCode: EXIT.lost, code: "LEASE_LOST", facts });
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
  const facts = { reason, field };
  return new Failure(`${option} ${message}`, { exitCode: EXIT.usage, code: "LEASE_REFUSED", facts });
}

function unavailable(name: string, outcome: "unknown" | "not-applied", cause: Error): Failure {
  const facts = { key: name, outcome };
  if (cause instanceof StoreError && cause.kind === "data-loss") return dataLoss(cause, facts);
  const hint = outcome === "unknown" ? " (it may have taken effect: repeating the command is safe)" : "";
  const answered = cause instanceof StoreError && (cause.kind === "auth" || cause.kind === "config");
  const what = answered ? cause.message : `the store did not answer: ${cause.message}${hint}`;
  return errorFailure("LEASE_UNAVAILABLE", `${name}: ${what}`, facts);
}

/** The store says it once; the next command works on what is left. */
function dataLoss({ message }: StoreError, facts: FailureFacts): Failure {
  const wayOut =
    "leases that were granted may be missing, and their holders may still believe in them: make sure that they have stopped, then repeat the command";
  return new Failure(`the store lost data that it had acknowledged: ${message}; ${wayOut}`, {
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
    const facts = { key: error.key.name, reason: error.reason };
    const message = `${error.key.name}: the lease is over: ${error.reason}`;
    return new Failure(message, { exitCode: EXIT.lost, code: "LEASE_LOST", facts });
  }
  if (error instanceof LeaseDeniedError) {
    const facts = { key: error.key.name, reason: error.reason };
    const message = `${error.key.name}: ${describeReason(error.reason)} (${error.reason})`;
    return errorFailure("LEASE_DENIED", message, facts);
  }
  if (error instanceof CorruptRecordError) {
    const { key, version, detail, code } = error;
    const fix = `nothing is granted until an operator repairs it: solehold repair ${key.name}`;
    const message = `the record of ${key.name} (version ${version}) is damaged: ${detail}; ${fix}`;
    return errorFailure(code, message, { key: key.name, version });
  }
  if (error instanceof StoreError) return storeFailure(error);
  const message = error instanceof Error ? error.message : String(error);
  // The library throws RangeError for what a caller wrote wrong: a URL, a tenant, a timing.
  return error instanceof RangeError ? usageFailure(message) : errorFailure("ERROR", message);
}

function storeFailure(error: StoreError): Failure {
  const { kind, outcome, message } = error;
  if (kind === "data-loss") return dataLoss(error, { outcome });
  // A store that was described wrongly is a mistake of the command line, not of the store.
  const exitCode = kind === "config" ? EXIT.usage : EXIT.error;
  const facts = { kind, outcome };
  return new Failure(`${message}${hiddenCause(error)}`, { exitCode, code: "STORE_ERROR", facts });
}

/** A store's message may guess that a package is missing, when it is there and failed to load: the cause says so. */
function hiddenCause({ message, cause }: StoreError): string {
  if (!(cause instanceof Error) || message.includes(cause.message)) return "";
  const { code = "" } = cause as NodeJS.ErrnoException;
  return code.endsWith("MODULE_NOT_FOUND") ? "" : ` (the cause: ${cause.message})`;
}

function fieldless({ message, field }: LeaseRefusedError): string {
  return message.startsWith(`${field} `) ? message.slice(field.length + 1) : message;
}

export function heldFailure({ holder, reason, retryAfterMs, key, code }: LeaseHeldError): Failure {
  const verb = reason === "LEASE_HANDOFF_PENDING" ? "reserved for" : "held by";
  const by = holder === null ? `not free: ${describeReason(reason)}` : `${verb} ${holder}`;
  const until = retryAfterMs === null ? "" : `, for at most another ${shortDuration(retryAfterMs)}`;
  const self = reason === "LEASE_HELD_BY_SELF" ? " (your own name: renew it with its token)" : "";
  const inMs = retryAfterMs === null ? null : Math.ceil(retryAfterMs);
  const facts = { key: key.name, reason, holder, retryAfterMs: inMs };
  return new Failure(`${key.name} is ${by}${until}${self}`, { exitCode: EXIT.held, code, facts });
}
