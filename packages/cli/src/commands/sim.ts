/** `solehold sim`: the real code in a simulated world, seed after seed, and the proof that the checks bite. */
import type { CampaignSummary, ClockRegime, Entry, Fault, RunOptions, Tier } from "@solehold/simulator";
import type { Command, Invocation } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

const DEFAULT_SEEDS = { core: 20_000, full: 1_000 } as const;
const PROGRESS_EVERY_MS = 500;
const MINUTE_MS = 60_000;

export const command: Command = {
  name: "sim",
  summary: "Simulate the lease code with faults, by seed",
  usage: "[options]",
  positionals: [],
  trailing: "none",
  options: {
    seeds: { type: "value", placeholder: "N", help: "how many seeds (default 1000, or 20000 in tier core)" },
    seed: { type: "value", placeholder: "N", help: "this one seed, with its time-line (env DST_SEED)" },
    tier: {
      type: "value",
      choices: ["core", "full"],
      help: "the pure core, or the real async code (default full)",
    },
    clocks: {
      type: "value",
      choices: ["bounded", "unbounded"],
      help: "rates within the drift bound, or not (default bounded)",
    },
    faults: { type: "value", placeholder: "LIST", help: "only these faults, separated by commas" },
    through: {
      type: "value",
      choices: ["library", "server"],
      help: "with --seed: without or through servers, whatever the seed draws",
    },
    workers: {
      type: "value",
      placeholder: "N",
      help: "threads (default: one a core); the result is the same",
    },
    minutes: { type: "value", placeholder: "N", help: "go on for so many minutes in place of --seeds" },
    "planted-bugs": {
      type: "flag",
      help: "plant every known mistake and show after how many seeds it is found",
    },
    save: {
      type: "value",
      placeholder: "FILE",
      help: "with --seed: shrink the failure and keep it as a case for the tests",
    },
    ...COMMON_OPTIONS,
  },
  notes: [
    "Exit code 1 when a promise was broken, a planted bug was not found, two runs of a seed differed, or a large run (1000 seeds, 10000 in tier core) never reached one of the situations that it must reach.",
  ],
  examples: [
    { line: "solehold sim --seeds 5000 --json", what: "five thousand worlds" },
    { line: "solehold sim --seed 40", what: "one world again, with its time-line" },
    { line: "solehold sim --planted-bugs", what: "show that the checks can fail" },
  ],
  run,
};

async function run(invocation: Invocation): Promise<number> {
  if (invocation.flags.has("planted-bugs")) return await plantedBugs(invocation);
  const seed = invocation.values.seed ?? invocation.io.env.DST_SEED;
  if (seed === undefined || seed === "") return await manySeeds(invocation);
  return await oneSeed(invocation, await number(seed, "seed"));
}

async function number(text: string, name: string): Promise<number> {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(value)) return value;
  const { usageFailure } = await import("../failure.ts");
  throw usageFailure(`--${name} must be a whole number, got ${JSON.stringify(text)}`);
}

async function limitsOf({ values }: Invocation): Promise<Pick<RunOptions, "clocks" | "faults">> {
  const { FAULTS } = await import("@solehold/simulator");
  const given = values.faults === undefined ? null : values.faults.split(",").filter((name) => name !== "");
  const wrong = given?.find((name) => !(FAULTS as readonly string[]).includes(name));
  if (wrong !== undefined) {
    const { usageFailure } = await import("../failure.ts");
    throw usageFailure(`--faults knows no '${wrong}': use some of ${FAULTS.join(", ")}`);
  }
  return {
    ...(values.clocks === undefined ? {} : { clocks: values.clocks as ClockRegime }),
    ...(given === null ? {} : { faults: given as readonly Fault[] }),
  };
}

function tierOf({ values }: Invocation): Tier {
  return values.tier === "core" ? "core" : "full";
}

async function oneSeed(invocation: Invocation, seed: number): Promise<number> {
  const { regressionOf, report, runOf, shrink } = await import("@solehold/simulator");
  const { io, flags, values } = invocation;
  const { theGateway } = await import("../simulation/seed-range.ts");
  const run = runOf(tierOf(invocation));
  const options: RunOptions = {
    seed,
    ...(await limitsOf(invocation)),
    ...(tierOf(invocation) === "full" ? { gateway: await theGateway() } : {}),
    ...(values.through === undefined ? {} : { entry: values.through as Entry }),
  };
  const result = await run({ ...options, record: "yes" });
  if (result.violation !== null && values.save !== undefined) {
    const { writeFileSync } = await import("node:fs");
    const kept = regressionOf(result.violation.message, null, options, await shrink(run, options));
    writeFileSync(values.save, `${JSON.stringify(kept, null, 2)}\n`);
  }
  const { tier, violation, hash, events } = result;
  io.stdout.write(
    flags.has("json")
      ? `${JSON.stringify({ seed, tier, violation, hash, events })}\n`
      : `${report(result)}\n`,
  );
  return violation === null ? 0 : 1;
}

