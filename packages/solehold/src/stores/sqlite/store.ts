/**
 * The embedded store: durable leases in a folder of this machine, shared by its processes, on SQLite.
 *
 * Promises: a write that was answered as applied is on disk; of several writers for one version one wins, in whichever
 * process; a read sees every write that was acknowledged before it began; the clock is the same in all processes and
 * never goes back; damage of its files is reported, never believed.
 * Not promised: that several machines can share the folder (they cannot), or that a write is answered while another
 * process is frozen in the middle of its commit (it waits, then fails; this process goes on with other work).
 */
import { join } from "node:path";
import { decodeRecord, encodeRecord, type LeaseKey } from "../../core/index.ts";
import type { Env, Timer } from "../../env/index.ts";
import {
  ABSENT,
  type ApplyReply,
  type ConditionalWrite,
  fullCapabilities,
  type LeaseStore,
  type ListPage,
  type ListQuery,
  type ReadReply,
  type StoreCapabilities,
  type StoredRecord,
  type StoreError,
  type StoreEvent,
  type StoreWatch,
  type WatchListener,
  type WatchScope,
  type WriteResult,
} from "../../store/index.ts";
import { firstPage, listRecords } from "../../store/paging.ts";
import { Watchers } from "../../store/watchers.ts";
import { closedError } from "../support/failures.ts";
import type { StoreClock } from "./clock.ts";
import { MARKER_FILE } from "./folder.ts";
import { Follower } from "./follower.ts";
import type { RowReply, Write, WriteReply } from "./protocol.ts";
import type { Thread } from "./thread.ts";

const CAPABILITIES = fullCapabilities({
  durable: true,
  clock: "exact",
  /** A call is encoded in one turn of the event loop. */
  maxBatch: 1_000,
  /** One call is prepared while the thread works on another. */
  maxConcurrentCalls: 2,
});
/** Of a listing: about a millisecond's worth of decoding. */
const ROWS_AT_ONCE = 500;
/** Short runs, as of the command line, do not look at all of a large file. */
const CHECK_AFTER_MS = 5_000;
/** As this store writes them. */
const VERSION = /^[1-9]\d{0,15}$/;
const UNSOUND = { ok: false, detail: "its checksum does not fit its key, version and content" } as const;

export interface StoreParts {
  readonly folder: string;
  readonly env: Env;
  readonly clock: StoreClock;
  readonly writer: Thread;
  readonly reader: Thread;
  readonly wakeUp: "by file" | "by timer";
  /** Reads the whole database; null where opening has done that. */
  readonly check: (() => Promise<unknown>) | null;
}

export class EmbeddedStore implements LeaseStore {
  readonly name = "embedded";
  readonly capabilities: StoreCapabilities = CAPABILITIES;
  readonly #parts: StoreParts;
  readonly #watchers = new Watchers();
  readonly #check: Timer | null;
  readonly #calls = new Set<Promise<unknown>>();
  #follower: Follower | null = null;
  #closing: Promise<void> | null = null;
  #damage: StoreError | null = null;

  /** Use `openEmbeddedStore`. */
  constructor(parts: StoreParts) {
    this.#parts = parts;
    const { env, check } = parts;
    this.#check = check === null ? null : env.timer(CHECK_AFTER_MS, () => void this.#checkAll(check));
  }

  now(): number {
    return this.#parts.clock.now();
  }

