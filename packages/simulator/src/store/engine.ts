/**
 * The reference store of the simulated world: versioned records, compare-and-swap, one operation at a
 * time. It is the truth that the oracles look at. What goes wrong with it on purpose is here, too: a value
 * that rots, writes that are forgotten although they were acknowledged, a clock that jumps, a crash.
 */
import {
  ABSENT,
  type ConditionalWrite,
  isInScope,
  keyId,
  type LeaseKey,
  type LeaseRecord,
  type ListPage,
  type ListQuery,
  nameIsListed,
  type StoredRecord,
  type WatchScope,
  type WriteResult,
} from "solehold/internal";
import type { Machine } from "../world/machine.ts";

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

/** With what a read shows then. */
type Notify = (key: LeaseKey, stored: StoredRecord) => void;

interface Subscriber {
  readonly scope: WatchScope;
  readonly notify: Notify;
}

interface Undo {
  readonly id: string;
  readonly stored: StoredRecord | undefined;
}

/** Another server has taken over the data. */
export interface Takeover {
  /** On the clock that the store has since then. */
  readonly atMs: number;
  /** How many of the store's writes it had. */
  readonly sequence: number;
}

export class StoreEngine {
  readonly machine: Machine;
  readonly #options: EngineOptions;
  readonly #records = new Map<string, StoredRecord>();
  readonly #subscribers = new Set<Subscriber>();
  readonly #undo: Undo[] = [];
  /** Records that landed under a wrong key, by the version under which they stand there. */
  readonly #strays = new Map<string, LeaseRecord>();
  readonly #onCrash = new Set<() => void>();
  readonly #takeovers: Takeover[] = [];
  #life = 1;
  #version = 0;
  #sequence = 0;
  #jumpedMs = 0;
  full = false;
  /** It has crashed, and does not answer yet. */
  down = false;

  constructor(options: EngineOptions) {
    this.machine = options.machine;
    this.#options = options;
  }

  /** The store's clock, in whole milliseconds. */
  nowMs(): number {
    return Math.floor(this.machine.clock.monotonicMs() + this.#jumpedMs);
  }

  /** As replies tell it, from a machine whose clock is `aheadMs` ahead: a Date header only knows seconds. */
  abortedMs(aheadMs = 0): number {
    const { granularityMs } = this.#options;
    return Math.floor((this.nowMs() + aheadMs) / granularityMs) * granularityMs;
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

  /** Grows with each write, and goes back when writes are lost. */
  get sequence(): number {
    return this.#sequence;
  }

  get takeovers(): readonly Takeover[] {
    return this.#takeovers;
  }

  read(keys: readonly LeaseKey[]): readonly StoredRecord[] {
    return keys.map((key) => this.#storedAt(key));
  }

  #storedAt(key: LeaseKey): StoredRecord {
    return this.#records.get(keyId(key)) ?? ABSENT;
  }

  apply(write: ConditionalWrite, by: string): WriteResult {
    const { key, next, expected } = write;
    const current = this.#storedAt(key);
    const version = current.kind === "absent" ? null : current.version;
    if (version !== expected && this.#options.writes === "conditional") return { kind: "conflict", current };
    const id = keyId(key);
    this.#undo.push({ id, stored: this.#records.get(id) });
    const written = this.#put(id, next);
    const before = current.kind === "found" ? current.record : null;
    this.#options.onWrite({ key, before, after: next, by, storeMs: this.nowMs() });
    const stored = this.#storedAt(key);
    for (const { scope, notify } of this.#subscribers) if (isInScope(scope, key)) notify(key, stored);
    return { kind: "applied", version: written };
  }

  list(query: ListQuery): ListPage {
    const matching = [...this.#records.entries()]
      .filter(([id]) => {
        const { tenant, name } = keyOf(id);
        return tenant === query.tenant && nameIsListed(query, name);
      })
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
    return { storeTimeMs: this.abortedMs(), records: listed.slice(0, query.limit), corrupt, next: null };
  }

  subscribe(scope: WatchScope, notify: Notify): () => void {
    const subscriber = { scope, notify };
    this.#subscribers.add(subscriber);
    return () => void this.#subscribers.delete(subscriber);
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

  /**
   * A record of another key lands under this one as well. It is whole and says whose it is, so an honest
   * store reports damage. False when there is nothing to damage, or nothing else was written.
   */
  misdirect(key: LeaseKey): boolean {
    const id = keyId(key);
    const strays = [...this.#records].filter(([other, stored]) => other !== id && stored.kind === "found");
    const stray = strays.at(-1)?.[1];
    if (stray?.kind !== "found" || this.#records.get(id)?.kind !== "found") return false;
    this.#version += 1;
    const version = String(this.#version);
    this.#records.set(id, { kind: "corrupt", version, detail: "it belongs to another key" });
    this.#strays.set(version, stray.record);
    return true;
  }

  /** The bytes of a misdirected write, for a store that does not look whose they are. */
  strayUnder(version: string): LeaseRecord | null {
    return this.#strays.get(version) ?? null;
  }

  /** A failover or a restored backup: the last acknowledged writes are gone. */
  forgetLastWrites(count: number): void {
    const lost = this.#undo.splice(Math.max(0, this.#undo.length - count));
    for (const { id, stored } of lost.reverse()) {
      if (stored === undefined) this.#records.delete(id);
      else this.#records.set(id, stored);
    }
    this.#sequence -= lost.length;
    this.#takeovers.push({ atMs: this.nowMs(), sequence: this.#sequence });
  }

  /** Calls back at each crash, until what it returns is called. */
  onCrash(listener: () => void): () => void {
    this.#onCrash.add(listener);
    return () => void this.#onCrash.delete(listener);
  }

  /** Nothing that was under way is answered, and no connection is left. */
  crash(): void {
    this.#life += 1;
    for (const listener of this.#onCrash) listener();
  }

  /** A failover to a machine with another clock. */
  jumpClock(byMs: number): void {
    this.#jumpedMs += byMs;
    this.#takeovers.push({ atMs: this.nowMs(), sequence: this.#sequence });
  }

  #put(id: string, record: LeaseRecord | null): string | null {
    this.#sequence += 1;
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