async function manySeeds(invocation: Invocation): Promise<number> {
  const { realWait } = await import("@solehold/simulator");
  const { realEnv } = await import("solehold");
  const { runSeeds } = await import("../simulation/crew.ts");
  const { values, io } = invocation;
  const tier = tierOf(invocation);
  const minutes = values.minutes === undefined ? null : await number(values.minutes, "minutes");
  const seeds = values.seeds === undefined ? DEFAULT_SEEDS[tier] : await number(values.seeds, "seeds");
  const startedMs = realEnv.monotonicMs();
  const elapsedMs = (): number => realEnv.monotonicMs() - startedMs;
  let shownMs = 0;
  const show = (done: number, violations: number): void => {
    if (!io.stderr.isTTY || elapsedMs() - shownMs < PROGRESS_EVERY_MS) return;
    shownMs = elapsedMs();
    io.stderr.write(`\r${done} seeds, ${violations} violations `);
  };
  const summary = await runSeeds({
    tier,
    seeds: minutes === null ? Math.max(1, seeds) : Number.MAX_SAFE_INTEGER,
    workers: await workersOf(values.workers),
    ...(await limitsOf(invocation)),
    isOver: (done, violations) => {
      show(done, violations);
      return minutes !== null && elapsedMs() > minutes * MINUTE_MS;
    },
    breathe: realWait,
  });
  if (io.stderr.isTTY) io.stderr.write("\r");
  return await tell(invocation, summary, elapsedMs());
}

async function workersOf(text: string | undefined): Promise<number> {
  const { availableParallelism } = await import("node:os");
  return text === undefined ? availableParallelism() : Math.max(1, await number(text, "workers"));
}

async function tell(invocation: Invocation, summary: CampaignSummary, elapsedMs: number): Promise<number> {
  const { report } = await import("@solehold/simulator");
  const { io, flags } = invocation;
  const { seeds, tier, violations, sometimes, missed, failures, nondeterministic, givenUp } = summary;
  const seedsPerMinute = Math.round((seeds / Math.max(1, elapsedMs)) * MINUTE_MS);
  const never = Object.entries(sometimes).filter(([, count]) => count === 0);
  if (flags.has("json")) {
    const failed = failures.map(({ seed, violation }) => ({ seed, ...violation }));
    const document = {
      seeds,
      tier,
      violations,
      sometimes,
      missed,
      seedsPerMinute,
      nondeterministic,
      givenUp,
      failures: failed,
    };
    io.stdout.write(`${JSON.stringify(document)}\n`);
  } else {
    for (const failure of failures) io.stdout.write(`${report(failure)}\n\n`);
    for (const [situation, count] of Object.entries(sometimes))
      io.stdout.write(`${String(count).padStart(8)}  ${situation}\n`);
    io.stdout.write(`${seeds} seeds, ${violations} violations, ${seedsPerMinute} seeds a minute\n`);
    if (nondeterministic.length > 0)
      io.stdout.write(`FAILED: two runs differed for the seeds ${nondeterministic.join(", ")}\n`);
    if (missed.length > 0) io.stdout.write(`FAILED: never reached in ${seeds} seeds: ${missed.join("; ")}\n`);
    else if (never.length > 0)
      io.stdout.write(
        `not reached, in a run that is too small to expect it: ${never.map(([name]) => name).join("; ")}\n`,
      );
  }
  return violations === 0 && nondeterministic.length === 0 && missed.length === 0 ? 0 : 1;
}

async function plantedBugs({ io, flags }: Invocation): Promise<number> {
  const { PLANTED_BUGS, SERVER_BUGS, searchBug } = await import("@solehold/simulator");
  const { theGateway } = await import("../simulation/seed-range.ts");
  const gateway = await theGateway();
  const found: { bug: string; oracle: string | null; foundAtSeed: number | null; seedsTried: number }[] = [];
  for (const bug of [...PLANTED_BUGS, ...SERVER_BUGS]) {
    const { oracle, foundAtSeed, seedsTried } = await searchBug(bug, gateway);
    found.push({ bug: bug.name, oracle, foundAtSeed, seedsTried });
    if (!flags.has("json")) {
      const where =
        oracle === null ? `NOT FOUND in ${seedsTried} seeds` : `${oracle}, after ${seedsTried} seeds`;
      io.stdout.write(`${bug.name.padEnd(32)}${where}\n`);
    }
  }
  if (flags.has("json")) io.stdout.write(`${JSON.stringify(found)}\n`);
  return found.every(({ oracle }) => oracle !== null) ? 0 : 1;
}
