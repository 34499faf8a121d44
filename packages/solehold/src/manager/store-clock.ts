/**
 * What a client knows of its store's clock between replies: an interval.
 *
 * A reply says "it was T here". T was read after the request was sent and before the reply was received,
 * so at a later own instant m the store's clock shows at least T + (m - received), slowed by drift, and
 * at most T + (m - sent), quickened by drift. The sample with the narrowest interval is kept.
 *
 * A reply whose time lies outside the interval means that the clock jumped: a failover to a machine with
 * another clock, or somebody set it. From then on, for `observeForMs`, nothing may be judged dead by this
 * clock; see `observations.ts` for what is used instead.
 */
import type { DriftBound } from "../core/index.ts";

export interface StoreTimeInterval {
  readonly earliestMs: number;
  readonly latestMs: number;
}

interface Sample {
  readonly sentMs: number;
  readonly receivedMs: number;
  readonly storeTimeMs: number;
}

export class StoreClock {
  readonly #drift: DriftBound;
  readonly #granularityMs: number;
  readonly #observeForMs: number;
  #sample: Sample | null = null;
  #observeUntilMs = Number.NEGATIVE_INFINITY;
  #jumps = 0;

  constructor(options: {
    readonly drift: DriftBound;
    readonly granularityMs: number;
    /** How long after a jump only observation counts: the longest lease that may be alive. */
    readonly observeForMs: number;
  }) {
    this.#drift = options.drift;
    this.#granularityMs = options.granularityMs;
    this.#observeForMs = options.observeForMs;
  }

  /** How often the store's time left the interval that was computed for it. */
  get jumps(): number {
    return this.#jumps;
  }

  /** A reply arrived. All but `storeTimeMs` are own monotonic readings. */
  learn(sample: Sample): void {
    const known = this.#sample;
    if (known === null) {
      this.#sample = sample;
      return;
    }
    if (this.#contradicts(known, sample)) {
      this.#jumps += 1;
      this.#observeUntilMs = sample.receivedMs + this.#observeForMs * (1 + this.#drift.driftRatio);
      this.#sample = sample;
      return;
    }
    const at = sample.receivedMs;
    if (this.#width(sample, at) <= this.#width(known, at)) this.#sample = sample;
  }

  /** Null before the first reply. */
  interval(monotonicMs: number): StoreTimeInterval | null {
    if (this.#sample === null) return null;
    return {
      earliestMs: Math.floor(this.#earliest(this.#sample, monotonicMs)),
      latestMs: Math.ceil(this.#latest(this.#sample, monotonicMs)),
    };
  }

  /** True while this clock may not be used to judge that a lease is over. */
  mustObserve(monotonicMs: number): boolean {
    return monotonicMs < this.#observeUntilMs;
  }

  #contradicts(known: Sample, sample: Sample): boolean {
    const { tickMs } = this.#drift;
    const tooEarly = sample.storeTimeMs + this.#granularityMs + tickMs < this.#earliest(known, sample.sentMs);
    const tooLate = sample.storeTimeMs - tickMs > this.#latest(known, sample.receivedMs);
    return tooEarly || tooLate;
  }

  #earliest(sample: Sample, monotonicMs: number): number {
    return sample.storeTimeMs + Math.max(0, monotonicMs - sample.receivedMs) / (1 + this.#drift.driftRatio);
  }

  #latest(sample: Sample, monotonicMs: number): number {
    const elapsedMs = Math.max(0, monotonicMs - sample.sentMs) * (1 + this.#drift.driftRatio);
    return sample.storeTimeMs + this.#granularityMs + elapsedMs;
  }

  #width(sample: Sample, monotonicMs: number): number {
    return this.#latest(sample, monotonicMs) - this.#earliest(sample, monotonicMs);
  }
}
