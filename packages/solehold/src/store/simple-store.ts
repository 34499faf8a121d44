/**
 * A complete LeaseStore over a backend that can read one value and write one on condition (simple-backend.ts). It adds
 * what all such engines would have to write again: core's codec, deadlines, outcomes, damaged values, listings with
 * their filters, watching by polling, the closed state.
 *
 * It does not promise speed: every key of a batch is a call of its own. Engines that can carry a batch in one request
 * implement LeaseStore themselves.
 */
import type { LeaseKey } from "../core/index.ts";
import { type Env, realEnv } from "../env/index.ts";
import { BackendCalls } from "./backend-calls.ts";
import type { StoreCapabilities } from "./capabilities.ts";
import {
  ABSENT,
  type ApplyReply,
  type ConditionalWrite,
  type LeaseStore,
  type ReadReply,
  type StoredRecord,
  type StoreReply,
  type WriteResult,
} from "./contract.ts";
import { StoreError } from "./errors.ts";
import type { ListPage, ListQuery } from "./listing.ts";
import { type FetchPage, listRecords, lookAt } from "./paging.ts";
import { Polling, type Snapshot } from "./polling.ts";
import type { BackendReply, SimpleBackend, StoredValue } from "./simple-backend.ts";
import { CORE_CODEC, type RecordCodec, storedFromText } from "./stored-text.ts";
import {
  isInScope,
  type StoreWatch,
  type WatchableStore,
  type WatchListener,
  type WatchScope,
} from "./watching.ts";
import { assertWholeNumbers } from "./whole-numbers.ts";

export interface SimpleStoreOptions {
  /** For messages and metrics, in one word. */
  readonly name: string;
  readonly backend: SimpleBackend;
  /** Whether acknowledged writes survive a crash of process, of machine and every failover. False if in doubt. */
  readonly durable: boolean;
  /**
   * Where the time comes from: "exact", the backend has `now`; "reply", every reply has `timeMs`; "none", there is no
   * clock. Then leases end for others only by observation, and nothing is deleted, so that no fence comes twice.
   */
  readonly clock: StoreCapabilities["clock"];
  /** The resolution of that clock. Default 1; 1000 for an HTTP Date header. Too small a number ends leases early. */
  readonly clockGranularityMs?: number;
  /** How far apart the clocks of the backend's machines may be. Default 0, for one machine. Too small: as above. */
  readonly clockSkewMs?: number;
  /** How many calls of the backend are worth having in flight at once, reads and writes each. Default 16. */
  readonly concurrency?: number;
  /** A call that has no answer by then ends, with its outcome unknown. Default 5000. */
  readonly timeoutMs?: number;
  /**
   * For backends without `changes`: watches list their scope at this interval and announce what differs. Every watch
   * costs a listing each time. Default: no watching; those who wait look at their own key, at least every 1.3 s.
   */
  readonly pollMs?: number;
  /** For backends whose values are also read by others. Default: core's text form. */
  readonly codec?: RecordCodec;
  readonly env?: Env;
}

/** Every key is a call of its own, so a larger batch would only widen the time between question and answer. */
const MAX_BATCH = 2;

type Attempt =
  | { readonly result: WriteResult; readonly replies: readonly BackendReply[] }
  | { readonly error: StoreError };

export class SimpleStore implements LeaseStore {
  readonly name: string;
  readonly capabilities: StoreCapabilities;
  readonly now?: () => number;
  readonly list?: (query: ListQuery) => Promise<ListPage>;
  readonly watch?: (scope: WatchScope, listener: WatchListener) => Promise<StoreWatch>;
  readonly #backend: SimpleBackend;
  readonly #calls: BackendCalls;
  readonly #codec: RecordCodec;
  readonly #env: Env;
  readonly #watches = new Set<StoreWatch>();
  #closed = false;

  /** Throws a StoreError of kind "config" for options that do not fit. */
  constructor(options: SimpleStoreOptions) {
    const { name, backend, clock, pollMs, timeoutMs = 5_000, concurrency = 16, env = realEnv } = options;
    const { clockGranularityMs = 1, clockSkewMs = 0 } = options;
    assertWholeNumbers(name, { timeoutMs, concurrency, clockGranularityMs, pollMs: pollMs ?? 1 }, 1);
    assertWholeNumbers(name, { clockSkewMs }, 0);
    const now = backend.now?.bind(backend);
    if ((now !== undefined) !== (clock === "exact"))
      throw problem(name, `clock "${clock}" does not fit a backend ${now ? "with" : "without"} now()`);
    this.name = name;
    this.#backend = backend;
    this.#codec = options.codec ?? CORE_CODEC;
    this.#env = env;
    this.#calls = new BackendCalls({ name, backend, env, timeoutMs, codec: this.#codec });
    if (now !== undefined) this.now = () => Math.floor(now());
    if (backend.list !== undefined) this.list = (query) => this.#list(query);
    const watch = this.#watching(pollMs);
    if (watch !== null) this.watch = async (scope, listener) => this.#keep(await watch(scope, listener));
    this.capabilities = Object.freeze({
      durable: options.durable,
      clock,
      clockGranularityMs,
      clockSkewMs,
      watch: watch !== null,
      conditionalDelete: backend.deleteIf !== undefined && clock !== "none",
      maxBatch: MAX_BATCH,
      minBatch: 1,
      maxConcurrentCalls: Math.ceil(concurrency / MAX_BATCH),
    });
  }

