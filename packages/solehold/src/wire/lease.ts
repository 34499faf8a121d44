/**
 * A lease as JSON. What proves ownership (hashes, nonces, idempotency marks) never travels: a decoded record has values
 * in their place that nobody can use.
 */
import {
  formatFence,
  type Handoff,
  isPurpose,
  type LeasePhase,
  type LeaseRecord,
  type LeaseState,
  leaseId,
  type Metadata,
  metadataProblem,
  NO_TOKEN_HASH,
  type Purpose,
  type Reservation,
  slotIn,
} from "../core/index.ts";
import { type LeaseView, printable } from "../executor/index.ts";
import { type Fields, fieldsOf, textIn, wholeIn, wholeOrNullIn } from "./fields.ts";

export interface WireLease extends Omit<LeaseView, "key" | "fence" | "term" | "generation"> {
  readonly tenant: string;
  readonly name: string;
  /** The name that was asked for: leases that have it in common are the slots of one thing. */
  readonly slotOf: string;
  readonly slot: number;
  /** Decimal, zero-padded: strings sort as fences do. */
  readonly fence: string;
  /** Decimal: it may exceed 2^53. */
  readonly term: string;
  /** Decimal: it may exceed 2^53. */
  readonly generation: string;
}

export function encodeLease(view: LeaseView): WireLease {
  const { leaseId, key, fence, term, generation, ...shown } = view;
  const { name: slotOf, slot } = slotIn(key.name);
  return {
    ...{ leaseId, ...key, slotOf, slot },
    ...shown,
    fence: formatFence(fence),
    term: String(term),
    generation: String(generation),
  };
}

/** Throws where the value is not an encoded lease. */
export function decodeLease(value: unknown): LeaseView {
  const fields = fieldsOf(value);
  const {
    tokenHash: _tokenHash,
    nonce: _nonce,
    idempotency: _idempotency,
    ticket: _ticket,
    ...shared
  } = decodeLeaseRecord(fields);
  const fence = BigInt(textIn(fields, "fence"));
  return printable({
    leaseId: leaseId(shared.key, fence),
    ...shared,
    fence,
    live: fields.live === true,
    phase: phaseFrom(fields.phase),
    remainingMs: wholeIn(fields, "remainingMs"),
  });
}

/** As much of the record as travels. Throws where the value is not an encoded lease. */
export function decodeLeaseRecord(value: unknown): LeaseRecord {
  const lease = fieldsOf(value);
  return {
    key: { tenant: textIn(lease, "tenant"), name: textIn(lease, "name") },
    holder: textIn(lease, "holder"),
    purpose: purposeFrom(lease.purpose),
    tokenHash: NO_TOKEN_HASH,
    term: BigInt(textIn(lease, "term")),
    generation: BigInt(textIn(lease, "generation")),
    ttlMs: wholeIn(lease, "ttlMs"),
    grantedAtMs: wholeIn(lease, "grantedAtMs"),
    renewedAtMs: wholeIn(lease, "renewedAtMs"),
    expiresAtMs: wholeIn(lease, "expiresAtMs"),
    endedAtMs: wholeOrNullIn(lease, "endedAtMs"),
    state: stateFrom(lease.state),
    renewals: wholeIn(lease, "renewals"),
    resumeRequired: lease.resumeRequired === true,
    breakAtMs: wholeOrNullIn(lease, "breakAtMs"),
    minHoldUntilMs: wholeOrNullIn(lease, "minHoldUntilMs"),
    lockDelayMs: wholeIn(lease, "lockDelayMs"),
    handoff: lease.handoff === null ? null : handoffFrom(fieldsOf(lease.handoff)),
    reservation: lease.reservation === null ? null : reservationFrom(fieldsOf(lease.reservation)),
    ticket: "",
    nonce: "remote",
    idempotency: null,
    note: textIn(lease, "note"),
    metadata: metadataFrom(lease.metadata),
  };
}

function stateFrom(value: unknown): LeaseState {
  if (value === "held" || value === "released" || value === "revoked") return value;
  throw new Error(`state ${String(value)}`);
}

function phaseFrom(value: unknown): LeasePhase {
  if (value === "active" || value === "grace" || value === "expired") return value;
  throw new Error(`phase ${String(value)}`);
}

function purposeFrom(value: unknown): Purpose {
  if (isPurpose(value)) return value;
  throw new Error(`purpose ${String(value)}`);
}

function handoffFrom(handoff: Fields): Handoff {
  return { successor: textIn(handoff, "successor"), deadlineMs: wholeIn(handoff, "deadlineMs") };
}

function reservationFrom(reservation: Fields): Reservation {
  return { ticket: textIn(reservation, "ticket"), deadlineMs: wholeIn(reservation, "deadlineMs") };
}

function metadataFrom(value: unknown): Metadata {
  const problem = metadataProblem(value);
  if (problem !== null) throw new Error(`metadata ${problem}`);
  return value as Metadata;
}
