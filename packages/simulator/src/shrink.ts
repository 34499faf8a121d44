/**
 * Makes a failing run smaller: which of its faults and operations are really needed? Delta debugging over
 * the named draws that happened. A draw that is taken away leaves all others as they were, so most of the
 * run stays what it was.
 */
import { runFull } from "./full/run.ts";
import type { RunOptions, RunResult } from "./result.ts";

export interface ShrunkCase {
  /** The draws that are needed; with fewer the promise holds. */
  readonly needed: readonly string[];
  readonly result: RunResult;
  readonly runs: number;
}

const MOST_RUNS = 400;

/** The same oracle must object: another failure on the way is another case. */
export async function shrink(options: RunOptions): Promise<ShrunkCase> {
  const first = await runFull(options);
  if (first.violation === null)
    throw new RangeError(`seed ${options.seed} breaks no promise: nothing to shrink`);
  const { oracle } = first.violation;
  let runs = 1;
  const fails = async (names: readonly string[]): Promise<boolean> => {
    runs += 1;
    const { violation } = await runFull({ ...options, allowed: new Set(names) });
    return violation?.oracle === oracle;
  };
  let needed = first.fired;
  let parts = 2;
  while (needed.length > 1 && runs < MOST_RUNS) {
    const size = Math.ceil(needed.length / parts);
    let smaller: readonly string[] | null = null;
    for (let start = 0; start < needed.length && smaller === null && runs < MOST_RUNS; start += size) {
      const without = [...needed.slice(0, start), ...needed.slice(start + size)];
      if (await fails(without)) smaller = without;
    }
    if (smaller !== null) {
      needed = smaller;
      parts = Math.max(2, parts - 1);
    } else if (size === 1) break;
    else parts = Math.min(needed.length, parts * 2);
  }
  if (needed.length === 1 && (await fails([]))) needed = [];
  const result = await runFull({ ...options, allowed: new Set(needed), record: "yes" });
  return { needed, result, runs };
}
