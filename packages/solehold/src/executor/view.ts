/** A lease as anybody may see it: the record without what proves ownership. */
import {
  type Handoff,
  isLiveAt,
  type LeaseKey,
  type LeasePhase,
  type LeasePolicy,
  type LeaseRecord,
  type LeaseState,
  type Metadata,
  type Purpose,
  phaseAt,
  type Reservation,
  recordFence,
} from "../core/index.ts";

export interface LeaseView {
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
  return {
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
    handoff,
    reservation: record.reservation,
    note,
    metadata: record.metadata,
  };
}
