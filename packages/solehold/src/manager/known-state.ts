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
  equalInConstantTime,
  exactly,
  fenceGeneration,
  fenceTerm,
  type LeaseCommand,
  type LeaseKey,
  type LeasePolicy,
  type LeaseRecord,
  type LeaseSnapshot,
  type RefusedDecision,
  recordFence,
  type StoreInstant,
} from "../core/index.ts";
import type { Env } from "../env/index.ts";
import { ABSENT, type LeaseStore, type StoredRecord } from "../stores/index.ts";
import { BoundedMap } from "./bounded-map.ts";
import { Floors } from "./floors.ts";
import { mapId } from "./map-id.ts";
import { isObservedOver } from "./observations.ts";
import type { AnsweredCall, StoreCalls } from "./store-calls.ts";
import type { StoreClock } from "./store-clock.ts";

/** What a decision will be based on. */
export interface SnapshotSource extends LeaseSnapshot {
  readonly stored: StoredRecord;
  /** The record, if the store itself showed it or took it; null for what was only heard of. */
  readonly confirmed: LeaseRecord | null;
  /** The receipt of the first reply that showed this version, on the monotonic clock; null for no record. */
  readonly sinceMs: number | null;
  /** The call that brought it; null for a guess, which must not lead to an answer. */
  readonly callNumber: number | null;
}

type FoundRecord = Extract<StoredRecord, { kind: "found" }>;

/**
 * A record as it was last seen: what will be tried on the strength of memory alone. There is one for each key that this
 * process has to do with, and a new one for each write: so it is a single object, and stands for what is stored, too.
 */
class Remembered implements SnapshotSource {
  readonly kind = "found";
  readonly floor = 0n;
  readonly callNumber = null;
  readonly record: LeaseRecord;
  readonly version: string;
  readonly confirmed: LeaseRecord | null;
  readonly sinceMs: number;
  /** What hashes to the record's token hash, while this process was the last to write a lease that is held. */
  token: string | null = null;
  /** The highest fence that the store's own answers showed. */
  readonly highestFence: bigint;
  /** Below the highest fence means that the store lost writes: nothing is tried on such a record without a look. */
  readonly isWorthTrying: boolean;
  /** Calls up to this number were sent before that fence was seen: their replies may be older. */
  readonly seenAtCall: number;

  constructor(
    record: LeaseRecord,
    version: string,
    confirmed: LeaseRecord | null,
    sinceMs: number,
    fence: bigint,
    highestFence: bigint,
    seenAtCall: number,
  ) {
    this.record = record;
    this.version = version;
    this.confirmed = confirmed;
    this.sinceMs = sinceMs;
    this.highestFence = highestFence;
    this.isWorthTrying = fence >= highestFence;
    this.seenAtCall = seenAtCall;
  }

  get stored(): FoundRecord {
    return this;
  }
}

/** Where a key's newest memory is, or will be. A command looks its key up once, and finds the way back by this. */
export interface Place {
  newest: Remembered | null;
  /** Of the map, when this was put there. */
  generation: number;
}

/** A conditional write of this process. */
export interface OwnWrite {
  readonly id: string;
  readonly place: Place;
  readonly source: SnapshotSource;
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
  readonly #places: BoundedMap<Place>;
  readonly #floors: Floors;

  constructor(options: KnownStateOptions) {
    this.#options = options;
    this.#places = new BoundedMap(options.cacheSize);
    this.#floors = new Floors({ maxAgeMs: options.floorMaxAgeMs });
  }

  /** Null when nothing was ever remembered of the key, or not for long. */
  find(id: string): Place | null {
    return this.#places.get(id) ?? null;
  }

  /** For a key that `find` has just not found. */
  newPlace(id: string): Place {
    const place: Place = { newest: null, generation: this.#places.generation };
    this.#places.set(id, place);
    return place;
  }

  /** What probably is in the store, if that is enough to try a write; otherwise null: read first. */
  guess(command: LeaseCommand, newest: Remembered | null, now: ClockReading): SnapshotSource | null {
    if (command.op === "use" || !this.#timeIsNarrow(command, now)) return null;
    if (newest !== null) return newest.isWorthTrying ? newest : null;
    const floor = command.op === "acquire" ? this.#floors.recent(command.key.tenant, now.monotonicMs) : null;
    if (floor === null) return null;
    return { record: null, floor, stored: ABSENT, confirmed: null, sinceMs: null, callNumber: null };
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
    if (stored.kind !== "found")
      return { record: null, floor, stored, confirmed: null, sinceMs: null, callNumber };
    const { record } = stored;
    const { sinceMs } = this.#remember(id, null, record, stored.version, call.receivedMs);
    return { record, floor, stored, confirmed: record, sinceMs, callNumber };
  }

  /** An own write was acknowledged. */
  wrote({ id, place, next, provenBy }: OwnWrite, version: string | null, receivedMs: number): void {
    if (next === null || version === null) {
      this.forget(id);
      return;
    }
    const remembered = this.#remember(id, place, next, version, receivedMs);
    if (next.state === "held") remembered.token = provenBy;
  }

  /**
   * News showed this. It may be late, so it is no more than a guess at what to try next: how high fences have grown is
   * learned from the store's own answers alone.
   */
  heard(id: string, stored: StoredRecord, receivedMs: number): void {
    const before = this.find(id)?.newest ?? null;
    if (stored.kind !== "found" || recordFence(stored.record) < (before?.highestFence ?? 0n)) return;
    const { record, version } = stored;
    if (before?.version !== version) this.#remember(id, null, record, version, receivedMs, null);
  }

  forget(id: string): void {
    const place = this.find(id);
    if (place !== null) place.newest = null;
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
    const remembered = this.find(mapId(command.key))?.newest ?? null;
    if (remembered === null || source.callNumber <= remembered.seenAtCall) return null;
    const { highestFence } = remembered;
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

  /** `known` is where the key's memory was last found; it may have been given up since. */
  #remember(
    id: string,
    known: Place | null,
    record: LeaseRecord,
    version: string,
    receivedMs: number,
    confirmed: LeaseRecord | null = record,
  ): Remembered {
    const place = this.#placeFor(id, known);
    const before = place.newest;
    const fence = recordFence(record);
    const sinceMs = before?.version === version ? before.sinceMs : receivedMs;
    const highest = before?.highestFence ?? 0n;
    const grew = confirmed !== null && (fence > highest || before === null);
    const seenAtCall = grew ? this.#options.calls.lastCallNumber : (before?.seenAtCall ?? 0);
    const highestFence = grew ? fence : highest;
    place.newest = new Remembered(record, version, confirmed, sinceMs, fence, highestFence, seenAtCall);
    return place.newest;
  }

  /** As long as no entry of the map has got old since, the place is where it was. */
  #placeFor(id: string, known: Place | null): Place {
    const { generation } = this.#places;
    if (known?.generation === generation) return known;
    const place = this.find(id);
    if (place === null) return this.newPlace(id);
    place.generation = generation;
    this.#places.set(id, place);
    return place;
  }
}

/** The token's hash, if it is that of the lease that is held: owners come back, and hashing is slower than deciding. */
export function hashKnown(place: Place | null, token: string): string | null {
  const newest = place?.newest ?? null;
  const known = newest?.token ?? null;
  return known !== null && equalInConstantTime(known, token) ? (newest?.record.tokenHash ?? null) : null;
}

function corruptMessage(detail: string): string {
  return `has a damaged record (${detail}): nothing was changed; an operator can inspect and repair it`;
}
