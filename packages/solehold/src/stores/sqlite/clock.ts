/**
 * The store's clock: one time for all processes of the machine, that never goes back and never jumps.
 *
 * Within a boot it is `offset + monotonic clock`, with the offset kept in the store; nobody looks at the wall clock, so
 * nobody sees it being set. Every boot is an EPOCH with an offset of its own. A new epoch begins at the later of the
 * mark and the wall clock.
 *
 * The mark is the latest instant that reached the disk. Every commit carries the time at which it was handed over, in
 * the same transaction as its records. A write is judged before it is handed over, so
 *
 *     judged at <= handed over at <= mark <= time of the crash
 *
 * From the left part: a new epoch, which begins at or after the mark, is after every judgement. From the right part: a
 * lease that ends at E has at most E - mark left when the machine stops. So a record of an earlier epoch that was alive
 * at its mark is reported as ending `start of the next epoch - mark` later: it keeps E - mark, never less than what its
 * holder may believe, and at most its ttl. A record that was dead at its mark is reported unchanged. Nothing is
 * rewritten: versions only grow, so a record's version tells in which epoch it was written.
 *
 * Not promised: time that was only told to readers and never came with a commit nor a close() can be told again after
 * a crash of the machine, if its wall clock then is behind. No grant depends on such time. While the machine is
 * suspended the clock stands still, as the monotonic clock does.
 */
import type { LeaseRecord } from "../../core/index.ts";
import type { Env } from "../../env/index.ts";
import { type Boot, isSameBoot } from "./boot.ts";
import type { ClockReply } from "./protocol.ts";

/** Records up to `version` were written before: instants later than `markMs` are `byMs` later. */
interface EpochEnd {
  readonly version: number;
  readonly markMs: number;
  readonly byMs: number;
}

interface ClockState {
  readonly bootId: string;
  /** Store time minus the machine's monotonic clock, in whole milliseconds. */
  readonly offsetMs: number;
  readonly ends: readonly EpochEnd[];
}

/** The clock as the store keeps it, and the mark that it begins with; null when it is of this boot already. */
export function nextClock(
  stored: ClockReply,
  env: Env,
  boot: Boot,
): { readonly clock: string; readonly markMs: number } | null {
  const last = stored.clock === null ? null : parseClock(stored.clock);
  if (last !== null && isSameBoot(last.bootId, boot.id)) return null;
  const { markMs, version } = stored;
  const startMs = Math.max(markMs, Math.floor(env.wallMs()));
  const ends = last === null ? [] : [...last.ends, { version, markMs, byMs: startMs - markMs }];
  // Rounded up: the first reading must not be a fraction before the start.
  const offsetMs = Math.ceil(startMs - (env.monotonicMs() - boot.aheadMs));
  const state: ClockState = { bootId: boot.id, offsetMs, ends };
  return { clock: JSON.stringify(state), markMs: startMs };
}

export class StoreClock {
  readonly #offsetMs: number;
  readonly #ends: readonly EpochEnd[];
  readonly #env: Env;

  constructor(clock: string, env: Env, boot: Boot) {
    const { offsetMs, ends } = parseClock(clock);
    this.#offsetMs = offsetMs - boot.aheadMs;
    this.#ends = ends;
    this.#env = env;
  }

  now(): number {
    return Math.floor(this.#offsetMs + this.#env.monotonicMs());
  }

  /** A record of an earlier epoch in terms of this one. */
  translate(record: LeaseRecord, version: number): LeaseRecord {
    if (version > (this.#ends.at(-1)?.version ?? 0)) return record;
    const { breakAtMs, handoff } = record;
    return {
      ...record,
      expiresAtMs: this.#instant(record.expiresAtMs, version),
      breakAtMs: breakAtMs === null ? null : this.#instant(breakAtMs, version),
      handoff:
        handoff === null ? null : { ...handoff, deadlineMs: this.#instant(handoff.deadlineMs, version) },
    };
  }

  /** Each step keeps the order of instants, so what ended before something else still does. */
  #instant(instantMs: number, version: number): number {
    let translated = instantMs;
    for (const end of this.#ends) {
      if (version <= end.version && translated > end.markMs)
        translated = Math.min(translated + end.byMs, Number.MAX_SAFE_INTEGER);
    }
    return translated;
  }
}

/** Only of what was read with its digest. */
function parseClock(text: string): ClockState {
  return JSON.parse(text) as ClockState;
}
