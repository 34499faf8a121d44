/**
 * The record: all that the store knows about one key. It outlives the lease (released and expired leases
 * leave it behind as a tombstone), because its generation is what makes the next fence larger.
 *
 * All instants are milliseconds of the STORE's clock. They are never compared with a client's clock.
 */
import { fenceOf } from "./fence.ts";
import { NO_TOKEN_HASH } from "./identifiers.ts";
import type { LeaseKey } from "./key.ts";
import { DEFAULT_PURPOSE, type Purpose } from "./purpose.ts";

export type LeaseState = "held" | "released" | "revoked";

/** A lease offered to one successor: until the deadline nobody else may take it. */
export interface Handoff {
  readonly successor: string;
  readonly deadlineMs: number;
}

/**
 * A released lease kept for one waiter: until the deadline only an acquire that presents the ticket is granted. Unlike a
 * handoff it says nothing about the work: the holder finished it.
 */
export interface Reservation {
  readonly ticket: string;
  readonly deadlineMs: number;
}

/** Data of programs about a lease, by name. */
export type Metadata = { readonly [name: string]: string };

export const NO_METADATA: Metadata = Object.freeze({});

/** What the last command with an idempotency key was, so that a repeat gets the same answer. */
export interface IdempotencyMark {
  readonly op: string;
  /** SHA-256 of the caller's key, base64url: a reader of the store learns nothing to replay. */
  readonly keyHash: string;
  /** SHA-256 of the caller and the arguments: the same key with other arguments is refused. */
  readonly fingerprint: string;
  /** The grant's token, sealed with the idempotency key, so that a repeat after a restart gets it back. */
  readonly sealedToken: string;
  /** The mark of the acquire that the grant came from, where this is the mark of a later command. */
  readonly grant?: Omit<IdempotencyMark, "op" | "grant">;
}

export interface LeaseRecord {
  readonly key: LeaseKey;
  readonly holder: string;
  readonly purpose: Purpose;
  /** SHA-256 of the grant's token, base64url. The token itself is never stored. */
  readonly tokenHash: string;
  readonly term: bigint;
  readonly generation: bigint;
  readonly ttlMs: number;
  readonly grantedAtMs: number;
  readonly renewedAtMs: number;
  /** The lease is alive while now < expiresAtMs. In a revoked record: until when its holder may believe. */
  readonly expiresAtMs: number;
  /** When it was released or revoked. */
  readonly endedAtMs: number | null;
  readonly state: LeaseState;
  readonly renewals: number;
  /** The holder took over unfinished work and has not yet said that it resumed from persisted state. */
  readonly resumeRequired: boolean;
  /** No renewal reaches past this instant: somebody asked for the lease to be broken. */
  readonly breakAtMs: number | null;
  /** Nobody may claim the key before this instant, even if the lease has ended: its minimum hold. */
  readonly minHoldUntilMs: number | null;
  /** For so long after an expiry, not after a release, nobody may claim the key. */
  readonly lockDelayMs: number;
  readonly handoff: Handoff | null;
  readonly reservation: Reservation | null;
  /** The ticket with which the holder waited; the empty string when it presented none. */
  readonly ticket: string;
  /** Unique per write attempt: recognises one's own write after a lost reply. */
  readonly nonce: string;
  readonly idempotency: IdempotencyMark | null;
  /** Free text for people; the empty string when there is none. */
  readonly note: string;
  readonly metadata: Metadata;
}

/** A record in the making. */
export type RecordDraft = { -readonly [Field in keyof LeaseRecord]: LeaseRecord[Field] };

/**
 * A copy to be changed. Field by field, because that takes a tenth of the time of a spread of so many and a third of
 * the memory; and in the order in which a new grant has them, so that all records have one shape.
 */
export function draftOf(record: LeaseRecord): RecordDraft {
  return {
    key: record.key,
    holder: record.holder,
    purpose: record.purpose,
    tokenHash: record.tokenHash,
    term: record.term,
    generation: record.generation,
    ttlMs: record.ttlMs,
    grantedAtMs: record.grantedAtMs,
    renewedAtMs: record.renewedAtMs,
    expiresAtMs: record.expiresAtMs,
    endedAtMs: record.endedAtMs,
    state: record.state,
    renewals: record.renewals,
    resumeRequired: record.resumeRequired,
    breakAtMs: record.breakAtMs,
    minHoldUntilMs: record.minHoldUntilMs,
    lockDelayMs: record.lockDelayMs,
    handoff: record.handoff,
    reservation: record.reservation,
    ticket: record.ticket,
    nonce: record.nonce,
    idempotency: record.idempotency,
    note: record.note,
    metadata: record.metadata,
  };
}

