/**
 * What a client knows of its store's clock between replies: an interval.
 *
 * A reply says "it was T here". T was read after the request was sent and before the reply was received,
 * so at a later own instant m the store's clock shows at least T + (m - received), slowed by drift, and
 * at most T + (m - sent), quickened by drift. The sample with the narrowest interval is kept.
 *
 * Own time is read on two clocks, because the monotonic one stands still while the machine sleeps: the upper
 * bound counts what the faster of the two says, and where they have moved apart nothing is known until the
 * next reply. Otherwise a machine that slept would take an old time for the present, and write expiries from it.
 *
 * A store with several machines has several clocks: the interval is wide enough for all of them.
 *
 * A reply whose time lies outside the interval means that the clock jumped: a failover to a machine with another clock, or
 * somebody set it; a reply may also say that another server took over lately. From then on, for `observeForMs`, nothing may
 * be judged dead by this clock; see `observations.ts` for what is used instead.
 */
import type { ClockReading, DriftBound, StoreInstant } from "../core/index.ts";

/** What a reply said, and the own clocks when the question left and when the answer came. */
export interface TimeSample {
  readonly sent: ClockReading;
  readonly received: ClockReading;
  readonly storeTimeMs: number;
  /** When another server took over the data, on the clock that answered; null when none did. */
  readonly serverChangedAtMs: number | null;
}

/** An optimistic write is not worth it when the store's time is known so badly that expiries would be stretched. */
const NARROW_RATIO = 0.05;
const NARROW_MS = 50;
/** Wall clocks tell whole milliseconds. */
const WALL_TICK_MS = 2;

export class StoreClock {
  readonly #drift: DriftBound;
  readonly #granularityMs: number;
  readonly #skewMs: number;
  readonly #observeForMs: number;
  #sample: TimeSample | null = null;
  #observeUntilMs = Number.NEGATIVE_INFINITY;
  #jumps = 0;

  constructor(options: {
    readonly drift: DriftBound;
    readonly granularityMs: number;
    /** How far apart the clocks are that may answer: the interval holds them all. */
    readonly skewMs: number;
    /** How long after a jump only observation counts: the longest lease that may be alive. */
    readonly observeForMs: number;
  }) {
    this.#drift = options.drift;
    this.#granularityMs = options.granularityMs;
    this.#skewMs = options.skewMs;
    this.#observeForMs = options.observeForMs;
  }

  /** How often the store's time left the interval that was computed for it. */
  get jumps(): number {
    return this.#jumps;
  }

  /** A reply arrived. */
  learn(sample: TimeSample): void {
    const known = this.#sample;
    // Asleep while the answer was on its way: it may be old, and nobody can say how old.
    if (this.#movedApart(sample.sent, sample.received)) return;
    const { storeTimeMs, serverChangedAtMs } = sample;
    if (serverChangedAtMs !== null) {
      this.#observeFor(this.#observeForMs - (storeTimeMs - serverChangedAtMs), sample.received.monotonicMs);
    }
    if (known === null || this.#movedApart(known.received, sample.received)) {
      this.#sample = sample;
      return;
    }
    if (this.#contradicts(known, sample)) {
      this.#jumps += 1;
      this.observe(sample.received.monotonicMs);
      this.#sample = sample;
      return;
    }
    const at = sample.received;
    if (this.#width(sample, at) <= this.#width(known, at)) this.#sample = sample;
  }

  /**
   * Null before the first reply, and after a sleep or a step of the wall clock until the next. What is written is stamped
   * with the latest time that it may be: never before the true one.
   */
  interval(now: ClockReading): StoreInstant | null {
    const sample = this.#sample;
    if (sample === null || this.#movedApart(sample.received, now)) return null;
    const latestMs = Math.ceil(this.#latest(sample, now));
    return { earliestMs: Math.floor(this.#earliest(sample, now)), latestMs, stampMs: latestMs };
  }

  /** True while this clock may not be used to judge that a lease is over. */
  mustObserve(monotonicMs: number): boolean {
    return monotonicMs < this.#observeUntilMs;
  }

  /** Something happened to the store: from now on, for `observeForMs`, only observation counts. */
  observe(monotonicMs: number): void {
    this.#observeFor(this.#observeForMs, monotonicMs);
  }

  /** Whether a decision is worth trying on this interval: what a fresh reply could not narrow does not count. */
  isNarrow({ earliestMs, latestMs }: StoreInstant, ttlMs: number): boolean {
    const avoidableMs = latestMs - earliestMs - this.#granularityMs - 2 * this.#skewMs;
    return avoidableMs <= Math.max(NARROW_MS, ttlMs * NARROW_RATIO);
  }

  /** At most the whole period: a server that took over in the store's future has just done so. */
  #observeFor(forMs: number, monotonicMs: number): void {
    if (forMs <= 0) return;
    const wholeMs = Math.min(forMs, this.#observeForMs) * (1 + this.#drift.driftRatio);
    this.#observeUntilMs = Math.max(this.#observeUntilMs, monotonicMs + wholeMs);
  }

  #contradicts(known: TimeSample, sample: TimeSample): boolean {
    const { tickMs } = this.#drift;
    const tooEarly = sample.storeTimeMs + this.#granularityMs + tickMs < this.#earliest(known, sample.sent);
    const tooLate = sample.storeTimeMs - tickMs > this.#latest(known, sample.received);
    return tooEarly || tooLate;
  }

  #earliest(sample: TimeSample, now: ClockReading): number {
    const elapsedMs = now.monotonicMs - sample.received.monotonicMs;
    // Replies may overtake each other: an instant before the receipt is counted back from it, generously.
    const rate = elapsedMs < 0 ? 1 + this.#drift.driftRatio : 1 / (1 + this.#drift.driftRatio);
    return sample.storeTimeMs - this.#skewMs + elapsedMs * rate;
  }

  #latest(sample: TimeSample, now: ClockReading): number {
    const { sent, storeTimeMs } = sample;
    const elapsedMs = Math.max(0, now.monotonicMs - sent.monotonicMs, now.wallMs - sent.wallMs);
    return storeTimeMs + this.#granularityMs + this.#skewMs + elapsedMs * (1 + this.#drift.driftRatio);
  }

  #width(sample: TimeSample, now: ClockReading): number {
    return this.#latest(sample, now) - this.#earliest(sample, now);
  }

  /** Whether the two own clocks disagree about how long it was between the readings. */
  #movedApart(from: ClockReading, to: ClockReading): boolean {
    const monotonicMs = to.monotonicMs - from.monotonicMs;
    const gapMs = to.wallMs - from.wallMs - monotonicMs;
    return Math.abs(gapMs) > this.#drift.tickMs + WALL_TICK_MS + monotonicMs * this.#drift.driftRatio;
  }
}
