/** The real code in a simulated world, seed after seed, and the proof that the checks bite. */
import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import {
  type CampaignSummary,
  type ClockRegime,
  type Entry,
  FAULTS,
  type Fault,
  PLANTED_BUGS,
  type RunOptions,
  realWait,
  regressionOf,
  report,
  runFull,
  SERVER_BUGS,
  searchBug,
  shrink,
} from "@solehold/simulator";
import { given, realEnv } from "solehold/internal";
import type { Invocation } from "../command.ts";
import { EXIT, usageFailure } from "../failure.ts";
import { wholeOption } from "../parse/option-values.ts";
import { theGateway } from "./sim/seed-range.ts";
import { runSeeds } from "./sim/worker-pool.ts";

const DEFAULT_SEEDS = 1_000;
const PROGRESS_EVERY_MS = 500;
const MINUTE_MS = 60_000;

export async function sim(invocation: Invocation): Promise<number> {
  if (invocation.flags.has("planted-bugs")) return await plantedBugs(invocation);
  const { values, io } = invocation;
  const text = values.seed ?? io.env.DST_SEED ?? "";
  const seed = text === "" ? null : wholeOption({ values: { seed: text } }, "seed", 0);
  return seed === null ? await manySeeds(invocation) : await oneSeed(invocation, seed);
}

function limitsOf({ values }: Invocation): Pick<RunOptions, "clocks" | "faults"> {
  const names = values.faults?.split(",").filter((name) => name !== "");
  const wrong = names?.find((name) => !(FAULTS as readonly string[]).includes(name));
  if (wrong !== undefined)
    throw usageFailure(`--faults knows no '${wrong}': use some of ${FAULTS.join(", ")}`);
  return given({
    clocks: values.clocks as ClockRegime | undefined,
    faults: names as readonly Fault[] | undefined,
  });
}

async function oneSeed(invocation: Invocation, seed: number): Promise<number> {
  const { io, flags, values } = invocation;
  const options: RunOptions = {
    seed,
    ...limitsOf(invocation),
    gateway: theGateway(),
    ...given({ entry: values.through as Entry | undefined }),
  };
  const result = await runFull({ ...options, record: "yes" });
  const { violation, hash, events, trace } = result;
  if (values.trace !== undefined) writeFileSync(values.trace, `${JSON.stringify(trace)}\n`);
  if (violation !== null && values.save !== undefined) {
    const kept = regressionOf(violation.message, null, options, await shrink(options));
    writeFileSync(values.save, `${JSON.stringify(kept, null, 2)}\n`);
  }
  const document = { seed, violation, hash, events };
  io.stdout.write(`${flags.has("json") ? JSON.stringify(document) : report(result)}\n`);
  return violation === null ? EXIT.ok : EXIT.error;
}

async function manySeeds(invocation: Invocation): Promise<number> {
  const { io } = invocation;
  const minutes = wholeOption(invocation, "minutes", 0);
  const seeds = wholeOption(invocation, "seeds", 0) ?? DEFAULT_SEEDS;
  const startedMs = realEnv.monotonicMs();
  const elapsedMs = (): number => realEnv.monotonicMs() - startedMs;
  let shownMs = 0;
  const show = (done: number, violations: number): void => {
    if (!io.stderr.isTTY || elapsedMs() - shownMs < PROGRESS_EVERY_MS) return;
    shownMs = elapsedMs();
    io.stderr.write(`\r${done} seeds, ${violations} violations `);
  };
  const summary = await runSeeds({
    seeds: minutes === null ? Math.max(1, seeds) : Number.MAX_SAFE_INTEGER,
    workers: Math.max(1, wholeOption(invocation, "workers", 0) ?? availableParallelism()),
    ...limitsOf(invocation),
    isOver: (done, violations) => {
      show(done, violations);
      return minutes !== null && elapsedMs() > minutes * MINUTE_MS;
    },
    yieldToEventLoop: realWait,
  });
  if (io.stderr.isTTY) io.stderr.write("\r");
  printSummary(invocation, summary, Math.round((summary.seeds / Math.max(1, elapsedMs())) * MINUTE_MS));
  const { violations, nondeterministic, missed } = summary;
  return violations === 0 && nondeterministic.length === 0 && missed.length === 0 ? EXIT.ok : EXIT.error;
}

/** Not through printAnswer: a time-line has its own line breaks. */
function printSummary({ io, flags }: Invocation, summary: CampaignSummary, seedsPerMinute: number): void {
  const { seeds, violations, sometimes, missed, failures, nondeterministic, givenUp } = summary;
  if (flags.has("json")) {
    const counts = { seeds, violations, sometimes, missed, seedsPerMinute, nondeterministic, givenUp };
    const failed = failures.map(({ seed, violation }) => ({ seed, ...violation }));
    io.stdout.write(`${JSON.stringify({ ...counts, failures: failed })}\n`);
    return;
  }
  const reached = Object.entries(sometimes);
  const never = reached.filter(([, count]) => count === 0).map(([name]) => name);
  const lines = [
    ...failures.map((failure) => `${report(failure)}\n`),
    ...reached.map(([situation, count]) => `${String(count).padStart(8)}  ${situation}`),
    `${seeds} seeds, ${violations} violations, ${seedsPerMinute} seeds a minute`,
  ];
  if (nondeterministic.length > 0)
    lines.push(`FAILED: two runs differed for the seeds ${nondeterministic.join(", ")}`);
  if (missed.length > 0) lines.push(`FAILED: never reached in ${seeds} seeds: ${missed.join("; ")}`);
  else if (never.length > 0)
    lines.push(`not reached, in a run that is too small to expect it: ${never.join("; ")}`);
  io.stdout.write(`${lines.join("\n")}\n`);
}

async function plantedBugs({ io, flags }: Invocation): Promise<number> {
  const gateway = theGateway();
  const found: { bug: string; oracle: string | null; foundAtSeed: number | null; seedsTried: number }[] = [];
  for (const bug of [...PLANTED_BUGS, ...SERVER_BUGS]) {
    const { oracle, foundAtSeed, seedsTried } = await searchBug(bug, gateway);
    found.push({ bug: bug.name, oracle, foundAtSeed, seedsTried });
    if (flags.has("json")) continue;
    const where =
      oracle === null ? `NOT FOUND in ${seedsTried} seeds` : `${oracle}, after ${seedsTried} seeds`;
    io.stdout.write(`${bug.name.padEnd(32)}${where}\n`);
  }
  if (flags.has("json")) io.stdout.write(`${JSON.stringify(found)}\n`);
  return found.every(({ oracle }) => oracle !== null) ? EXIT.ok : EXIT.error;
}
