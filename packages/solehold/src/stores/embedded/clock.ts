/**
 * The store's clock: one time for all processes of the machine, that never goes back and never jumps.
 *
 * Within a boot it is `offset + monotonic clock`, with the offset kept in the store; nobody looks at the
 * wall clock, so nobody sees it being set. Every boot is an EPOCH with an offset of its own. A new epoch
 * begins at max(high-water mark, wall clock).
 *
 * The mark of an epoch is the latest instant that reached the disk. Every commit carries the time at which
 * it was handed over, in the same transaction as its records. A write is judged before it is handed over,
 * so no record on disk was judged later than the mark, and the mark is never later than the true time:
 *
 *     judged at <= handed over at <= mark <= time of the crash
 *
 * From the left part: a new epoch, which begins at or after the mark, is after every judgement. From the
 * right part: a lease that ends at E has at least E - (time of the crash) <= E - mark left when the machine
 * stops. So a record of an earlier epoch that was alive at its mark is reported as ending
 * `start of the next epoch - mark` later: it keeps E - mark, never less than what its holder may believe.
 * And as it was judged at or before the mark, E - mark is at most its ttl: that bounds the extension.
 * A record that was dead at its mark is reported unchanged. Nothing is rewritten.
 *
 * Not promised: time that was only told to readers and never came with a commit nor a close() can be told
 * again after a crash of the machine, if its wall clock then is behind. No grant depends on such time.
 * While the machine is suspended the clock stands still, as the monotonic clock does.
 */
import type { LeaseRecord } from "../../core/index.ts";
import type { Env } from "../../env/index.ts";
import { type Boot, isSameBoot } from "./boot.ts";

/** How the instants of one epoch are read in the next: those later than `markMs` are `byMs` later. */
export interface EpochEnd {
  readonly markMs: number;
  readonly byMs: number;
}

export interface ClockState {
  /** Counts from 1. */
  readonly epoch: number;
  readonly bootId: string;
  /** Store time minus the machine's monotonic clock, in whole milliseconds. */
  readonly offsetMs: number;
  readonly startMs: number;
  /** The ends of epochs 1 to epoch - 1. */
  readonly ends: readonly EpochEnd[];
}

export function firstEpoch(env: Env, boot: Boot): ClockState {
  return startEpoch({ epoch: 1, startMs: Math.floor(env.wallMs()), ends: [] }, env, boot);
}

export function nextEpoch(last: ClockState, markMs: number, env: Env, boot: Boot): ClockState {
  const startMs = Math.max(markMs, Math.floor(env.wallMs()));
  const ends = [...last.ends, { markMs, byMs: startMs - markMs }];
  return startEpoch({ epoch: last.epoch + 1, startMs, ends }, env, boot);
}

/** Rounded up: the first reading must not be a fraction before the start. */
function startEpoch(epoch: Pick<ClockState, "epoch" | "startMs" | "ends">, env: Env, boot: Boot): ClockState {
  const offsetMs = Math.ceil(epoch.startMs - machineMonotonicMs(env, boot));
  return { ...epoch, bootId: boot.id, offsetMs };
}

function machineMonotonicMs(env: Env, boot: Boot): number {
  return env.monotonicMs() - boot.aheadMs;
}

export class StoreClock {
  readonly epoch: number;
  readonly #ends: readonly EpochEnd[];
  readonly #offsetMs: number;
  readonly #env: Env;

  constructor(state: ClockState, env: Env, boot: Boot) {
    this.epoch = state.epoch;
    this.#ends = state.ends;
    this.#offsetMs = state.offsetMs - boot.aheadMs;
    this.#env = env;
  }

  now(): number {
    return Math.floor(this.#offsetMs + this.#env.monotonicMs());
  }

  /** A record of an earlier epoch in terms of this one. */
  translate(record: LeaseRecord, epoch: number): LeaseRecord {
    if (epoch === this.epoch) return record;
    const { breakAtMs, handoff } = record;
    return {
      ...record,
      expiresAtMs: this.#instant(record.expiresAtMs, epoch),
      breakAtMs: breakAtMs === null ? null : this.#instant(breakAtMs, epoch),
      handoff: handoff === null ? null : { ...handoff, deadlineMs: this.#instant(handoff.deadlineMs, epoch) },
    };
  }

  /** Each step keeps the order of instants, so what ended before something else still does. */
  #instant(instantMs: number, epoch: number): number {
    let translated = instantMs;
    for (const { markMs, byMs } of this.#ends.slice(epoch - 1)) {
      if (translated > markMs) translated = Math.min(translated + byMs, Number.MAX_SAFE_INTEGER);
    }
    return translated;
  }
}

export function printClock(state: ClockState): string {
  return JSON.stringify(state);
}

/** Only of what `printClock` made: whether it is whole is the seal's business. */
export function parseClock(text: string): ClockState {
  return JSON.parse(text) as ClockState;
}

export function belongsToBoot(state: ClockState, boot: Boot): boolean {
  return isSameBoot(state.bootId, boot.id);
}
