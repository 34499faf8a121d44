/**
 * The LMDB environment of one folder and its three databases. Nothing here knows more of a lease than its key.
 *
 * Writes are queued as instructions that a thread of the pool carries out: it takes the lock between the
 * processes, compares versions, writes and syncs without ever waiting for this process's event loop. So
 * a process that is busy cannot keep others from writing, and a frozen other process cannot block this
 * one's event loop. All that is queued in one turn of the event loop is one transaction and one sync.
 */
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Database, RootDatabase, RootDatabaseOptions } from "lmdb";
import { keyId, type LeaseKey } from "../../core/index.ts";
import { StoreError } from "../../store/index.ts";
import { writeAscii } from "./ascii.ts";
import { isLayoutKnown, lastTransactionIn } from "./data-file.ts";
import { seal, unseal } from "./sealed.ts";
import { cutSpentWrites } from "./spent-writes.ts";
import { WriteGate } from "./write-gate.ts";

export type Lmdb = typeof import("lmdb");

/** What the records need of LMDB. Its own types leave out that null means "must be absent". */
export interface RecordsDatabase extends Pick<Database<string, Buffer>, "getRange"> {
  getEntry(key: RecordKey): { readonly value: string; readonly version?: number } | undefined;
  /**
   * Resolves after the sync; false when the condition did not hold. NaN never holds. The bytes of the value
   * must not change before that.
   */
  put(
    key: RecordKey,
    value: Uint8Array | string,
    version: number,
    ifVersion?: number | null,
  ): Promise<boolean>;
  remove(key: RecordKey, ifVersion?: number): Promise<boolean>;
  /** What `write` queues is done if the record has this version, as one with all that it queues. */
  ifVersion(key: RecordKey, version: number | null, write: () => void): Promise<boolean>;
}

/** "tenant/name" in UTF-8. Keys that are read are bytes: what a damaged file holds may be no text. */
export type RecordKey = LeaseKey | Uint8Array;

export interface Databases {
  /** Besides the heads of the others: the members' lines, see state.ts. */
  readonly root: RootDatabase<string, string>;
  /** The members' lines, for who has them as bytes. */
  readonly lines: { put(key: Uint8Array, value: Uint8Array): Promise<boolean> };
  /** "tenant/name" in UTF-8 -> epoch and record. The version is a revision, see revisions.ts. */
  readonly records: RecordsDatabase;
  /** The store's own small state, see state.ts. */
  readonly meta: Database<string, string>;
  /** What changed lately, see journal.ts. */
  readonly changes: Database<string, string>;
  /** As a condition: whatever the version is. */
  readonly anyRevision: number;
  /** All that is written once the databases are open goes through it. */
  readonly gate: WriteGate;
}

export const DATA_FILE = "data.mdb";
export const LOCK_FILE = "lock.mdb";

/** LMDB's limit for 4 KiB pages. The longest key of Solehold has 833 bytes. */
export const MAX_KEY_BYTES = 1978;

/** Address space, not disk: room for some millions of records before the map has to grow. */
const MAP_BYTES = 2 ** 30;
const MAX_READERS = 500;

const SLASH = 0x2f;

/** As the database's own encoder for bytes, but a key needs neither a text nor a buffer in between. */
const RECORD_KEYS = {
  /** Returns where the key ends. */
  writeKey(key: RecordKey, target: Uint8Array, start: number): number {
    if (key instanceof Uint8Array) return writeBytes(key, target, start);
    const { tenant, name } = key;
    const slash = start + tenant.length;
    const end = slash + 1 + name.length;
    const isAscii =
      writeAscii(tenant, target, start) === tenant.length &&
      writeAscii(name, target, slash + 1) === name.length;
    if (!isAscii) return writeBytes(Buffer.from(keyId(key)), target, start);
    target[slash] = SLASH;
    return end;
  },
  readKey(source: Uint8Array, start: number, end: number): Uint8Array {
    return Uint8Array.prototype.slice.call(source, start, end);
  },
};

function writeBytes(bytes: Uint8Array, target: Uint8Array, start: number): number {
  target.set(bytes, start);
  return start + bytes.length;
}

