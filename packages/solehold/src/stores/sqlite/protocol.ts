/** What the tables hold, and what the store and its threads say to each other. Types only: threads are JavaScript. */
import type { LeaseKey } from "../../core/index.ts";
import type { WatchScope } from "../../store/index.ts";

/** Of the table `records`. Damage may have changed any of it, the record's type too. */
export interface Row extends LeaseKey {
  readonly version: number;
  readonly record: string;
  readonly digest: number;
}

/** Of the table `commits`: one for each commit, and the newest is the state of the store. */
export interface Commit {
  /** Of the commit's last write. Every write has a version of its own. */
  readonly version: number;
  /** The store's time when the commit was handed over: the clock's mark. */
  readonly at_ms: number;
  /** Which store object wrote it. */
  readonly origin: number;
  /** How many records there are, and the sum of their marks: see integrity.js. */
  readonly records: number;
  readonly sum: number;
  /** What was written or deleted: "tenant/name", a line each. */
  readonly keys: string;
}

/** A record that is not sound may be anything. */
export type RowReply = Omit<Row, "digest"> & { readonly isSound: boolean };

/** Expected null: the key must be absent. Record null: delete it. */
export type Write = readonly [tenant: string, name: string, expected: number | null, record: string | null];

export interface WriteReply {
  /** The version of the new record, 0 after a delete, -1 when another version is current. */
  readonly versions: Float64Array;
  /** What is current where another version is, by index. */
  readonly current: ReadonlyMap<number, RowReply | null>;
}

export interface ClockReply {
  readonly clock: string | null;
  readonly markMs: number;
  readonly version: number;
}

export interface CheckReport {
  readonly records: number;
  /** Those that cannot be read any more. Each is reported when it is read, and can be replaced. */
  readonly corrupt: number;
  readonly bytes: number;
}

export interface ChangesReply {
  readonly version: number;
  /** Null when the changes since then are not known any more. */
  readonly changed: readonly (readonly [LeaseKey, RowReply | null])[] | null;
}

/** What a thread can be asked. */
export interface Requests {
  /** Changes nothing. Files up to that size are read completely; of larger ones there is no report. */
  inspect(folder: string, checkUpToBytes: number): CheckReport | null;
  /** The thread that writes makes the tables, if there are none. */
  create(folder: string, busyMs: number): ClockReply;
  /** Replaces the clock if it is still what `expected` says. The reply has what is there now. */
  clock(expected: ClockReply, clock: string, markMs: number): ClockReply;
  apply(writes: readonly Write[], nowMs: number): WriteReply;
  /** The thread that reads opens what the other one has made. */
  open(folder: string): void;
  read(keys: readonly LeaseKey[]): readonly (RowReply | null)[];
  list(tenant: string, prefix: string, after: string, limit: number): readonly RowReply[];
  /** Of other store objects, after a version; with null only what the newest version is. */
  changes(version: number | null, scopes: readonly WatchScope[]): ChangesReply;
  /** The thread ends, and that is the reply. With a time, the clock's mark is raised to it. */
  close(markMs: number | null): void;
}

export interface ThreadFailure {
  readonly message: string;
  /** SQLite's code, or that the message is for the operator. */
  readonly code: number | "refused" | null;
  /** Of a commit that failed nobody knows what the disk will show. */
  readonly at: "commit" | "before";
}
