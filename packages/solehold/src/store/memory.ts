/**
 * A store in this process's memory: exact, ordered, gone when the process ends. For tests, for one
 * process, and as the reference that other stores are compared with.
 */
import { keyId, type LeaseKey, type LeaseRecord } from "../core/index.ts";
import { type Env, realEnv } from "../env/index.ts";
import { fullCapabilities, type StoreCapabilities } from "./capabilities.ts";
import {
  ABSENT,
  type ApplyReply,
  type ConditionalWrite,
  type LeaseStore,
  type ReadReply,
  type StoredRecord,
  type WriteResult,
} from "./contract.ts";
import { StoreError } from "./errors.ts";
import { type ListPage, type ListQuery, nameIsListed, recordIsListed } from "./listing.ts";
import { Watchers } from "./watchers.ts";
import type { StoreEvent, StoreWatch, WatchListener, WatchScope } from "./watching.ts";

const CAPABILITIES = fullCapabilities({
  durable: false,
  clock: "exact",
  maxBatch: 10_000,
  maxConcurrentCalls: 1,
});

type Found = Extract<StoredRecord, { kind: "found" }>;

export class MemoryStore implements LeaseStore {
  readonly name = "memory";
  readonly capabilities: StoreCapabilities = CAPABILITIES;
  readonly #env: Env;
  /** Wall time at the start, then the monotonic clock: never goes back, never jumps. */
  readonly #startMs: number;
  readonly #records = new Map<string, Found>();
  /** Of tenants that were listed: their names in order, until one comes or goes. */
  readonly #names = new Map<string, readonly string[]>();
  readonly #watchers = new Watchers();
  #lastVersion = 0;
  #closed = false;

  constructor(options: { readonly env?: Env } = {}) {
    this.#env = options.env ?? realEnv;
    this.#startMs = Math.floor(this.#env.wallMs() - this.#env.monotonicMs());
  }

  now(): number {
    return Math.floor(this.#startMs + this.#env.monotonicMs());
  }

  async read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    this.#assertOpen();
    const records = keys.map((key) => this.#records.get(keyId(key)) ?? ABSENT);
    return { storeTimeMs: this.now(), records };
  }

  async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    this.#assertOpen();
    const results = writes.map((write) => this.#applyOne(write));
    return { storeTimeMs: this.now(), results };
  }

  async list(query: ListQuery): Promise<ListPage> {
    this.#assertOpen();
    const { tenant, after = "", limit } = query;
    const names = this.#namesOf(tenant);
    const records: LeaseRecord[] = [];
    for (let index = firstAfter(names, after); index < names.length; index += 1) {
      const name = names[index] ?? "";
      const stored = this.#records.get(keyId({ tenant, name }));
      if (stored === undefined || !nameIsListed(query, name) || !recordIsListed(query, stored.record))
        continue;
      if (records.length === limit)
        return { storeTimeMs: this.now(), records, corrupt: [], next: records.at(-1)?.key.name ?? null };
      records.push(stored.record);
    }
    return { storeTimeMs: this.now(), records, corrupt: [], next: null };
  }

  async watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch> {
    this.#assertOpen();
    return this.#watchers.add(scope, listener);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#watchers.clear();
  }

  #applyOne(write: ConditionalWrite): WriteResult {
    const id = keyId(write.key);
    const current = this.#records.get(id);
    if ((current?.version ?? null) !== write.expected)
      return { kind: "conflict", current: current ?? ABSENT };
    if (write.next === null) {
      this.#records.delete(id);
      this.#names.delete(write.key.tenant);
      this.#announce({ kind: "changed", key: write.key, stored: ABSENT });
      return { kind: "applied", version: null };
    }
    const stored = this.#store(id, write.next);
    this.#announce({ kind: "changed", key: write.key, stored });
    return { kind: "applied", version: stored.version };
  }

  #store(id: string, record: LeaseRecord): Found {
    this.#lastVersion += 1;
    const version = String(this.#lastVersion);
    const stored: Found = Object.freeze({ kind: "found", record: Object.freeze(record), version });
    if (!this.#records.has(id)) this.#names.delete(record.key.tenant);
    this.#records.set(id, stored);
    return stored;
  }

  #namesOf(tenant: string): readonly string[] {
    let names = this.#names.get(tenant);
    if (names === undefined) {
      const keys = Array.from(this.#records.values(), ({ record }) => record.key);
      names = keys.flatMap((key) => (key.tenant === tenant ? [key.name] : [])).sort();
      this.#names.set(tenant, names);
    }
    return names;
  }

  /** Events arrive after the write was answered, as they do from a store on the network. */
  #announce(event: Extract<StoreEvent, { kind: "changed" }>): void {
    if (this.#watchers.size > 0) this.#env.defer(() => this.#watchers.announce(event));
  }

  #assertOpen(): void {
    if (this.#closed)
      throw new StoreError("closed", "the memory store was closed", { outcome: "not-applied" });
  }
}

/** The index of the first name that comes after this one. */
function firstAfter(names: readonly string[], after: string): number {
  let [from, to] = [0, names.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if ((names[middle] ?? "") > after) to = middle;
    else from = middle + 1;
  }
  return from;
}
