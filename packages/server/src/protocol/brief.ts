/**
 * Answers as short as they can be, for clients that ask for them (docs/stream.md): what the client said itself is
 * not said back to it, and instants are told as distances. Made without a detour over objects, because a server
 * that is asked for thousands of leases a second spends a fifth of its time on writing answers.
 *
 * Promised, and held by a property test: what the SDK reads in a brief answer is what it would have read in the full
 * one. Whatever does not fit (a note, a handoff, a break, a token that the server chose) is told in full.
 */
import type { LeaseOp } from "solehold";
import type { ServiceReply } from "solehold/internal";

/** Of the request: what the answer need not repeat. */
export interface BriefQuestion {
  readonly tenant?: string;
  readonly holder?: string;
  readonly token?: string;
}

const RESUME_FROM_LEDGER = 1;
const REPLAYED = 2;
const RESUME_REQUIRED = 4;

/** All but the id, which comes first: `storeTimeMs, ... ]`. Null when it has to be told in full. */
export function briefAnswer(
  op: LeaseOp,
  { outcome }: ServiceReply,
  { tenant, holder, token }: BriefQuestion,
  waitedMs: number,
): string | null {
  if (outcome.kind !== "applied" || (op !== "acquire" && op !== "renew" && op !== "release")) return null;
  const { decision, storeTimeMs, validForMs } = outcome;
  const { lease, resumeFromLedgerRequired, replayed } = decision;
  if (tenant === undefined || lease.holder !== holder || outcome.token !== token) return null;
  if (lease.note !== "" || lease.handoff !== null || lease.breakAtMs !== null) return null;
  const term = Number(lease.term);
  const generation = Number(lease.generation);
  if (!Number.isSafeInteger(term) || !Number.isSafeInteger(generation)) return null;
  const { ttlMs, grantedAtMs, renewedAtMs, expiresAtMs, endedAtMs, renewals, state, purpose } = lease;
  const marks =
    (resumeFromLedgerRequired ? RESUME_FROM_LEDGER : 0) |
    (replayed ? REPLAYED : 0) |
    (lease.resumeRequired ? RESUME_REQUIRED : 0);
  const belief = `${storeTimeMs},${validForMs},${waitedMs}`;
  const grant = `${term},${generation},"${purpose}","${state}",${ttlMs}`;
  const ended = endedAtMs === null ? "null" : endedAtMs - storeTimeMs;
  const life = `${grantedAtMs - storeTimeMs},${renewedAtMs - grantedAtMs},${expiresAtMs - renewedAtMs},${ended}`;
  return `${belief},${grant},${life},${renewals},${marks}]`;
}
