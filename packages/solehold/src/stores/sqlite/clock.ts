/**
 * The store's clock, as support/epoch-clock.ts explains it: one time for all processes of the machine, over restarts and
 * reboots. Every commit carries the mark, the time at which it was handed over, in the same transaction as its records.
 * Versions only grow, so a record's version tells in which epoch it was written.
 */
import type { LeaseRecord } from "../../core/index.ts";
import type { Env } from "../../env/index.ts";
import type { Boot } from "../../support/boot.ts";
import { EpochClock, type EpochState, epochOf } from "../support/epoch-clock.ts";
import type { ClockReply } from "./protocol.ts";

interface ClockState {
  readonly epoch: EpochState;
  /** The last version of each earlier epoch. */
  readonly lastVersions: readonly number[];
}

/** What the store has to keep from now on, and the mark that it begins with; null when the clock is of this boot. */
export function nextClock(
  stored: ClockReply,
  env: Env,
  boot: Boot,
): { readonly clock: string; readonly markMs: number } | null {
  const last = stored.clock === null ? null : (JSON.parse(stored.clock) as ClockState);
  const epoch = epochOf(last?.epoch ?? null, stored.markMs, env, boot);
  if (epoch === last?.epoch) return null;
  const lastVersions = last === null ? [] : [...last.lastVersions, stored.version];
  const state: ClockState = { epoch, lastVersions };
  return { clock: JSON.stringify(state), markMs: epoch.startMs };
}

export class StoreClock {
  readonly #clock: EpochClock;
  readonly #lastVersions: readonly number[];

  constructor(clock: string, env: Env, boot: Boot) {
    const { epoch, lastVersions } = JSON.parse(clock) as ClockState;
    this.#clock = new EpochClock(epoch, env, boot);
    this.#lastVersions = lastVersions;
  }

  now(): number {
    return this.#clock.now();
  }

  /** A record of an earlier epoch in terms of this one. */
  translate(record: LeaseRecord, version: number): LeaseRecord {
    const before = this.#lastVersions.filter((last) => version > last).length;
    return this.#clock.translate(record, before + 1);
  }
}
