/**
 * The embedded store: durable leases in a folder of this machine, shared by its processes, on SQLite.
 *
 * Promises: a write that was answered as applied is on disk; of several writers for one version one wins, in whichever
 * process; a read sees every write that was acknowledged before it began; the clock is the same in all processes and
 * never goes back; damage of its files is reported, never believed.
 * Not promised: that several machines can share the folder (they cannot), or that a write is answered while another
 * process is frozen in the middle of its commit (it waits, then fails; this process goes on with other work).
 */
import { decodeRecord, encodeRecord, type LeaseKey } from "../../core/index.ts";
import type { Env, Timer } from "../../env/index.ts";
import {
  ABSENT,
  type ApplyReply,
  type ConditionalWrite,
  type LeaseStore,
  type ListPage,
  type ListQuery,
  type ReadReply,
  type StoreCapabilities,
  type StoredRecord,
  StoreError,
  type StoreEvent,
  type StoreWatch,
  type WatchListener,
  type WatchScope,
  type WriteResult,
} from "../../store/index.ts";
import { Watchers } from "../support/watchers.ts";
import type { StoreClock } from "./clock.ts";
import { damaged } from "./failure.ts";
import { Follower } from "./follower.ts";
import { listPage } from "./listing.ts";
import type { ChangesReply, RowReply, WriteBatch, WriteReply } from "./protocol.ts";
import type { Thread } from "./thread.ts";

const CAPABILITIES: StoreCapabilities = Object.freeze({
  durable: true,
  clock: "exact",
  clockGranularityMs: 1,
  clockSkewMs: 0,
  watch: true,
  conditionalDelete: true,
  /** A call is encoded in one turn of the event loop. */
  maxBatch: 1_000,
  /** One call is prepared while the thread works on another. */
  maxConcurrentCalls: 2,
});
/** Short runs, as of the command line, do not look at all of a large file. */
const CHECK_AFTER_MS = 5_000;
/** As this store writes them. */
const VERSION = /^[1-9]\d{0,15}$/;

export interface StoreParts {
  readonly folder: string;
  readonly env: Env;
  readonly clock: StoreClock;
  readonly writer: Thread;
  readonly reader: Thread;
  readonly origin: number;
  readonly wakeUp: "by file" | "by timer";
  /** Whether opening has read the whole database. */
  readonly isChecked: boolean;
}

export class EmbeddedStore implements LeaseStore {
  readonly name = "embedded";
  readonly capabilities = CAPABILITIES;
  readonly #parts: StoreParts;
  readonly #watchers = new Watchers();
  readonly #scopes = new Set<WatchScope>();
  readonly #check: Timer | null;
  #follower: { readonly follower: Follower; readonly started: Promise<void> } | null = null;
  #callsUnderWay = 0;
  #onIdle: () => void = () => undefined;
  #closing: Promise<void> | null = null;
  #damage: StoreError | null = null;

  /** Use `openEmbeddedStore`. */
  constructor(parts: StoreParts) {
    this.#parts = parts;
    this.#check = parts.isChecked ? null : parts.env.timer(CHECK_AFTER_MS, () => this.#checkAll());
  }

  now(): number {
    return this.#parts.clock.now();
  }