interface OpenOptions extends RootDatabaseOptions {
  readonly permissionsMode: number;
  readonly batchStartThreshold: number;
}

export async function loadLmdb(): Promise<Lmdb> {
  try {
    return await import("lmdb");
  } catch (cause) {
    const message = "the embedded store needs the package lmdb: run 'npm install lmdb'";
    throw new StoreError("config", message, { outcome: "not-applied", cause });
  }
}

export function openDatabases(lmdb: Lmdb, folder: string): Databases {
  const options: OpenOptions = {
    noSubdir: false,
    encoding: "string",
    maxDbs: 8,
    maxReaders: MAX_READERS,
    mapSize: MAP_BYTES,
    permissionsMode: 0o600,
    // The plain mode of LMDB: pages, sync, then the page that makes them valid, synced too.
    overlappingSync: false,
    // A transaction must not begin while its instructions are still being queued: it would hold the
    // lock between the processes for as long as our event loop is busy.
    batchStartThreshold: Number.MAX_SAFE_INTEGER,
  };
  const root = openRoot(lmdb, folder, options);
  root.on("beforecommit", () => handleOwnPromise(root));
  cutSpentWrites(root);
  // The option is documented, but LMDB's types know it for the root only.
  const ofRecords: RootDatabaseOptions = { encoding: "string", keyEncoder: RECORD_KEYS, useVersions: true };
  const records = root.openDB<string, Buffer>("records", ofRecords);
  return {
    root,
    // LMDB takes bytes as they are, for a key and for a text, which its types do not know.
    lines: root as unknown as Databases["lines"],
    records: records as unknown as RecordsDatabase,
    meta: root.openDB<string, string>("meta", { encoding: "string", useVersions: true }),
    changes: root.openDB<string, string>("changes", { encoding: "string" }),
    anyRevision: lmdb.IF_EXISTS,
    gate: new WriteGate(),
  };
}

/**
 * With the last resort against what door.ts is there for: who has seen no commit from before LMDB looked until it was
 * done has undone none.
 */
function openRoot(lmdb: Lmdb, folder: string, options: OpenOptions): RootDatabase<string, string> {
  const before = lastTransaction(folder);
  const root = lmdb.open<string, string>(folder, options);
  if (before === null || before === lastTransaction(folder)) return root;
  void root.close();
  const problem = `another process wrote to '${folder}' in the moment of opening it, and that write may be lost`;
  const advice = "close the store in all processes, then open it again";
  throw new StoreError("internal", `${problem}: ${advice}`, { outcome: "not-applied" });
}

/** Null when it cannot be told: there is no file yet, or its layout is not known. */
function lastTransaction(folder: string): number | null {
  const path = join(folder, DATA_FILE);
  if (!isLayoutKnown() || !existsSync(path) || statSync(path).size === 0) return null;
  return lastTransactionIn(path);
}

/**
 * LMDB makes a promise of its own for every commit, and one for the reason of a failed commit. Nobody sees
 * them, so a full disk would end the process as an unhandled rejection. The failure itself reaches the
 * callers through the promises of their writes.
 */
function handleOwnPromise(root: RootDatabase<string, string>): void {
  // A microtask later the promise of the commit that is about to start exists.
  queueMicrotask(() => {
    root.committed.then(ignore, (error: { readonly commitError?: Promise<unknown> }) => {
      error.commitError?.catch(ignore);
    });
  });
}

function ignore(): void {}

/**
 * Replaces one value of `meta` on condition that nobody else did, as often as it takes. `update` gets the
 * current text and returns the next, or null to leave it.
 */
export async function updateMeta(
  { root, meta, gate }: Databases,
  key: string,
  update: (text: string) => string | null,
): Promise<void> {
  const tryOnce = async (): Promise<boolean> => {
    root.resetReadTxn();
    const entry = meta.getEntry(key);
    if (entry === undefined) throw new Error(`the store's own value '${key}' is missing`);
    const text = update(unseal(entry.value));
    const version = entry.version ?? 0;
    return text === null || (await meta.put(key, seal(text), version + 1, version));
  };
  while (!(await gate.through(tryOnce)));
}