  read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    return this.#call(async () => {
      const rows = await this.#parts.reader.ask("read", keys);
      const records = keys.map((key, index) => this.#stored(key, rows[index] ?? null));
      return { storeTimeMs: this.now(), records };
    });
  }

  apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    return this.#call(async () => {
      if (writes.length === 0) return { storeTimeMs: this.now(), results: [] };
      const reply = await this.#parts.writer.ask("apply", writes.map(writeOf), this.now());
      const results = writes.map(({ key }, index) => this.#result(key, index, reply));
      if (this.#watchers.size > 0) this.#announce(eventsOf(writes, results));
      return { storeTimeMs: this.now(), results };
    });
  }

  list(query: ListQuery): Promise<ListPage> {
    return this.#call(async () => {
      const page = await listRecords(query, async ({ prefix, after, limit }) => {
        const count = Math.min(limit, ROWS_AT_ONCE);
        const rows = await this.#parts.reader.ask("list", query.tenant, prefix, after?.name ?? "", count + 1);
        const found = rows.map((row) => {
          const key = { tenant: query.tenant, name: row.name };
          return { key, stored: this.#stored(key, row) };
        });
        return firstPage(found, count);
      });
      return { storeTimeMs: this.now(), ...page };
    });
  }

  watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch> {
    return this.#call(async () => {
      const watch = this.#watchers.add(scope, listener, () => {
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
    await Promise.allSettled(this.#calls);
    this.#check?.cancel();
    this.#watchers.clear();
    this.#unfollow();
    await this.#parts.reader.close(null);
    // Last, because the last connection of all brings the write-ahead file into the database if it can write.
    await this.#parts.writer.close(this.now());
  }

  #follow(): Follower {
    const { folder, env, wakeUp, reader } = this.#parts;
    return new Follower({
      env,
      markerPath: wakeUp === "by file" ? join(folder, MARKER_FILE) : null,
      changesAfter: (version) => reader.ask("changes", version, this.#watchers.scopes),
      onChanges: (changed) => {
        if (changed === null) this.#announce([{ kind: "reset" }]);
        else
          this.#announce(
            changed.map(([key, row]) => ({ kind: "changed", key, stored: this.#stored(key, row) })),
          );
      },
    });
  }

  #unfollow(): void {
    this.#follower?.stop();
    this.#follower = null;
  }

  /** After those who wrote have their answers, and could pass them on. */
  #announce(events: readonly StoreEvent[]): void {
    const { env } = this.#parts;
    // Each by itself: a listener that throws must not keep others from the next event.
    env.defer(() => {
      for (const event of events) env.defer(() => this.#watchers.announce(event));
    });
  }

  #stored(key: LeaseKey, row: RowReply | null): StoredRecord {
    if (row === null) return ABSENT;
    const version = String(row.version);
    const decoded = row.isSound ? decodeRecord(row.record, key) : UNSOUND;
    if (!decoded.ok) return { kind: "corrupt", version, detail: decoded.detail };
    return { kind: "found", record: this.#parts.clock.translate(decoded.record, row.version), version };
  }

  #result(key: LeaseKey, index: number, { versions, current }: WriteReply): WriteResult {
    const version = versions[index] ?? -1;
    if (version < 0) return { kind: "conflict", current: this.#stored(key, current.get(index) ?? null) };
    return { kind: "applied", version: version === 0 ? null : String(version) };
  }

  /** A large database is read while it is in use. If it is damaged, nothing in it is to be believed. */
  async #checkAll(check: () => Promise<unknown>): Promise<void> {
    await check().catch((error: StoreError) => {
      if (error.kind === "config") this.#damage = error;
    });
  }

  /** Every call rejects after close(), and close() waits for those that had begun. */
  async #call<Reply>(run: () => Promise<Reply>): Promise<Reply> {
    if (this.#closing !== null) throw closedError("embedded");
    if (this.#damage !== null) throw this.#damage;
    const call = run();
    this.#calls.add(call);
    return await call.finally(() => this.#calls.delete(call));
  }
}

function eventsOf(writes: readonly ConditionalWrite[], results: readonly WriteResult[]): StoreEvent[] {
  return writes.flatMap(({ key, next }, index) => {
    const result = results[index];
    if (result?.kind !== "applied") return [];
    if (next === null || result.version === null) return [{ kind: "changed", key, stored: ABSENT }];
    return [{ kind: "changed", key, stored: { kind: "found", record: next, version: result.version } }];
  });
}

function writeOf({ key, expected, next }: ConditionalWrite): Write {
  // No record has the version -1: what this store did not write is never current.
  const version = expected === null ? null : VERSION.test(expected) ? Number(expected) : -1;
  return [key.tenant, key.name, version, next === null ? null : encodeRecord(next)];
}
