/**
 * One time for all processes of a machine, that never goes back and never jumps. Within a boot it is `offset + monotonic
 * clock`; nobody looks at the wall clock, so nobody sees it being set. Every boot is an EPOCH with an offset of its own,
 * which begins at the later of the mark and the wall clock. The mark is the latest instant that came with a commit, and
 * it is on disk no later than the records:
 *
 *     judged at <= mark <= time of the crash
 *
 * So a new epoch is after every judgement, and a lease that ends at E has at most E - mark left when the machine stops.
 * A record of an earlier epoch that was alive at its mark is reported as ending `start of the next epoch - mark` later:
 * it keeps E - mark, never less than what its holder may believe, and at most its ttl. Nothing is rewritten.
 *
 * Not promised: time that only readers saw can come again after a crash of the machine. While the machine is
 * suspended the clock stands still, as the monotonic clock does.
 */
import type { LeaseRecord } from "../../core/index.ts";
import type { Env } from "../../env/index.ts";
import { type Boot, isSameBoot } from "../../support/boot.ts";

export interface EpochState {
  /** Counts from 1. */
  readonly epoch: number;
  readonly bootId: string;
  /** Store time minus the machine's monotonic clock, in whole milliseconds. */
  readonly offsetMs: number;
  readonly startMs: number;
  /** How the instants of epochs 1 to epoch - 1 are read in the next: those later than `markMs` are `byMs` later. */
  readonly ends: readonly { readonly markMs: number; readonly byMs: number }[];
}

/** The epoch of this boot: the last one, or one that begins now. `markMs` is the last one's. */
export function epochOf(last: EpochState | null, markMs: number, env: Env, boot: Boot): EpochState {
  if (last !== null && isSameBoot(last.bootId, boot.id)) return last;
  const startMs = Math.max(markMs, Math.floor(env.wallMs()));
  // Rounded up: the first reading must not be a fraction before the start.
  const offsetMs = Math.ceil(startMs - (env.monotonicMs() - boot.aheadMs));
  const ends = last === null ? [] : [...last.ends, { markMs, byMs: startMs - markMs }];
  return { epoch: ends.length + 1, bootId: boot.id, offsetMs, startMs, ends };
}

export class EpochClock {
  readonly #state: EpochState;
  readonly #env: Env;
  readonly #boot: Boot;

  constructor(state: EpochState, env: Env, boot: Boot) {
    this.#state = state;
    this.#env = env;
    this.#boot = boot;
  }

  get epoch(): number {
    return this.#state.epoch;
  }

  now(): number {
    return Math.floor(this.#state.offsetMs - this.#boot.aheadMs + this.#env.monotonicMs());
  }

  /** A record of an earlier epoch in terms of this one. */
  translate(record: LeaseRecord, epoch: number): LeaseRecord {
    if (epoch === this.epoch) return record;
    const { breakAtMs, handoff, reservation } = record;
    // A minimum hold stays where it is: nobody's belief depends on it, and the time that the machine was off counts.
    return {
      ...record,
      expiresAtMs: this.#instant(record.expiresAtMs, epoch),
      breakAtMs: breakAtMs === null ? null : this.#instant(breakAtMs, epoch),
      handoff: handoff === null ? null : { ...handoff, deadlineMs: this.#instant(handoff.deadlineMs, epoch) },
      reservation:
        reservation === null
          ? null
          : { ...reservation, deadlineMs: this.#instant(reservation.deadlineMs, epoch) },
    };
  }

  /** Each step keeps the order of instants, so what ended before something else still does. */
  #instant(instantMs: number, epoch: number): number {
    let translated = instantMs;
    for (const { markMs, byMs } of this.#state.ends.slice(epoch - 1)) {
      if (translated > markMs) translated = Math.min(translated + byMs, Number.MAX_SAFE_INTEGER);
    }
    return translated;
  }
}