/** What differs between the records that Solehold writes for itself. */
export interface SystemRecord
  extends Pick<LeaseRecord, "key" | "holder" | "generation" | "nonce">,
    Partial<Pick<LeaseRecord, "note" | "metadata">> {
  readonly writtenAtMs: number;
  /** It is not collected before the retention after this has passed. */
  readonly endedAtMs: number;
}

/** A lease that is held and has nothing special, in the order in which a new grant has its fields. */
const PLAIN: LeaseRecord = {
  key: { tenant: "", name: "" },
  holder: "",
  purpose: DEFAULT_PURPOSE,
  tokenHash: NO_TOKEN_HASH,
  term: 0n,
  generation: 1n,
  ttlMs: 1,
  grantedAtMs: 0,
  renewedAtMs: 0,
  expiresAtMs: 0,
  endedAtMs: null,
  state: "held",
  renewals: 0,
  resumeRequired: false,
  breakAtMs: null,
  minHoldUntilMs: null,
  lockDelayMs: 0,
  handoff: null,
  reservation: null,
  ticket: "",
  nonce: "",
  idempotency: null,
  note: "",
  metadata: NO_METADATA,
};

/** A record that no command makes: what is not given is as in a lease without anything special. */
export function plainRecord(
  own: Pick<LeaseRecord, "key" | "holder" | "nonce" | "expiresAtMs"> & Partial<LeaseRecord>,
): LeaseRecord {
  return { ...PLAIN, ...own };
}

/** A released lease that nobody ever held: no token hashes to its token's hash. */
export function systemRecord({ writtenAtMs, endedAtMs, ...own }: SystemRecord): LeaseRecord {
  const times = { grantedAtMs: writtenAtMs, renewedAtMs: writtenAtMs, expiresAtMs: endedAtMs, endedAtMs };
  return plainRecord({ ...own, ...times, purpose: "StateWrite", state: "released" });
}

export function recordFence(record: LeaseRecord): bigint {
  return fenceOf(record.term, record.generation);
}

/** Whether `a` is an earlier state of one key than `b`: by fence, then what is held before its end, then by renewals. */
export function isOlderRecord(
  a: Pick<LeaseRecord, "term" | "generation" | "state" | "renewals">,
  b: Pick<LeaseRecord, "term" | "generation" | "state" | "renewals">,
): boolean {
  if (a.term !== b.term) return a.term < b.term;
  if (a.generation !== b.generation) return a.generation < b.generation;
  return a.state === "held" && (b.state !== "held" || a.renewals < b.renewals);
}

/** Held and not expired. */
export function isLiveAt(record: LeaseRecord, nowMs: number): boolean {
  return record.state === "held" && nowMs < record.expiresAtMs;
}

export type LeasePhase = "active" | "grace" | "expired";

/** In grace only the holder may act: it is the last part of the lease, before anybody may take it. */
export function phaseAt(record: LeaseRecord, nowMs: number, graceMs: number): LeasePhase {
  if (!isLiveAt(record, nowMs)) return "expired";
  return nowMs < record.expiresAtMs - graceMs ? "active" : "grace";
}

/** Until when a released lease is kept for one successor or one waiter; null when it is for anybody. */
export function reservedUntil({ handoff, reservation }: LeaseRecord): number | null {
  return (handoff ?? reservation)?.deadlineMs ?? null;
}

/** From when on anybody may claim the key, whatever the policy says of revoked leases. */
export function claimableFrom(record: LeaseRecord): number {
  const { state, expiresAtMs, lockDelayMs } = record;
  const overAtMs = state === "held" ? expiresAtMs + lockDelayMs : state === "revoked" ? expiresAtMs : 0;
  return Math.max(overAtMs, record.minHoldUntilMs ?? 0, reservedUntil(record) ?? 0);
}

/** When the record stopped mattering, for collection: its end, or the latest instant it could bind anybody. */
export function endOfRecord(record: LeaseRecord): number {
  const endedAtMs = record.state === "released" ? (record.endedAtMs ?? record.renewedAtMs) : 0;
  return Math.max(endedAtMs, claimableFrom(record));
}
