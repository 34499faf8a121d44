/**
 * The reference store of the simulated world: versioned records, compare-and-swap, one operation at a
 * time. It is the truth that the oracles look at. What goes wrong with it on purpose is here, too: a value
 * that rots, writes that are forgotten although they were acknowledged, a clock that jumps, a crash.
 *
 * A write is safe as soon as it is done, unless the store is one whose ends are seen before (see early-writes.ts).
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
} from "../../store/index.ts";
import type { Machine } from "../world/machine.ts";
import { EarlyWrites, type EarlyWritesOptions, type WriteFate, type WriteForm } from "./early-writes.ts";
import { type LineMember, StoreLines } from "./lines.ts";
import type { LineFate } from "./log.ts";
import { SimulatedNote, StoreNotebooks } from "./notebooks.ts";

export interface AppliedWrite {
  readonly key: LeaseKey;
  readonly before: LeaseRecord | null;
  readonly after: LeaseRecord | null;
  /** The process that sent it. */
  readonly by: string;
  /** The store's clock when it was applied. */
  readonly storeMs: number;
  /** Whether a note was written with it. */
  readonly note: "kept" | "none";
}

export interface EngineOptions {
  readonly machine: Machine;
  readonly granularityMs: number;
  /** "blind" ignores the expected version: what a store without compare-and-swap does. */
  readonly writes: "conditional" | "blind";
  readonly onWrite: (write: AppliedWrite) => void;
  /** For a store whose ends are seen before they are safe. */
  readonly early?: EarlyWritesOptions | null;
  /** Whether there is room for a note at the moment. Default: always. */
  readonly hasRoomForNote?: () => boolean;
}

/** With what a read shows then. */
type Notify = (event: StoreEvent, stored: StoredRecord) => void;

interface Subscriber {
  readonly scope: WatchScope;
  readonly notify: Notify;
}

interface Undo {
  readonly id: string;
  readonly stored: StoredRecord | undefined;
}

/** A write that was carried out, and how to undo it. */
export interface Done {
  readonly result: WriteResult;
  readonly applied: AppliedWrite;
  readonly undo: Undo;
}

export class StoreEngine {
  readonly machine: Machine;
  readonly notebooks: StoreNotebooks;
  readonly #options: EngineOptions;
  readonly #records = new Map<string, StoredRecord>();
  readonly #subscribers = new Set<Subscriber>();
  readonly #lines = new StoreLines();
  readonly #undo: Undo[] = [];
  readonly #early: EarlyWrites | null;
  readonly #onCrash = new Set<() => void>();
  #life = 1;
  #version = 0;
  #jumpedMs = 0;
  full = false;
  /** It has crashed, and does not answer yet. */
  down = false;

  constructor(options: EngineOptions) {
    this.machine = options.machine;
    this.#options = options;
    const { early = null } = options;
    this.#early =
      early === null
        ? null
        : new EarlyWrites(early, {
            conflictOf: (write) => this.#conflictOf(write),
            carryOut: (write, by) => this.#carryOut(write, by),
            restore: (undo) => this.#restore(undo),
          });
    this.notebooks = new StoreNotebooks(options.hasRoomForNote ?? (() => true));
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

  /** Grows with each crash: a connection is of one life. */
  get life(): number {
    return this.#life;
  }

  read(keys: readonly LeaseKey[]): readonly StoredRecord[] {
    return keys.map((key) => {
      this.#early?.shown(keyId(key));
      return this.#storedAt(key);
    });
  }

  /** Calls back when all that can be seen now is safe. */
  whenSafe(fate: LineFate): void {
    if (this.#early === null) fate.safe();
    else this.#early.whenSafe(fate);
  }

  #storedAt(key: LeaseKey): StoredRecord {
    return this.#records.get(keyId(key)) ?? ABSENT;
  }

  /** Done at once, and safe. */
  apply(write: ConditionalWrite, by: string): WriteResult {
    return this.#conflictOf(write) ?? this.#carryOut(write, by).result;
  }

  /** As this store does it, which may take a while. */
  submit(write: ConditionalWrite, by: string, form: WriteForm, fate: WriteFate): void {
    if (this.#early === null) fate.answered(this.apply(write, by));
    else this.#early.submit({ write, by, form, fate });
  }

  #conflictOf(write: ConditionalWrite): WriteResult | null {
    const current = this.#storedAt(write.key);
    const version = current.kind === "absent" ? null : current.version;
    const isRight = version === write.expected || this.#options.writes === "blind";
    return isRight ? null : { kind: "conflict", current };
  }

  #carryOut({ key, next, aside }: ConditionalWrite, by: string): Done {
    const id = keyId(key);
    const current = this.#storedAt(key);
    const undo = { id, stored: this.#records.get(id) };
    this.#undo.push(undo);
    const version = this.#put(id, next);
    const isNoted = aside instanceof SimulatedNote && this.notebooks.keep(aside);
    const before = current.kind === "found" ? current.record : null;
    const note = isNoted ? "kept" : "none";
    const applied: AppliedWrite = { key, before, after: next, by, storeMs: this.nowMs(), note };
    this.#options.onWrite(applied);
    const event: StoreEvent = { kind: "changed", key, record: next };
    const stored = this.#storedAt(key);
    for (const { scope, notify } of this.#subscribers) {
      if (!isInScope(scope, key)) continue;
      this.#early?.shown(id);
      notify(event, stored);
    }
    this.#lines.written(key, stored, this.nowMs());
    return { result: { kind: "applied", version, ...(isNoted ? { aside: "kept" } : {}) }, applied, undo };
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

  subscribe(scope: WatchScope, notify: Notify): () => void {
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

  /** The value under the key can no longer be read. False when there is none, or another one about to be written. */
  corrupt(key: LeaseKey): boolean {
    const stored = this.#records.get(keyId(key));
    if (stored?.kind !== "found" || this.#early?.isBusyWith(keyId(key)) === true) return false;
    this.#version += 1;
    this.#records.set(keyId(key), {
      kind: "corrupt",
      version: String(this.#version),
      detail: "its checksum does not fit its content",
    });
    return true;
  }

  /** A crash without its promise kept: the last acknowledged writes are gone, and what was not safe anyway. */
  forgetLastWrites(count: number): void {
    this.#early?.crash();
    for (const undo of this.#undo.slice(-count).reverse()) this.#restore(undo);
  }

  /** Calls back at each crash, until what it returns is called. */
  onCrash(listener: () => void): () => void {
    this.#onCrash.add(listener);
    return () => void this.#onCrash.delete(listener);
  }

  /** What is safe stays. Nothing that was under way is answered, and no connection is left. */
  crash(): void {
    this.#life += 1;
    this.#early?.crash();
    for (const listener of this.#onCrash) listener();
  }

  #restore(undo: Undo): void {
    const { id, stored } = undo;
    const index = this.#undo.lastIndexOf(undo);
    // It was forgotten already.
    if (index < 0) return;
    this.#undo.splice(index, 1);
    if (stored === undefined) this.#records.delete(id);
    else this.#records.set(id, stored);
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
