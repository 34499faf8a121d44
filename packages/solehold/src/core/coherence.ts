/**
 * Whether a snapshot can be decided on at all: it is there, its parts belong together, and it is of the key that the
 * command names. Stores check what they read; this is for everybody else who hands a snapshot to `decide`.
 */
import type { FieldProblem } from "./field-problem.ts";
import { describeType } from "./identifiers.ts";
import type { LeaseKey } from "./key.ts";
import type { Reason } from "./reasons.ts";
import type { LeaseRecord } from "./record.ts";
import type { LeaseSnapshot } from "./snapshot.ts";

export interface Incoherence {
  /** UPSTREAM_INPUT_MISSING where something is not there at all, INPUT_SCHEMA_INVALID where it contradicts itself. */
  readonly reason: Extract<Reason, "UPSTREAM_INPUT_MISSING" | "INPUT_SCHEMA_INVALID">;
  readonly problem: FieldProblem;
}

const SNAPSHOT = "snapshot";
const STATES = new Set<unknown>(["held", "released", "revoked"]);

/** The shape alone. `evaluatePolicy` compares the key once it knows that the command has one. */
export function snapshotIncoherence(snapshot: LeaseSnapshot): Incoherence | null {
  if (typeof snapshot !== "object" || snapshot === null)
    return missing("", `must be what was read from the store, got ${describeType(snapshot)}`);
  const { record, floor } = snapshot;
  if (record === undefined) return missing(".record", "is missing: pass null where the store has no record");
  if (!isU64(floor)) return contradictory(".floor", "must be a bigint from 0 to 2^64-1");
  if (record === null) return null;
  if (typeof record !== "object" || typeof record.key !== "object" || record.key === null)
    return missing(".record.key", "is missing: a record belongs to a key");
  return ownershipIncoherence(record) ?? numberIncoherence(record);
}

export function keyIncoherence({ record }: LeaseSnapshot, key: LeaseKey): Incoherence | null {
  if (record === null || (record.key.tenant === key.tenant && record.key.name === key.name)) return null;
  return contradictory(".record.key", "is not the key of the request: read the record of that key");
}

/** Whether a problem is the snapshot's, not the request's. */
export function isSnapshotProblem({ field }: FieldProblem): boolean {
  return field.startsWith(SNAPSHOT);
}

/** Owner, token and expiry: all three, or no record. */
function ownershipIncoherence({ holder, tokenHash, expiresAtMs, state }: LeaseRecord): Incoherence | null {
  if (!isText(holder)) return missing(".record.holder", PARTIAL);
  if (!isText(tokenHash)) return missing(".record.tokenHash", PARTIAL);
  if (expiresAtMs === undefined || expiresAtMs === null) return missing(".record.expiresAtMs", PARTIAL);
  if (!isWhole(expiresAtMs)) return contradictory(".record.expiresAtMs", WHOLE);
  return STATES.has(state) ? null : contradictory(".record.state", "must be held, released or revoked");
}

function numberIncoherence({ term, generation, ttlMs }: LeaseRecord): Incoherence | null {
  if (!isU64(term)) return contradictory(".record.term", "must be a bigint from 0 to 2^64-1");
  if (!isU64(generation)) return contradictory(".record.generation", "must be a bigint from 0 to 2^64-1");
  return isWhole(ttlMs) ? null : contradictory(".record.ttlMs", WHOLE);
}

const PARTIAL = "is missing: a record has a holder, a token's hash and an expiry, or it is null";
const WHOLE = "must be a whole number of milliseconds";

function isText(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}

function isWhole(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isU64(value: unknown): boolean {
  return typeof value === "bigint" && BigInt.asUintN(64, value) === value;
}

function missing(part: string, message: string): Incoherence {
  return { reason: "UPSTREAM_INPUT_MISSING", problem: { field: `${SNAPSHOT}${part}`, message } };
}

function contradictory(part: string, message: string): Incoherence {
  return { reason: "INPUT_SCHEMA_INVALID", problem: { field: `${SNAPSHOT}${part}`, message } };
}
