/** What the store and its threads say to each other, and what the tables hold. Types only: the threads are JavaScript. */

type Value = string | number | null;

/** What is used of `DatabaseSync`: the same in node:sqlite and in the package for older versions of Node. */
export interface Connection {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  close(): void;
}

export interface Statement {
  run(...values: readonly Value[]): { readonly changes: number | bigint };
  get(...values: readonly Value[]): unknown;
  all(...values: readonly Value[]): unknown[];
  iterate(...values: readonly Value[]): Iterable<unknown>;
}

/** Of the table `records`. Damage may have changed any of it, the record's type too. */
export interface Row {
  readonly tenant: string;
  readonly name: string;
  readonly version: number;
  readonly record: string;
  readonly digest: number;
}

/** Of the table `commits`: one for each commit, and the newest is the state of the store. */
export interface CommitRow {
  /** Of the commit's last write. Every write has a version of its own. */
  readonly version: number;
  /** The store's time when the commit was handed over, or later: the clock's mark. */
  readonly at_ms: number;
  /** Which store object wrote it. */
  readonly origin: number;
  /** How many records there are, and the sum of their marks: see integrity.js. */
  readonly records: number;
  readonly sum: number;
  /** What was written or deleted: "tenant/name", a line each. */
  readonly keys: string;
  readonly digest: number;
}

/** Null: there is no record. A record that is not sound may be anything. */
export type RowReply = {
  readonly version: number;
  readonly record: string;
  readonly isSound: boolean;
} | null;

/** One write at each index. */
export interface WriteBatch {
  readonly tenants: readonly string[];
  readonly names: readonly string[];
  /** Null: the key must be absent. */
  readonly expected: readonly (number | null)[];
  /** Null: delete it. */
  readonly records: readonly (string | null)[];
}

export interface WriteReply {
  /** The version of the new record, 0 after a delete, -1 when another version is current. */
  readonly versions: Float64Array;
  /** What is current where another version is, by index. */
  readonly current: ReadonlyMap<number, RowReply>;
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

export interface ListedRow extends NonNullable<RowReply> {
  readonly name: string;
}

export interface ChangesReply {
  readonly version: number;
  /** True when the changes since then are not known any more. */
  readonly isGap: boolean;
  readonly changed: readonly { readonly tenant: string; readonly name: string; readonly row: RowReply }[];
}

interface Scope {
  readonly tenant: string | null;
  readonly prefix: string;
}

/** What a thread can be asked, by the name of the request. */
export interface Requests {
  /** Before anything is changed. Files up to so many bytes are read completely. */
  inspect: {
    readonly ask: { readonly folder: string; readonly checkUpToBytes: number };
    readonly reply: { readonly isChecked: boolean };
  };
  /** For the thread that writes; it makes the tables if there are none. */
  create: { readonly ask: { readonly folder: string; readonly busyMs: number }; readonly reply: ClockReply };
  /** For the thread that reads, later. */
  open: { readonly ask: { readonly folder: string }; readonly reply: null };
  /** Replaces the clock if it is still what `expected` says. The reply has what is there now. */
  clock: {
    readonly ask: { readonly expected: ClockReply; readonly clock: string; readonly markMs: number };
    readonly reply: ClockReply;
  };
  apply: {
    readonly ask: { readonly writes: WriteBatch; readonly nowMs: number };
    readonly reply: WriteReply;
  };
  read: {
    readonly ask: { readonly tenants: readonly string[]; readonly names: readonly string[] };
    readonly reply: readonly RowReply[];
  };
  list: {
    readonly ask: {
      readonly tenant: string;
      readonly prefix: string;
      readonly after: string;
      readonly limit: number;
    };
    readonly reply: readonly ListedRow[];
  };
  /** Of other store objects than `origin`, after `version`; with null only what is the newest version. */
  changes: {
    readonly ask: {
      readonly version: number | null;
      readonly origin: number;
      readonly scopes: readonly Scope[];
    };
    readonly reply: ChangesReply;
  };
  /** In the background: what is damaged, or null. */
  walk: { readonly ask: null; readonly reply: string | null };
  check: { readonly ask: { readonly folder: string }; readonly reply: CheckReport };
  /** The thread ends after this. With a time, the clock's mark is raised to it. */
  close: { readonly ask: { readonly markMs: number | null }; readonly reply: null };
}

/** A failure in a thread. */
export interface ThreadFailure {
  readonly message: string;
  /** SQLite's code, or why the store's files are refused. */
  readonly code: number | "refused" | null;
  /** Where it happened: of a commit that failed nobody knows what the disk will show. */
  readonly at: "commit" | "before";
}
