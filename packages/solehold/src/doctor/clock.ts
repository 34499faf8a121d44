/**
 * The store's clock as seen from here: how far it is off (which does not matter for leases) and how fast it
 * runs (which does). Both are known only within bounds, which the answer names.
 */
import type { DriftBound } from "../core/index.ts";
import { delay, type Env } from "../env/index.ts";
import type { Finding } from "./report.ts";

/** The store's time, asked now; null when it has no clock. */
export type AskTime = () => Promise<number | null>;

interface Sample {
  readonly sentMs: number;
  readonly receivedMs: number;
  readonly wallMs: number;
  readonly storeMs: number;
}

const WINDOW_MS = 1_000;
const TRIES = 5;
const NOTABLE_OFFSET_MS = 60_000;

export async function checkClock(options: {
  readonly env: Env;
  readonly askTime: AskTime;
  readonly granularityMs: number;
  readonly drift: DriftBound;
}): Promise<Finding> {
  const { env, granularityMs, drift } = options;
  const first = await bestSample(options);
  if (first === null)
    return { status: "ok", detail: "none: leases of others end by observation of a full ttl" };
  await delay(env, WINDOW_MS);
  const second = await bestSample(options);
  if (second === null) return { status: "fail", detail: "the store gave its time once, and then no more" };
  const tripMs = (sample: Sample): number => sample.receivedMs - sample.sentMs;
  const offsetMs = second.storeMs - second.wallMs;
  const offsetErrorMs = tripMs(second) + granularityMs;
  const windowMs = middle(second) - middle(first);
  const rate = (second.storeMs - first.storeMs) / windowMs - 1;
  const rateError = (tripMs(first) / 2 + tripMs(second) / 2 + 2 * granularityMs) / windowMs;
  const detail =
    `offset ${signed(offsetMs, 0)} ms (within ${Math.ceil(offsetErrorMs)} ms), ` +
    `rate ${signed(rate * 100, 2)} % (within ${(rateError * 100).toFixed(2)} %; allowed ${drift.driftRatio * 100} %)`;
  if (Math.abs(rate) - rateError > drift.driftRatio) return { status: "fail", detail };
  return { status: Math.abs(offsetMs) > NOTABLE_OFFSET_MS ? "warn" : "ok", detail };
}

/** The quickest of a few: the shorter the trip, the better the time is known. */
async function bestSample(options: { readonly env: Env; readonly askTime: AskTime }): Promise<Sample | null> {
  const { env, askTime } = options;
  let best: Sample | null = null;
  for (let tries = 0; tries < TRIES; tries += 1) {
    const sentMs = env.monotonicMs();
    const storeMs = await askTime();
    if (storeMs === null) return null;
    const receivedMs = env.monotonicMs();
    if (best === null || receivedMs - sentMs < best.receivedMs - best.sentMs) {
      best = { sentMs, receivedMs, wallMs: env.wallMs(), storeMs };
    }
  }
  return best;
}

function middle({ sentMs, receivedMs }: Sample): number {
  return (sentMs + receivedMs) / 2;
}

function signed(value: number, digits: number): string {
  return `${value < 0 ? "-" : "+"}${Math.abs(value).toFixed(digits)}`;
}
