/** A lease as anybody may see it: the record without what proves ownership. */
import {
  formatFence,
  type Handoff,
  isLiveAt,
  type LeaseKey,
  type LeasePhase,
  type LeasePolicy,
  type LeaseRecord,
  type LeaseState,
  leaseIdOf,
  type Metadata,
  type Purpose,
  phaseAt,
  type Reservation,
  recordFence,
} from "../core/index.ts";

export interface LeaseView {
  /** `tenant/name@fence`: every grant has its own. */
  readonly leaseId: string;
  readonly key: LeaseKey;
  readonly holder: string;
  readonly purpose: Purpose;
  readonly fence: bigint;
  readonly term: bigint;
  readonly generation: bigint;
  readonly state: LeaseState;
  /** Held and not expired at the store's time of the reading. */
  readonly live: boolean;
  readonly phase: LeasePhase;
  readonly ttlMs: number;
  readonly grantedAtMs: number;
  readonly renewedAtMs: number;
  readonly expiresAtMs: number;
  readonly endedAtMs: number | null;
  /** Zero when it is over. */
  readonly remainingMs: number;
  readonly renewals: number;
  readonly resumeRequired: boolean;
  readonly breakAtMs: number | null;
  /** Nobody may claim the key before this instant, even if the lease has ended. */
  readonly minHoldUntilMs: number | null;
  /** For how long after an expiry nobody may claim the key. */
  readonly lockDelayMs: number;
  readonly handoff: Handoff | null;
  readonly reservation: Reservation | null;
  readonly note: string;
  readonly metadata: Metadata;
}

export function viewOf(record: LeaseRecord, nowMs: number, policy: LeasePolicy): LeaseView {
  const { key, holder, purpose, term, generation, state, ttlMs, renewals, resumeRequired, handoff, note } =
    record;
  const { grantedAtMs, renewedAtMs, expiresAtMs, endedAtMs, breakAtMs } = record;
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
    minHoldUntilMs: record.minHoldUntilMs,
    lockDelayMs: record.lockDelayMs,
    handoff,
    reservation: record.reservation,
    note,
    metadata: record.metadata,
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
