/** The writer lease of a database on shared storage: who may write, under which term and generation. */
import { compareFences, fenceOf, type LeaseRecord } from "../core/index.ts";

export interface WriterLease {
  readonly databaseKey: string;
  readonly holderId: string;
  readonly term: bigint;
  readonly generation: bigint;
  readonly acquiredAtMs: number;
  readonly expiresAtMs: number;
}

export function writerLeaseOf(record: LeaseRecord): WriterLease {
  return {
    databaseKey: record.key.name,
    holderId: record.holder,
    term: record.term,
    generation: record.generation,
    acquiredAtMs: record.grantedAtMs,
    // A released lease is, to every reader of the format, one that has expired.
    expiresAtMs:
      record.state === "released" ? Math.min(record.expiresAtMs, record.endedAtMs ?? 0) : record.expiresAtMs,
  };
}

/** Half-open: dead at exactly expiresAtMs. */
export function isExpired(lease: WriterLease, nowMs: number): boolean {
  return lease.expiresAtMs <= nowMs;
}

/** Whether a writer of the current term has overtaken this lease. */
export function isFencedByTerm(lease: WriterLease, currentTerm: bigint): boolean {
  return lease.term < currentTerm;
}

/** (term, generation) as one number, in that order. */
export function fencingToken(lease: WriterLease): bigint {
  return fenceOf(lease.term, lease.generation);
}

export function compareWriterLeases(a: WriterLease, b: WriterLease): number {
  return compareFences(fencingToken(a), fencingToken(b));
}
