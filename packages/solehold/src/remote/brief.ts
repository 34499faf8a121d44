/**
 * Brief requests and answers of a stream (docs/stream.md): lists in place of objects. A request does not name its
 * fields, an answer leaves out what the request said already. Nothing in an answer is trusted to have the right shape.
 */
import { isPurpose, type LeaseKey, type LeaseRecord, type LeaseState, NO_TOKEN_HASH } from "../core/index.ts";
import type { AppliedOutcome } from "../executor/index.ts";

/** What was asked, as far as an answer does not repeat it. */
export interface Question {
  readonly key: LeaseKey;
  readonly holder: string;
}

/** All of an applied outcome but its token and since when it may be believed. */
export interface BriefReading {
  readonly decision: AppliedOutcome["decision"];
  readonly storeTimeMs: number;
  readonly validForMs: number;
  readonly waitedMs: number;
}

const RESUME_FROM_LEDGER = 1;
const REPLAYED = 2;
const RESUME_REQUIRED = 4;

/** The body of an acquire, a renewal or a release; every field that a server knows of. */
export interface BriefableBody {
  readonly tenant?: unknown;
  readonly name?: unknown;
  readonly holder?: unknown;
  readonly token?: unknown;
  readonly ttlMs?: unknown;
  readonly purpose?: unknown;
  readonly waitMs?: unknown;
  readonly term?: unknown;
  readonly generation?: unknown;
  readonly note?: unknown;
  readonly idempotencyKey?: unknown;
  readonly approval?: unknown;
}

/** Null for what can only be said in full. */
export function briefRequest(id: number, op: string, body: BriefableBody): readonly unknown[] | null {
  if (op !== "acquire" && op !== "renew" && op !== "release") return null;
  const { tenant, name, holder, token, ttlMs, purpose, waitMs } = body;
  const isLonger =
    body.term !== undefined ||
    body.generation !== undefined ||
    body.note !== undefined ||
    body.idempotencyKey !== undefined ||
    body.approval !== undefined;
  const isNamed =
    typeof tenant === "string" &&
    typeof name === "string" &&
    typeof holder === "string" &&
    typeof token === "string";
  if (isLonger || !isNamed) return null;
  if (op === "acquire") {
    const isWhole = typeof ttlMs === "number" && typeof purpose === "string";
    if (!isWhole || !(waitMs === undefined || typeof waitMs === "number")) return null;
    return [id, op, tenant, name, holder, token, ttlMs, purpose, waitMs ?? 0];
  }
  if (purpose !== undefined || waitMs !== undefined) return null;
  if (op === "renew") return typeof ttlMs === "number" ? [id, op, tenant, name, holder, token, ttlMs] : null;
  return ttlMs === undefined ? [id, op, tenant, name, holder, token] : null;
}

/** Throws when it does not have the expected shape. */
export function readBrief(answer: readonly unknown[], { key, holder }: Question): BriefReading {
  const storeTimeMs = whole(answer, 1);
  const purpose = answer[6];
  if (!isPurpose(purpose)) throw new Error(`purpose ${String(purpose)}`);
  const grantedAtMs = storeTimeMs + whole(answer, 9);
  const renewedAtMs = grantedAtMs + whole(answer, 10);
  const marks = whole(answer, 14);
  const lease: LeaseRecord = {
    key,
    holder,
    purpose,
    tokenHash: NO_TOKEN_HASH,
    term: BigInt(whole(answer, 4)),
    generation: BigInt(whole(answer, 5)),
    ttlMs: whole(answer, 8),
    grantedAtMs,
    renewedAtMs,
    expiresAtMs: renewedAtMs + whole(answer, 11),
    endedAtMs: answer[12] === null ? null : storeTimeMs + whole(answer, 12),
    state: stateOf(answer[7]),
    renewals: whole(answer, 13),
    resumeRequired: (marks & RESUME_REQUIRED) !== 0,
    breakAtMs: null,
    handoff: null,
    nonce: "remote",
    idempotency: null,
    note: "",
  };
  const decision: AppliedOutcome["decision"] = {
    kind: "granted",
    reason: "OK_DECISION_COMPUTE",
    lease,
    resumeFromLedgerRequired: (marks & RESUME_FROM_LEDGER) !== 0,
    replayed: (marks & REPLAYED) !== 0,
  };
  return { decision, storeTimeMs, validForMs: whole(answer, 2), waitedMs: whole(answer, 3) };
}

export function stateOf(value: unknown): LeaseState {
  if (value === "held" || value === "released" || value === "revoked") return value;
  throw new Error(`state ${String(value)}`);
}

function whole(answer: readonly unknown[], index: number): number {
  const value = answer[index];
  if (!Number.isSafeInteger(value)) throw new Error(`entry ${index} is not a whole number`);
  return value as number;
}
