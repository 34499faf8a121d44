/**
 * Clocks of machines, drawn. Within bounds any two rates differ by at most the configured drift, and the
 * extremes are drawn often: a slow holder and a fast store are what breaks a margin. Out of bounds anything
 * goes.
 */
import type { SimConfig } from "../config.ts";
import type { ClockStart } from "./clock.ts";
import type { RandomStream } from "./random.ts";

const EPOCH_MS = 1_700_000_000_000;
const WALL_ERROR_MS = 600_000;

export function drawClock(config: SimConfig, random: RandomStream): ClockStart {
  return {
    monotonicMs: random.between(1_000, 1_000_000),
    wallMs: EPOCH_MS + random.between(-WALL_ERROR_MS, WALL_ERROR_MS),
    rate: drawRate(config, random),
  };
}

/** The store tells the time of its monotonic clock, which started at some wall time. */
export function drawStoreClock(config: SimConfig, random: RandomStream): ClockStart {
  const startMs = EPOCH_MS + random.between(-WALL_ERROR_MS, WALL_ERROR_MS);
  return { monotonicMs: startMs, wallMs: startMs, rate: drawRate(config, random) };
}

function drawRate(config: SimConfig, random: RandomStream): number {
  const position = random.pick([0, 1, random.fraction()]);
  const widest = config.clocks === "bounded" ? Math.sqrt(1 + config.driftRatio) : 3;
  return widest ** (position * 2 - 1);
}
