/**
 * The audit of a command that the store writes itself, in the same step as the record: the answer then waits for one
 * write to the disk instead of two. What the entry says is known before the store is asked, for it tells the decision;
 * whether it counts, the store decides: note and record are written both, or neither.
 */
import type { GrantedDecision } from "../core/index.ts";
import type { LeaseRequest, Noting } from "../manager/index.ts";
import type { StoreNote } from "../store/index.ts";
import type { AuditEvent, AuditNotes } from "./audit/index.ts";
import { auditEventOf, type DecidedOutcome, entryOf, type LeaseDecisionEntry } from "./decision-entry.ts";

/** A second decision that the same write carries: the grant that follows a release. */
export interface FollowingGrant {
  readonly request: LeaseRequest;
  readonly traceId: string;
  /** The decisions, by that on which the write was made; null where it carries no second. */
  readonly pairOf: (
    decision: GrantedDecision,
  ) => { readonly released: GrantedDecision; readonly granted: GrantedDecision } | null;
}

const NONE: readonly AuditEvent[] = [];

export class AuditNote implements Noting {
  readonly #notes: AuditNotes;
  readonly #request: LeaseRequest;
  readonly #traceId: string;
  readonly #following: FollowingGrant | null;
  /** Of the attempt that is under way, or was the last. */
  #note: StoreNote | null = null;
  #events: readonly AuditEvent[] = NONE;
  #entry: LeaseDecisionEntry | null = null;
  #followingEntry: LeaseDecisionEntry | null = null;
  #isKept = false;

  constructor(
    notes: AuditNotes,
    request: LeaseRequest,
    traceId: string,
    following: FollowingGrant | null = null,
  ) {
    this.#notes = notes;
    this.#request = request;
    this.#traceId = traceId;
    this.#following = following;
  }

  note(decision: GrantedDecision, storeTimeMs: number): StoreNote | null {
    this.#drop();
    if (storeTimeMs <= 0) return null;
    const following = this.#following;
    const pair = following?.pairOf(decision) ?? null;
    const told: DecidedOutcome = { kind: "applied", decision: pair?.released ?? decision };
    const entry = entryOf(this.#request, told, this.#traceId, storeTimeMs);
    const event = auditEventOf(this.#request, told, entry, null);
    this.#entry = entry;
    if (following === null || pair === null) {
      this.#followingEntry = null;
      this.#events = [event];
    } else {
      const granted: DecidedOutcome = { kind: "applied", decision: pair.granted };
      const next = entryOf(following.request, granted, following.traceId, storeTimeMs);
      this.#followingEntry = next;
      this.#events = [event, auditEventOf(following.request, granted, next, null)];
    }
    this.#note = this.#notes.make(this.#events);
    return this.#note;
  }

  kept(note: StoreNote): void {
    if (note !== this.#note) return;
    this.#isKept = true;
    this.#notes.keep(note, this.#events);
  }

  /** Once the command has ended: its entry if that is safe, null if it has to be appended. */
  settled(): LeaseDecisionEntry | null {
    if (this.#isKept) return this.#entry;
    this.#drop();
    return null;
  }

  /** After `settled`: the entry of the grant that follows. */
  get followingEntry(): LeaseDecisionEntry | null {
    return this.#isKept ? this.#followingEntry : null;
  }

  #drop(): void {
    if (this.#note !== null) this.#notes.drop(this.#note);
    this.#note = null;
  }
}