  read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    return this.#call(async () => {
      const tenants = keys.map(({ tenant }) => tenant);
      const rows = await this.#parts.reader.ask("read", { tenants, names: keys.map(({ name }) => name) });
      const records = keys.map((key, index) => this.#stored(key, rows[index] ?? null));
      return { storeTimeMs: this.now(), records };
    });
  }

  apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    return this.#call(async () => {
      if (writes.length === 0) return { storeTimeMs: this.now(), results: [] };
      const batch = batchOf(writes);
      const reply = await this.#parts.writer.ask("apply", { writes: batch, nowMs: this.now() });
      const results = writes.map(({ key }, index) => this.#result(key, index, reply));
      if (this.#watchers.size > 0) this.#announceOwn(writes, results);
      return { storeTimeMs: this.now(), results };
    });
  }

  list(query: ListQuery): Promise<ListPage> {
    return this.#call(async () => {
      const { tenant, prefix } = query;
      const page = await listPage(query, {
        rowsAfter: (after, limit) => this.#parts.reader.ask("list", { tenant, prefix, after, limit }),
        decode: (key, row) => this.#stored(key, row),
      });
      return { storeTimeMs: this.now(), ...page };
    });
  }

  watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch> {
    return this.#call(async () => {
      const own = { ...scope };
      this.#scopes.add(own);
      const watch = this.#watchers.add(own, listener, () => {
        this.#scopes.delete(own);
        if (this.#watchers.size === 0) this.#unfollow();
      });
      try {
        this.#follower ??= this.#follow();
        await this.#follower.started;
        return watch;
      } catch (error) {
        await watch.close();
        throw error;
      }
    });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (this.#callsUnderWay > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    this.#check?.cancel();
    this.#watchers.clear();
    this.#unfollow();
    await this.#parts.reader.close(null);
    // Last, because the last connection of all processes brings the write-ahead file into the database if it can write.
    await this.#parts.writer.close(this.now());
  }

  #follow(): { readonly follower: Follower; readonly started: Promise<void> } {
    const { folder, env, wakeUp, reader, origin } = this.#parts;
    const follower = new Follower({
      ...{ folder, env, wakeUp },
      changesAfter: (version) => reader.ask("changes", { version, origin, scopes: [...this.#scopes] }),
      onChanges: (changed) => this.#announceOthers(changed),
      onGap: () => this.#watchers.announce({ kind: "reset" }),
    });
    return { follower, started: follower.start() };
  }

  #unfollow(): void {
    this.#follower?.follower.stop();
    this.#follower = null;
  }

  /** After those who wrote have their answers, and could pass them on. */
  #announceOwn(writes: readonly ConditionalWrite[], results: readonly WriteResult[]): void {
    const events: StoreEvent[] = [];
    for (const [index, { key, next }] of writes.entries()) {
      const result = results[index];
      if (result?.kind !== "applied") continue;
      const stored: StoredRecord =
        next === null ? ABSENT : { kind: "found", record: next, version: result.version ?? "" };
      events.push({ kind: "changed", key, stored });
    }
    const { env } = this.#parts;
    env.defer(() =>
      env.defer(() => {
        for (const event of events) this.#watchers.announce(event);
      }),
    );
  }

  #announceOthers(changed: ChangesReply["changed"]): void {
    for (const { tenant, name, row } of changed) {
      const key = { tenant, name };
      this.#watchers.announce({ kind: "changed", key, stored: this.#stored(key, row) });
    }
  }

  #stored(key: LeaseKey, row: RowReply): StoredRecord {
    if (row === null) return ABSENT;
    const version = String(row.version);
    const decoded = row.isSound ? decodeRecord(row.record, key) : UNSOUND;
    if (!decoded.ok) return { kind: "corrupt", version, detail: decoded.detail };
    return { kind: "found", record: this.#parts.clock.translate(decoded.record, row.version), version };
  }

  #result(key: LeaseKey, index: number, { versions, current }: WriteReply): WriteResult {
    const version = versions[index] ?? -1;
    if (version > 0) return { kind: "applied", version: String(version) };
    if (version === 0) return { kind: "applied", version: null };
    return { kind: "conflict", current: this.#stored(key, current.get(index) ?? null) };
  }

  /** A large database is read completely while it is in use. If it is damaged, nothing in it is to be believed. */
  #checkAll(): void {
    this.#parts.reader.ask("walk", null).then(
      (detail) => {
        if (detail !== null) this.#damage = damaged(this.#parts.folder, detail);
      },
      () => undefined,
    );
  }

  /** Every call rejects after close(), and close() waits for those that had begun. */
  async #call<Reply>(run: () => Promise<Reply>): Promise<Reply> {
    if (this.#closing !== null)
      throw new StoreError("closed", `the embedded store in '${this.#parts.folder}' was closed`, {
        outcome: "not-applied",
      });
    if (this.#damage !== null) throw this.#damage;
    this.#callsUnderWay += 1;
    try {
      return await run();
    } finally {
      this.#callsUnderWay -= 1;
      if (this.#callsUnderWay === 0) this.#onIdle();
    }
  }
}

const UNSOUND = {
  ok: false,
  detail: "its checksum does not fit its key, its version and its content",
} as const;

function batchOf(writes: readonly ConditionalWrite[]): WriteBatch {
  return {
    tenants: writes.map(({ key }) => key.tenant),
    names: writes.map(({ key }) => key.name),
    expected: writes.map(({ expected }) => (expected === null ? null : versionOf(expected))),
    records: writes.map(({ next }) => (next === null ? null : encodeRecord(next))),
  };
}

/** No record has the version -1: what this store did not write is never current. */
function versionOf(expected: string): number {
  return VERSION.test(expected) ? Number(expected) : -1;
}
