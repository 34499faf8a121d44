/** A lease as anybody may see it: the record without what proves ownership. */
import {
  formatFence,
  isLiveAt,
  type LeasePhase,
  type LeasePolicy,
  type LeaseRecord,
  leaseIdOf,
  phaseAt,
  recordFence,
} from "../core/index.ts";

type Secret = "tokenHash" | "nonce" | "idempotency" | "ticket";

export interface LeaseView extends Omit<LeaseRecord, Secret> {
  /** `tenant/name@fence`: every grant has its own. */
  readonly leaseId: string;
  readonly fence: bigint;
  /** Held and not expired at the store's time of the reading. */
  readonly live: boolean;
  readonly phase: LeasePhase;
  /** Zero when it is over. */
  readonly remainingMs: number;
}

/** Field by field: a field that is added to the record is not shown to everybody by itself. */
export function viewOf(record: LeaseRecord, nowMs: number, policy: LeasePolicy): LeaseView {
  const { key, holder, purpose, term, generation, state, ttlMs, renewals, resumeRequired } = record;
  const { grantedAtMs, renewedAtMs, expiresAtMs, endedAtMs, breakAtMs, minHoldUntilMs, lockDelayMs } = record;
  const { handoff, reservation, note, metadata } = record;
  const live = isLiveAt(record, nowMs);
  return printable({
    leaseId: leaseIdOf(record),
    key,
    holder,
    purpose,
    fence: recordFence(record),
    term,
    generation,
    state,
    live,
    phase: phaseAt(record, nowMs, policy.graceMs),
    ttlMs,
    grantedAtMs,
    renewedAtMs,
    expiresAtMs,
    endedAtMs,
    remainingMs: live ? expiresAtMs - nowMs : 0,
    renewals,
    resumeRequired,
    breakAtMs,
    minHoldUntilMs,
    lockDelayMs,
    handoff,
    reservation,
    note,
    metadata,
  });
}

/** JSON has no integers of 64 bits: the three that may be too large are written as decimal strings. */
class PrintableView {
  toJSON(): object {
    const { fence, term, generation, ...rest } = this as unknown as LeaseView;
    return { ...rest, fence: formatFence(fence), term: String(term), generation: String(generation) };
  }
}

/** The view, with a `toJSON`, so that `JSON.stringify` and loggers can take it. */
export function printable(view: LeaseView): LeaseView {
  return Object.assign(new PrintableView(), view);
}

export type LeaseStatus = "held" | "grace" | "breaking" | "expired" | "released" | "revoked" | "handed over";

/** The state in one word, with what the record's state alone does not say. */
export function leaseStatus(view: LeaseView): LeaseStatus {
  if (view.state === "revoked") return "revoked";
  if (view.state === "released") return view.handoff === null ? "released" : "handed over";
  if (!view.live) return "expired";
  if (view.breakAtMs !== null) return "breaking";
  return view.phase === "grace" ? "grace" : "held";
}
