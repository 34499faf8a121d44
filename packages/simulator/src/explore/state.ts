/**
 * A state of the small world, in whole ticks. Instants count from the store's present: a tick moves all of
 * them one back, so two states that differ only in when they happen are one. That, numbers of grants kept in
 * order but close together, and clients that can swap names are why every state can be visited although time
 * and fences have no end.
 */
import type { LeaseState } from "solehold/internal";

export const OPERATIONS = ["acquire", "renew", "release", "revoke", "handoff", "break"] as const;
export type Operation = (typeof OPERATIONS)[number];

/** What decides about a record; the rest of it follows. */
export interface SmallRecord {
  readonly holder: number;
  readonly generation: number;
  /** Tells the tokens of two attempts of one client apart. */
  readonly mark: number;
  readonly state: LeaseState;
  readonly expires: number;
  readonly breakAt: number | null;
  readonly minHold: number | null;
  readonly successor: number | null;
  readonly deadline: number;
  /** The attempt that wrote it, as long as anybody could look for it. */
  readonly nonce: number | null;
}

export interface Belief {
  readonly generation: number;
  readonly mark: number;
  /** On the client's own clock. */
  readonly end: number;
}

/** A conditional write on its way, and what its sender will believe once it hears of it. */
export interface Attempt {
  readonly op: Operation;
  readonly key: number;
  readonly phase: "request" | "written";
  readonly expects: "absence" | "version";
  /** Null deletes the record, and once it is written nobody needs it. */
  readonly next: SmallRecord | null;
  readonly generation: number;
  readonly mark: number;
  readonly nonce: number;
  /** The sender's clock before it was sent. */
  readonly sentAt: number;
  readonly validFor: number;
}

/** Its place in the catalogue, for the very object that is kept there; a copy is a new part until it is added. */
interface Part {
  readonly id: number;
}

export interface Client extends Part {
  /** Its clock minus the store's. */
  readonly lag: number;
  /** For each key. */
  readonly beliefs: readonly (Belief | null)[];
  /** What it waits for. */
  readonly current: Attempt | null;
  /** What it has stopped waiting for; the request may still arrive. */
  readonly late: Attempt | null;
  /** A write to the guarded resource on its way. */
  readonly guarded: { readonly key: number; readonly generation: number } | null;
}

export interface KeyState extends Part {
  readonly record: SmallRecord | null;
  readonly floor: number;
  /** The highest generation ever granted, which nobody in the world knows. */
  readonly highest: number;
  /** For how long nobody may be granted the key, by what its last grant asked for; nobody in the world looks here. */
  readonly closed: number;
  /** The newest fence that the guarded resource has seen. */
  readonly newest: number;
}

export interface ExploreState {
  readonly keys: readonly KeyState[];
  readonly clients: readonly Client[];
}

/** Attempts of a client that differ at a time: one on its way, one late, two that the record names. */
export const MARKS = 4;

const NEW = -1;

export function startState(clients: number, keys: number): ExploreState {
  const client: Client = {
    id: NEW,
    lag: 0,
    beliefs: Array.from({ length: keys }, () => null),
    current: null,
    late: null,
    guarded: null,
  };
  const key: KeyState = { id: NEW, record: null, floor: 0, highest: 0, closed: 0, newest: 0 };
  return {
    keys: Array.from({ length: keys }, () => key),
    clients: Array.from({ length: clients }, () => client),
  };
}
