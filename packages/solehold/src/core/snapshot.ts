/** What a decision is made on: the record as it was read, and what is known to be wrong with it. */
import type { LeaseRecord } from "./record.ts";

/** Everything that was read from the store for this decision. */
export interface LeaseSnapshot {
  readonly record: LeaseRecord | null;
  /** A new grant is above this generation, too: the store's revision where it has one, otherwise 0. */
  readonly floor: bigint;
  /** What is wrong with what was read. Absent when nothing is known to be. */
  readonly violation?: IntegrityViolation | null;
}

/** Why nothing may be granted on a snapshot, whatever it shows. */
export type IntegrityViolation =
  /** The record is damaged and must not be overwritten. */
  | { readonly kind: "corrupt"; readonly detail: string }
  /**
   * The store shows less than was seen before: it lost writes. A holder whose record is gone may believe in its lease
   * for `forMs` more; infinite where the next fence would never be above those that were seen.
   */
  | { readonly kind: "lost-writes"; readonly forMs: number };
