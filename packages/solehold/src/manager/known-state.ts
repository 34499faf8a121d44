/**
 * What this process knows of the store without asking: versions it has seen (so that a write needs no
 * read before it), how long each stood unchanged, the highest fence of each key, the store's time.
 *
 * All of it is bounded, and none of it is trusted for an answer: a guess only ever leads to a conditional
 * write, which the store checks.
 */
import {
  type ClockReading,
  type DeniedDecision,
  type DriftBound,
  exactly,
  fenceGeneration,
  fenceTerm,
  type LeaseCommand,
  type LeaseKey,
  type LeasePolicy,
  type LeaseRecord,
  type RefusedDecision,
  recordFence,
  type StoreInstant,
} from "../core/index.ts";
import type { Env } from "../env/index.ts";
import { ABSENT, type LeaseStore, type StoredRecord } from "../store/index.ts";
import { BoundedMap } from "./bounded-map.ts";
import { Floors } from "./floors.ts";
import { KeyMemory, type SnapshotSource } from "./key-memory.ts";
import { mapId } from "./map-id.ts";
import { isObservedOver } from "./observations.ts";
import type { AnsweredCall, StoreCalls } from "./store-calls.ts";
import type { StoreClock } from "./store-clock.ts";

/** A conditional write of this process. */
export interface OwnWrite {
  readonly id: string;
  readonly memory: KeyMemory;
  readonly next: LeaseRecord | null;
  /** The token whose hash the record has; null when it was not told. */
  readonly provenBy: string | null;
}

export interface KnownStateOptions {
  readonly env: Env;
  readonly store: LeaseStore;
  readonly calls: StoreCalls;
  readonly clock: StoreClock;
  readonly policy: LeasePolicy;
  readonly drift: DriftBound;
  readonly cacheSize: number;
  readonly floorMaxAgeMs: number;
}

/** A guess is not worth it when the store's time is known so badly that expiries would be stretched. */
const WIDEST_GUESS_RATIO = 0.05;

const NO_RECORD = { record: null, sinceMs: null } as const;

export class KnownState {
  readonly #options: KnownStateOptions;
  readonly #memories: BoundedMap<KeyMemory>;
  readonly #floors: Floors;

  constructor(options: KnownStateOptions) {
    this.#options = options;
    this.#memories = new BoundedMap(options.cacheSize);
    this.#floors = new Floors({ maxAgeMs: options.floorMaxAgeMs });
  }

  /** Null when nothing was ever remembered of the key, or not for long. */
  find(id: string): KeyMemory | null {
    return this.#memories.get(id) ?? null;
  }