  async read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    this.#assertOpen();
    const replies = await Promise.all(keys.map((key) => this.#calls.get(key)));
    const records = replies.map(({ value }, index) => this.#storedFrom(keys[index] as LeaseKey, value));
    return { ...this.#stamp(replies), records };
  }

  async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    this.#assertOpen();
    const attempts = await Promise.all(writes.map((write) => this.#attempt(write)));
    const errors = attempts.flatMap((attempt) => ("error" in attempt ? [attempt.error] : []));
    if (errors.length > 0 && errors.length === writes.length)
      throw errors.find(({ outcome }) => outcome === "unknown") ?? errors[0];
    const results = attempts.map(
      (attempt): WriteResult =>
        "error" in attempt ? { kind: "unknown", cause: attempt.error } : attempt.result,
    );
    return { ...this.#stamp(attempts.flatMap((each) => ("replies" in each ? each.replies : []))), results };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const watch of [...this.#watches]) await watch.close();
    await this.#backend.close?.();
  }

  async #attempt(write: ConditionalWrite): Promise<Attempt> {
    try {
      if (write.next === null && !this.capabilities.conditionalDelete)
        throw problem(this.name, "it cannot delete, as its capabilities say");
      const reply = await this.#calls.write(write);
      if (reply.kind === "unknown")
        return { result: { kind: "unknown", cause: reply.cause }, replies: [reply] };
      if (reply.kind === "done") {
        const version = write.next === null ? null : this.#newVersion(reply.version);
        return { result: { kind: "applied", version }, replies: [reply] };
      }
      if (reply.current !== undefined)
        return { result: this.#conflict(write, reply.current), replies: [reply] };
      const read = await this.#calls.get(write.key);
      return { result: this.#conflict(write, read.value), replies: [reply, read] };
    } catch (error) {
      if (error instanceof StoreError) return { error };
      throw error;
    }
  }

  #conflict({ key, expected }: ConditionalWrite, current: StoredValue | null): WriteResult {
    if (current !== null && current.version === expected)
      throw this.#broken("a write was refused although its version is the present one: is a read late?");
    return { kind: "conflict", current: this.#storedFrom(key, current) };
  }

  #newVersion(version: string | undefined): string {
    if (typeof version !== "string" || version === "")
      throw this.#broken("a write did not name its new version");
    return version;
  }

  async #list(query: ListQuery): Promise<ListPage> {
    this.#assertOpen();
    const replies: BackendReply[] = [];
    const page = await listRecords(query, this.#fetching(replies), this.#backend.listResumes);
    return { storeTimeMs: this.#stamp(replies).storeTimeMs, ...page };
  }

  #fetching(replies: BackendReply[]): FetchPage {
    return async (range) => {
      const reply = await this.#calls.list(range);
      replies.push(reply);
      const items = reply.items.map(({ key, ...value }) => ({ key, stored: this.#storedFrom(key, value) }));
      return { items, next: reply.next, stale: reply.stale };
    };
  }

  /** Null where nothing can be watched. */
  #watching(pollMs: number | undefined): WatchableStore["watch"] | null {
    const changes = this.#backend.changes?.bind(this.#backend);
    if (changes !== undefined)
      return (scope, listener) => {
        this.#assertOpen();
        return changes(scope, (event) => {
          if (event.kind === "reset" || isInScope(scope, event.key)) listener(event);
        });
      };
    if (pollMs === undefined || this.#backend.list === undefined) return null;
    const look = (scopes: readonly WatchScope[]): Promise<Snapshot> => lookAt(scopes, this.#fetching([]));
    const polling = new Polling({ env: this.#env, pollMs, look });
    return async (scope, listener) => {
      this.#assertOpen();
      return polling.watch(scope, listener);
    };
  }

  /** So that it ends with the store, at the latest. */
  async #keep(watch: StoreWatch): Promise<StoreWatch> {
    if (this.#closed) {
      await watch.close();
      this.#assertOpen();
    }
    const kept: StoreWatch = {
      close: async () => {
        if (this.#watches.delete(kept)) await watch.close();
      },
    };
    this.#watches.add(kept);
    return kept;
  }

  /** The latest of the times: each was read after the call began, and none after it ended. */
  #stamp(replies: readonly BackendReply[]): StoreReply {
    const changes = replies.flatMap(({ serverChangedAtMs }) => serverChangedAtMs ?? []);
    const changed = changes.length === 0 ? {} : { serverChangedAtMs: Math.max(...changes) };
    if (this.now !== undefined) return { storeTimeMs: this.now(), ...changed };
    if (this.capabilities.clock === "none" || replies.length === 0) return { storeTimeMs: null, ...changed };
    const storeTimeMs = Math.floor(Math.max(...replies.flatMap(({ timeMs }) => timeMs ?? [])));
    if (!Number.isSafeInteger(storeTimeMs))
      throw this.#broken('a reply has no time, but its clock is "reply"');
    return { storeTimeMs, ...changed };
  }

  #storedFrom(key: LeaseKey, value: StoredValue | null): StoredRecord {
    return value === null ? ABSENT : storedFromText(key, value.text, value.version, this.#codec);
  }

  /** The backend does not do what its interface says. Nobody knows then what became of a write. */
  #broken(message: string): StoreError {
    return new StoreError("internal", `${this.name}: ${message}`, { outcome: "unknown" });
  }

  #assertOpen(): void {
    if (this.#closed)
      throw new StoreError("closed", `the ${this.name} store was closed`, { outcome: "not-applied" });
  }
}

function problem(name: string, message: string): StoreError {
  return new StoreError("config", `${name}: ${message}`, { outcome: "not-applied" });
}
