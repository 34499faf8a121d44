/**
 * What a holder may believe. The store says how long a lease lasts on ITS clock; the holder can only
 * measure its own. The belief therefore starts before the request was sent (the reply may be late), and
 * ends a margin early (the two clocks may run at different rates).
 *
 * Two clocks are read, and either one saying "over" is enough: the monotonic clock stands still while a
 * machine is suspended, the wall clock may be set back.
 *
 * Promised: while any two clocks advance within `driftRatio` of each other, a belief ends no later than
 * the record. Not promised: anything about clocks that run further apart; that is what fences are for.
 */
export interface ClockReading {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export interface Validity {
  /** Valid while both clocks are before their end. */
  readonly monotonicEndMs: number;
  readonly wallEndMs: number;
}

export interface DriftBound {
  /** How much faster any clock may run than another: 0.01 means 1 %. */
  readonly driftRatio: number;
  /** The coarsest step of a clock or of rounding, in milliseconds. */
  readonly tickMs: number;
}

/** One per cent is far above real oscillators (0.02 %) and covers virtual machines that are slewed. */
export const DEFAULT_DRIFT: DriftBound = Object.freeze({ driftRatio: 0.01, tickMs: 2 });

/** Throws a RangeError for a bound under which nothing could be believed. */
export function checkedDrift(drift: DriftBound): DriftBound {
  const problem = driftProblem(drift);
  if (problem !== null) throw new RangeError(`drift.${problem}`);
  return drift;
}

/** How much earlier than the store a holder must stop. */
export function marginMs(ttlMs: number, drift: DriftBound): number {
  return Math.ceil(ttlMs * drift.driftRatio) + drift.tickMs;
}

/** `before` was read before the request left, so the store cannot have counted from earlier. */
export function validityFrom(before: ClockReading, ttlMs: number, drift: DriftBound): Validity {
  const lengthMs = ttlMs - marginMs(ttlMs, drift);
  return { monotonicEndMs: before.monotonicMs + lengthMs, wallEndMs: before.wallMs + lengthMs };
}

/** Zero when it is over; never negative. */
export function remainingValidityMs(validity: Validity, now: ClockReading): number {
  const left = Math.min(validity.monotonicEndMs - now.monotonicMs, validity.wallEndMs - now.wallMs);
  return Math.max(left, 0);
}

export function isStillValid(validity: Validity, now: ClockReading): boolean {
  return now.monotonicMs < validity.monotonicEndMs && now.wallMs < validity.wallEndMs;
}

/** The later of two beliefs about the same grant: a renewal never takes away what was already promised. */
export function laterValidity(a: Validity, b: Validity): Validity {
  return a.monotonicEndMs >= b.monotonicEndMs ? a : b;
}

export interface RenewalTiming {
  readonly ttlMs: number;
  /** How long after a successful renewal the next one is sent. */
  readonly renewEveryMs: number;
  /** How long after a failed renewal it is tried again, before jitter. */
  readonly retryEveryMs: number;
}

/** Jitter stretches or shrinks a delay by at most this part. */
export const JITTER_RATIO = 0.2;

/**
 * Null when a lease with this timing can be kept; otherwise the relation that is broken. Room for two
 * retries after a failed renewal is the least that makes one lost packet harmless.
 */
export function renewalTimingProblem(timing: RenewalTiming, drift: DriftBound): string | null {
  const { ttlMs, renewEveryMs, retryEveryMs } = timing;
  const problem = driftProblem(drift);
  if (problem !== null) return problem;
  const believedMs = ttlMs - marginMs(ttlMs, drift);
  // Written so that NaN fails every relation.
  if (!(believedMs > 0)) {
    return `ttl of ${ttlMs} ms is not longer than its safety margin of ${marginMs(ttlMs, drift)} ms: use a longer ttl`;
  }
  const worstMs = renewEveryMs * (1 + JITTER_RATIO) + 2 * retryEveryMs * (1 + JITTER_RATIO);
  if (!(renewEveryMs > 0 && retryEveryMs > 0 && worstMs < believedMs)) {
    return (
      `renewing every ${renewEveryMs} ms with retries every ${retryEveryMs} ms leaves no room for two retries ` +
      `within the ${believedMs} ms that a ${ttlMs} ms lease can be believed: renew earlier or use a longer ttl`
    );
  }
  return null;
}

function driftProblem({ driftRatio, tickMs }: DriftBound): string | null {
  if (!(driftRatio >= 0 && driftRatio < 0.5))
    return `driftRatio must be from 0 to below 0.5, got ${driftRatio}`;
  return tickMs >= 1 ? null : `tickMs must be at least 1, got ${tickMs}`;
}