  /** For a key that `find` has just not found. */
  begin(id: string): KeyMemory {
    const memory = new KeyMemory(this.#memories.generation);
    this.#memories.set(id, memory);
    return memory;
  }

  /** What probably is in the store, if that is enough to try a write; otherwise null: read first. */
  guess(command: LeaseCommand, memory: KeyMemory | null, now: ClockReading): SnapshotSource | null {
    if (command.op === "use" || !this.#timeIsNarrow(command, now)) return null;
    if (memory !== null && memory.record !== null) return memory.guess();
    const floor = command.op === "acquire" ? this.#floors.recent(command.key.tenant, now.monotonicMs) : null;
    if (floor === null) return null;
    return { record: null, floor, stored: ABSENT, sinceMs: null, callNumber: null };
  }

  async read(key: LeaseKey, patienceMs?: number): Promise<SnapshotSource> {
    const answer = await this.#options.calls.read(Floors.keysFor(key), patienceMs);
    const [stored = ABSENT, floorRecord = ABSENT] = answer.value;
    const floor = this.#floors.learn(key.tenant, floorRecord, answer.sentMs);
    return this.learn(mapId(key), stored, floor, answer);
  }

  /** The store showed this in its answer. */
  learn(id: string, stored: StoredRecord, floor: bigint, call: AnsweredCall): SnapshotSource {
    const { callNumber } = call;
    if (stored.kind !== "found") return { record: null, floor, stored, sinceMs: null, callNumber };
    const { record } = stored;
    const memory = this.#memoryFor(id, null);
    memory.keep(record, stored.version, call.receivedMs, this.#options.calls.lastCallNumber);
    return { record, floor, stored, sinceMs: memory.sinceMs, callNumber };
  }

  /** An own write was acknowledged. */
  wrote(write: OwnWrite, version: string | null, receivedMs: number): void {
    const { id, next } = write;
    if (next === null || version === null) {
      this.forget(id);
      return;
    }
    const memory = this.#memoryFor(id, write.memory);
    memory.keep(next, version, receivedMs, this.#options.calls.lastCallNumber);
    if (next.state === "held") memory.token = write.provenBy;
  }

  /** News showed this: no more than a guess at what to try next. */
  heard(id: string, stored: StoredRecord, receivedMs: number): void {
    if (stored.kind !== "found") return;
    const { record, version } = stored;
    const memory = this.#memoryFor(id, null);
    const isNews = memory.version !== version && recordFence(record) >= memory.highestFence;
    if (isNews || memory.record === null) memory.keep(record, version, receivedMs, null);
  }

  forget(id: string): void {
    const memory = this.find(id);
    if (memory !== null) memory.record = null;
  }

  /** False when the store's time has to be asked for before anything can be decided. */
  knowsTime(now: ClockReading): boolean {
    const { store, clock } = this.#options;
    return store.capabilities.clock !== "reply" || clock.interval(now) !== null;
  }

  /** The store's time by itself. */
  time(now: ClockReading): StoreInstant {
    return this.instant(NO_RECORD, now);
  }

  /** The store's time for a decision about this record. */
  instant({ record, sinceMs }: Pick<SnapshotSource, "record" | "sinceMs">, now: ClockReading): StoreInstant {
    const { store, clock, drift } = this.#options;
    const { monotonicMs } = now;
    if (store.now !== undefined) return exactly(store.now());
    const interval = clock.interval(now);
    const stampMs = interval === null ? Math.ceil(now.wallMs) : interval.latestMs;
    if (record === null) return interval ?? exactly(stampMs);
    if (sinceMs !== null && isObservedOver(record, monotonicMs - sinceMs, drift)) {
      const endMs = Math.max(record.expiresAtMs, record.handoff?.deadlineMs ?? 0);
      return { earliestMs: endMs, latestMs: Math.max(endMs, stampMs), stampMs };
    }
    if (interval !== null && !clock.mustObserve(monotonicMs)) return interval;
    // Without a clock to trust the record stands until it was observed for long enough.
    const firstEndMs = Math.min(record.expiresAtMs, record.handoff?.deadlineMs ?? record.expiresAtMs);
    const beforeEndMs = Math.max(0, firstEndMs - 1);
    return { earliestMs: beforeEndMs, latestMs: beforeEndMs, stampMs };
  }

  /** A store that lost writes must not hand out an old fence again; a damaged record must not be overwritten. */
  brokenPromise(command: LeaseCommand, source: SnapshotSource): DeniedDecision | RefusedDecision | null {
    const { stored } = source;
    if (stored.kind === "corrupt") {
      return {
        kind: "refused",
        reason: "RECORD_CORRUPT",
        field: "key",
        message: corruptMessage(stored.detail),
      };
    }
    // A guess is this very memory, and leads to no answer.
    if (source.callNumber === null || command.op !== "acquire" || this.#options.policy.release === "delete")
      return null;
    const memory = this.find(mapId(command.key));
    if (memory === null || memory.record === null || source.callNumber <= memory.seenAtCall) return null;
    const { highestFence } = memory;
    const intact =
      stored.kind === "found"
        ? recordFence(stored.record) >= highestFence
        : source.floor >= fenceGeneration(highestFence) &&
          fenceTerm(highestFence) <= this.#options.policy.baseTerm;
    return intact ? null : { kind: "denied", reason: "FENCE_WENT_BACK", heldBy: null, heldUntilMs: null };
  }

  #timeIsNarrow(command: LeaseCommand, now: ClockReading): boolean {
    const { store, clock } = this.#options;
    if (store.now !== undefined) return true;
    const interval = clock.interval(now);
    if (interval === null) return store.capabilities.clock === "none";
    const ttlMs = "ttlMs" in command ? command.ttlMs : this.#options.policy.defaultTtlMs;
    return interval.latestMs - interval.earliestMs <= Math.max(50, ttlMs * WIDEST_GUESS_RATIO);
  }

  /** `known` is the key's memory as it was last found. As long as no entry of the map has got old since, it is there. */
  #memoryFor(id: string, known: KeyMemory | null): KeyMemory {
    const { generation } = this.#memories;
    if (known?.generation === generation) return known;
    const memory = this.find(id);
    if (memory === null) return this.begin(id);
    memory.generation = generation;
    this.#memories.set(id, memory);
    return memory;
  }
}

function corruptMessage(detail: string): string {
  return `has a damaged record (${detail}): nothing was changed; an operator can inspect and repair it`;
}
