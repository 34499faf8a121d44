/**
 * The reference store of the simulated world: versioned records, compare-and-swap, one operation at a
 * time. It is the truth that the oracles look at. What goes wrong with it on purpose is here, too: a value
 * that rots, writes that are forgotten although they were acknowledged, a clock that jumps.
 */
import { keyId, type LeaseKey, type LeaseRecord } from "../../core/index.ts";
import {
  ABSENT,
  type ConditionalWrite,
  isInScope,
  type ListPage,
  type ListQuery,
  type StoredRecord,
  type StoreEvent,
  type WatchScope,
  type WriteResult,
} from "../../stores/index.ts";
import type { Machine } from "../world/machine.ts";
import { type LineMember, StoreLines } from "./lines.ts";

export interface AppliedWrite {
  readonly key: LeaseKey;
  readonly before: LeaseRecord | null;
  readonly after: LeaseRecord | null;
  /** The process that sent it. */
  readonly by: string;
  /** The store's clock when it was applied. */
  readonly storeMs: number;
}

export interface EngineOptions {
  readonly machine: Machine;
  readonly granularityMs: number;
  /** "blind" ignores the expected version: what a store without compare-and-swap does. */
  readonly writes: "conditional" | "blind";
  readonly onWrite: (write: AppliedWrite) => void;
}

interface Subscriber {
  readonly scope: WatchScope;
  readonly notify: (event: StoreEvent) => void;
}

interface Undo {
  readonly id: string;
  readonly stored: StoredRecord | undefined;
}

export class StoreEngine {
  readonly machine: Machine;
  readonly #options: EngineOptions;
  readonly #records = new Map<string, StoredRecord>();
  readonly #subscribers = new Set<Subscriber>();
  readonly #lines = new StoreLines();
  readonly #undo: Undo[] = [];
  #version = 0;
  #jumpedMs = 0;
  full = false;

  constructor(options: EngineOptions) {
    this.machine = options.machine;
    this.#options = options;
  }

  /** The store's clock, in whole milliseconds. */
  nowMs(): number {
    return Math.floor(this.machine.clock.monotonicMs() + this.#jumpedMs);
  }

  /** As replies tell it: a Date header only knows seconds. */
  toldMs(): number {
    const { granularityMs } = this.#options;
    return Math.floor(this.nowMs() / granularityMs) * granularityMs;
  }

  /** What is there, for oracles. */
  recordOf(key: LeaseKey): LeaseRecord | null {
    const stored = this.#records.get(keyId(key));
    return stored?.kind === "found" ? stored.record : null;
  }

  read(keys: readonly LeaseKey[]): readonly StoredRecord[] {
    return keys.map((key) => this.#storedAt(key));
  }

  #storedAt(key: LeaseKey): StoredRecord {
    return this.#records.get(keyId(key)) ?? ABSENT;
  }

  apply(write: ConditionalWrite, by: string): WriteResult {
    const id = keyId(write.key);
    const current = this.#records.get(id) ?? ABSENT;
    const version = current.kind === "absent" ? null : current.version;
    if (version !== write.expected && this.#options.writes === "conditional")
      return { kind: "conflict", current };
    this.#undo.push({ id, stored: this.#records.get(id) });
    const applied = this.#put(id, write.next);
    const before = current.kind === "found" ? current.record : null;
    this.#options.onWrite({ key: write.key, before, after: write.next, by, storeMs: this.nowMs() });
    const event: StoreEvent = { kind: "changed", key: write.key, record: write.next };
    for (const { scope, notify } of this.#subscribers) if (isInScope(scope, write.key)) notify(event);
    this.#lines.written(write.key, this.#storedAt(write.key), this.nowMs());
    return { kind: "applied", version: applied };
  }

  list(query: ListQuery): ListPage {
    const matching = [...this.#records.entries()]
      .filter(([id]) => id.startsWith(`${query.tenant}/${query.prefix}`) && !id.includes("/$"))
      .sort(([a], [b]) => (a < b ? -1 : 1));
    const records = matching.flatMap(([, stored]) => (stored.kind === "found" ? [stored.record] : []));
    const corrupt = matching.flatMap(([id, stored]) =>
      stored.kind === "corrupt" ? [{ key: keyOf(id), version: stored.version, detail: stored.detail }] : [],
    );
    const listed = records.filter(
      (record) =>
        (query.state === undefined || record.state === query.state) &&
        (query.holder === undefined || record.holder === query.holder),
    );
    return { storeTimeMs: this.toldMs(), records: listed.slice(0, query.limit), corrupt, next: null };
  }

  subscribe(scope: WatchScope, notify: (event: StoreEvent) => void): () => void {
    const subscriber = { scope, notify };
    this.#subscribers.add(subscriber);
    return () => void this.#subscribers.delete(subscriber);
  }

  /** Returns the number of the place in line, for who has to come back to it. */
  enterLine(key: LeaseKey, member: LineMember, before: number | null): number {
    return this.#lines.enter(key, member, before, this.#storedAt(key), this.nowMs());
  }

  leaveLine(key: LeaseKey, member: LineMember, why: "served" | "gone"): void {
    this.#lines.leave(key, member, why, this.#storedAt(key), this.nowMs());
  }

  /** The value under the key can no longer be read. False when there is none. */
  corrupt(key: LeaseKey): boolean {
    const stored = this.#records.get(keyId(key));
    if (stored?.kind !== "found") return false;
    this.#version += 1;
    this.#records.set(keyId(key), {
      kind: "corrupt",
      version: String(this.#version),
      detail: "its checksum does not fit its content",
    });
    return true;
  }

  /** A crash without its promise kept: the last acknowledged writes are gone. */
  forgetLastWrites(count: number): void {
    for (const { id, stored } of this.#undo.splice(-count).reverse()) {
      if (stored === undefined) this.#records.delete(id);
      else this.#records.set(id, stored);
    }
  }

  /** A failover to a machine with another clock. */
  jumpClock(byMs: number): void {
    this.#jumpedMs += byMs;
  }

  #put(id: string, record: LeaseRecord | null): string | null {
    if (record === null) {
      this.#records.delete(id);
      return null;
    }
    this.#version += 1;
    const version = String(this.#version);
    this.#records.set(id, { kind: "found", record: Object.freeze(record), version });
    return version;
  }
}

function keyOf(id: string): LeaseKey {
  const slash = id.indexOf("/");
  return { tenant: id.slice(0, slash), name: id.slice(slash + 1) };
}
