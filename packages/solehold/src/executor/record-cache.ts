/**
 * What this process knows of the store without asking: versions it has seen (so that a write needs no
 * read before it), how long each stood unchanged, the highest fence of each key, the store's time.
 *
 * All of it is bounded, and none of it is trusted for an answer: an optimistic snapshot only ever leads to a conditional
 * write, which the store checks.
 */
import {
  type AcquireCommand,
  type ClockReading,
  claimableFrom,
  type DriftBound,
  endOfRecord,
  exactly,
  fenceGeneration,
  fenceOf,
  fenceTerm,
  type IntegrityViolation,
  keyId,
  type LeaseCommand,
  type LeaseKey,
  type LeasePolicy,
  type LeaseRecord,
  type LeaseSnapshot,
  nextGeneration,
  recordFence,
  reservedUntil,
  type StoreInstant,
} from "../core/index.ts";
import type { Env } from "../env/index.ts";
import { ABSENT, type LeaseStore, type StoredRecord } from "../store/index.ts";
import { BoundedMap } from "../support/bounded-map.ts";
import { CachedRecord, type SnapshotSource } from "./cached-record.ts";
import type { Answered, CallBatcher } from "./call-batcher.ts";
import { isObservedOver } from "./observations.ts";
import type { StoreClock } from "./store-time.ts";

/** A conditional write of this process. */
export interface OwnWrite {
  readonly id: string;
  readonly next: LeaseRecord | null;
  /** The token whose hash the record has; null when it is not known. */
  readonly provenBy: string | null;
}

export interface RecordCacheOptions {
  readonly env: Env;
  readonly store: LeaseStore;
  readonly calls: CallBatcher;
  readonly clock: StoreClock;
  readonly policy: LeasePolicy;
  readonly drift: DriftBound;
  readonly cacheSize: number;
  /** Ended records are kept at least this long: one that is gone sooner was lost. */
  readonly retentionMs: number;
}

const NO_RECORD = { record: null, sinceMs: null } as const;

