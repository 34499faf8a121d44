/**
 * Ranges of seeds over several threads. The result is the same as with one: ranges are merged in their
 * order, whichever thread ran them and whichever was ready first.
 */
import { Worker } from "node:worker_threads";
import { type CampaignSummary, mergeSummaries } from "@solehold/simulator";
import { RANGE_SEEDS, runRange, type SeedRange } from "./seed-range.ts";

export interface WorkerPoolOptions extends Omit<SeedRange, "firstSeed"> {
  readonly workers: number;
  /** Asked before each range is given out; with what is done so far, in any order. */
  readonly isOver: (doneSeeds: number, violations: number) => boolean;
  /** Called between ranges when this thread does the work: signals and output need a turn of the loop. */
  readonly yieldToEventLoop: () => Promise<void>;
}

interface Answer {
  readonly summary?: CampaignSummary;
  readonly failure?: string;
}

export async function runSeeds(options: WorkerPoolOptions): Promise<CampaignSummary> {
  const { workers, seeds, isOver, yieldToEventLoop, ...limits } = options;
  const parts: CampaignSummary[] = [];
  let next = 0;
  let [doneSeeds, violations] = [0, 0];
  const work = async (run: (range: SeedRange) => Promise<CampaignSummary>): Promise<void> => {
    while (next * RANGE_SEEDS < seeds && (next === 0 || !isOver(doneSeeds, violations))) {
      const index = next;
      next += 1;
      const firstSeed = index * RANGE_SEEDS + 1;
      const part = await run({
        ...limits,
        firstSeed,
        seeds: Math.min(RANGE_SEEDS, seeds - index * RANGE_SEEDS),
      });
      parts[index] = part;
      doneSeeds += part.seeds;
      violations += part.violations;
    }
  };
  if (workers === 1) {
    await work(async (range) => {
      await yieldToEventLoop();
      return await runRange(range);
    });
  } else await Promise.all(Array.from({ length: workers }, () => withThread(work)));
  return mergeSummaries(parts, limits.faults);
}

async function withThread(
  work: (run: (range: SeedRange) => Promise<CampaignSummary>) => Promise<void>,
): Promise<void> {
  const thread = new Worker(new URL("./worker.js", import.meta.url));
  try {
    await work((range) => ask(thread, range));
  } finally {
    await thread.terminate();
  }
}

function ask(thread: Worker, range: SeedRange): Promise<CampaignSummary> {
  return new Promise((resolve, reject) => {
    const settle = ({ summary, failure }: Answer): void => {
      thread.off("message", settle);
      thread.off("error", reject);
      if (summary !== undefined) resolve(summary);
      else reject(new Error(`a simulation thread failed: ${failure ?? "no reason given"}`));
    };
    thread.on("message", settle);
    thread.on("error", reject);
    thread.postMessage(range);
  });
}