export class RecordCache {
  readonly #options: RecordCacheOptions;
  readonly #records: BoundedMap<CachedRecord>;
  /** Until then, on the monotonic clock, a lease may be alive of which the store has lost the record. */
  #lostUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: RecordCacheOptions) {
    this.#options = options;
    this.#records = new BoundedMap(options.cacheSize);
  }

  /** Null when nothing was ever remembered of the key, or not for long. */
  find(id: string): CachedRecord | null {
    return this.#records.get(id) ?? null;
  }

  /** What probably is in the store, if that is enough to try a write; otherwise null: read first. */
  optimisticSnapshot(
    command: LeaseCommand,
    cached: CachedRecord | null,
    now: ClockReading,
  ): SnapshotSource | null {
    if (command.op === "use" || !this.#timeIsNarrow(command, now)) return null;
    if (cached !== null && cached.record !== null)
      return isTakeover(command, cached.record) ? null : cached.optimisticSnapshot();
    // A store without a clock has to be asked for its revision, above which the first grant is; one that lost data has
    // to be asked anyway.
    const isClockless = this.#options.store.capabilities.clock === "none";
    if (command.op !== "acquire" || isClockless || now.monotonicMs < this.#lostUntilMs) return null;
    return { record: null, floor: 0n, stored: ABSENT, sinceMs: null, callNumber: null };
  }

  async read(key: LeaseKey, timeoutMs?: number): Promise<SnapshotSource> {
    const answer = await this.#options.calls.read(key, timeoutMs);
    const { stored, revision } = answer.value;
    return this.onRead(keyId(key), stored, revision, answer);
  }

  /** The store's answer showed this. */
  onRead(
    id: string,
    stored: StoredRecord,
    floor: bigint,
    call: Pick<Answered<unknown>, "callNumber" | "receivedMs">,
  ): SnapshotSource {
    const { callNumber } = call;
    if (stored.kind !== "found") return { record: null, floor, stored, sinceMs: null, callNumber };
    const { record } = stored;
    const cached = this.#entryOf(id);
    cached.keep(record, stored.version, call.receivedMs, this.#options.calls.lastCallNumber);
    return { record, floor, stored, sinceMs: cached.sinceMs, callNumber };
  }

  /** A write of this process was acknowledged. */
  onWritten(write: OwnWrite, version: string | null, receivedMs: number): void {
    const { id, next } = write;
    if (next === null || version === null) {
      this.forget(id);
      return;
    }
    const cached = this.#entryOf(id);
    cached.keep(next, version, receivedMs, this.#options.calls.lastCallNumber);
    if (next.state === "held") cached.token = write.provenBy;
  }

  /** A watch event showed this: a hint at what to try next. */
  onHint(id: string, stored: StoredRecord, receivedMs: number): void {
    if (stored.kind !== "found") return;
    const { record, version } = stored;
    const cached = this.#entryOf(id);
    const isNewer = cached.version !== version && recordFence(record) >= cached.highestFence;
    if (isNewer || cached.record === null) cached.keep(record, version, receivedMs, null);
  }

  forget(id: string): void {
    this.find(id)?.forget();
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
      const endMs = Math.max(record.expiresAtMs, claimableFrom(record));
      return { earliestMs: endMs, latestMs: Math.max(endMs, stampMs), stampMs };
    }
    if (interval !== null && !clock.mustObserve(monotonicMs)) return interval;
    // Without a clock to trust the record stands until it was observed for long enough.
    const { expiresAtMs, minHoldUntilMs } = record;
    const firstEndMs = Math.min(
      expiresAtMs,
      reservedUntil(record) ?? expiresAtMs,
      minHoldUntilMs ?? expiresAtMs,
    );
    const beforeEndMs = Math.max(0, firstEndMs - 1);
    return { earliestMs: beforeEndMs, latestMs: beforeEndMs, stampMs };
  }

  /**
   * The store says that it lost data. A lease whose record is gone may be believed in for one more maximal ttl; so long
   * an absent record says nothing, and the others are judged by observation.
   */
  onDataLoss(monotonicMs: number): void {
    const { clock, policy, drift } = this.#options;
    clock.observe(monotonicMs);
    this.#lostUntilMs = monotonicMs + policy.maxTtlMs * (1 + drift.driftRatio);
  }

  /** The snapshot of a decision: what was read, and what is known to be wrong with it. */
  snapshot(
    command: LeaseCommand,
    source: SnapshotSource,
    now: StoreInstant,
    monotonicMs: number,
  ): LeaseSnapshot {
    const violation = this.#violation(command, source, now, monotonicMs);
    return violation === null ? source : { ...source, violation };
  }

  /**
   * Its record is damaged, or the store has lost writes that this process saw, whose holder may still believe in its lease.
   */
  #violation(
    command: LeaseCommand,
    source: SnapshotSource,
    now: StoreInstant,
    monotonicMs: number,
  ): IntegrityViolation | null {
    const { stored } = source;
    if (stored.kind === "corrupt") return { kind: "corrupt", detail: stored.detail };
    const granting = grantingPart(command);
    // An optimistic snapshot is this very cache, and leads to no answer.
    if (source.callNumber === null) return null;
    const lostForMs = stored.kind === "absent" ? Math.max(0, this.#lostUntilMs - monotonicMs) : 0;
    const behindForMs = granting === null ? 0 : this.#isBehindForMs(granting, source, now, monotonicMs);
    const forMs = Math.max(lostForMs, behindForMs);
    return forMs === 0 ? null : { kind: "lost-writes", forMs };
  }

  /**
   * For how long nothing may be granted because the store shows less than this process has seen; 0 when it does not. The
   * holder that was seen may believe for one more ttl; afterwards what the store shows is taken for what is there. That
   * never happens where the next fence would not be above all that were seen.
   */
  #isBehindForMs(
    command: AcquireCommand,
    source: SnapshotSource,
    now: StoreInstant,
    monotonicMs: number,
  ): number {
    const { drift, retentionMs } = this.#options;
    const { stored, callNumber } = source;
    const cached = this.find(keyId(command.key));
    if (cached === null || cached.record === null || (callNumber ?? 0) <= cached.seenAtCall) return 0;
    const { record, highestFence } = cached;
    const growsInMs = this.#growsInMs(command, source, now, highestFence);
    const mayBeCollected = now.earliestMs >= endOfRecord(record) + retentionMs || source.floor > 0n;
    const isIntact =
      stored.kind === "found"
        ? recordFence(stored.record) >= highestFence
        : growsInMs === 0 && mayBeCollected;
    if (isIntact) return 0;
    cached.lostAtMs ??= monotonicMs;
    const bindsForMs = record.ttlMs * (1 + drift.driftRatio) + drift.tickMs;
    const forMs = Math.max(growsInMs, cached.lostAtMs + bindsForMs - monotonicMs);
    if (forMs > 0) return forMs;
    cached.forget();
    return 0;
  }

  /** How long until a grant on this base would have a higher fence than this; infinite where counting never gets there. */
  #growsInMs(command: AcquireCommand, source: SnapshotSource, now: StoreInstant, fence: bigint): number {
    const { policy } = this.#options;
    const term = command.term ?? policy.baseTerm;
    if (fenceOf(term, nextGeneration(source, now, policy)) > fence) return 0;
    if (policy.generations === "count" || term < fenceTerm(fence)) return Number.POSITIVE_INFINITY;
    return Number(fenceGeneration(fence) / 1_000n) + 1 - now.stampMs;
  }

  #timeIsNarrow(command: LeaseCommand, now: ClockReading): boolean {
    const { store, clock, policy } = this.#options;
    if (store.now !== undefined) return true;
    const interval = clock.interval(now);
    if (interval === null) return store.capabilities.clock === "none";
    return clock.isNarrow(interval, ("ttlMs" in command ? command.ttlMs : undefined) ?? policy.defaultTtlMs);
  }

  /** Setting it again counts as use. */
  #entryOf(id: string): CachedRecord {
    const cached = this.find(id) ?? new CachedRecord();
    this.#records.set(id, cached);
    return cached;
  }
}

/**
 * Whether another's lease would be judged over. What is remembered may have been stamped by a clock that answers only
 * since then, so the store is asked first: its reply shows whether its time has jumped.
 */
function isTakeover(command: LeaseCommand, record: LeaseRecord): boolean {
  return command.op === "acquire" && record.state === "held" && record.holder !== command.holder;
}

/** The acquire whose grant the snapshot must be good for: the command itself, or what a release serves with its write. */
function grantingPart(command: LeaseCommand): AcquireCommand | null {
  if (command.op === "acquire") return command;
  return command.op === "release" ? (command.next ?? null) : null;
}
