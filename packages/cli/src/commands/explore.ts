/** `solehold explore`: every state of small worlds, on the shipped decision and validity functions. */
import type { ExploreResult, ExploreWorld, ExploreWorldName } from "@solehold/simulator";
import type { Command, Invocation } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

/** Repeated here so that help and completion need not load the library; a test compares. */
export const BUG_CHOICES = [
  "margin-zero",
  "stamp-from-reply",
  "takeover-by-latest",
  "stamp-from-earliest",
  "no-compare-and-swap",
  "delete-on-release",
  "same-fence-on-regrant",
  "renew-expired",
  "renew-revives-released",
  "release-by-key",
  "revoke-frees-at-once",
  "release-before-stopping",
  "constant-nonce",
  "collect-at-once",
  "collect-without-floor",
  "expired-stays-taken",
  "handoff-for-anybody",
  "break-ignored",
  "guard-off",
] as const;
export const WORLD_CHOICES = ["clocks", "late", "both", "guard", "handoff", "crowd", "keys"] as const;

/** Sizes that can be changed, by option, and how far: the ways to exchange names grow fast. */
const SIZES = {
  clients: { field: "clients", least: 1, most: 4 },
  keys: { field: "keys", least: 1, most: 3 },
  ttl: { field: "ttlTicks", least: 1, most: 9 },
  lag: { field: "lag", least: 0, most: 4 },
  doubt: { field: "doubt", least: 0, most: 4 },
  late: { field: "late", least: 0, most: 4 },
} as const;
const SECOND_MS = 1_000;

export const command: Command = {
  name: "explore",
  summary: "Walk through all interleavings of small worlds",
  usage: "[options]",
  positionals: [],
  trailing: "none",
  options: {
    world: { type: "value", choices: WORLD_CHOICES, help: "only this world (default all)" },
    bug: { type: "value", choices: BUG_CHOICES, help: "plant this mistake and show the shortest way to it" },
    bugs: { type: "flag", help: "plant every mistake, one after another" },
    clients: { type: "value", placeholder: "N", help: "with --world: so many clients" },
    keys: { type: "value", placeholder: "N", help: "with --world: so many keys" },
    ttl: { type: "value", placeholder: "N", help: "with --world: a lease lasts so many ticks" },
    lag: { type: "value", placeholder: "N", help: "with --world: clocks are off by so many ticks at most" },
    doubt: {
      type: "value",
      placeholder: "N",
      help: "with --world: the store's time is known within N ticks",
    },
    late: { type: "value", placeholder: "N", help: "with --world: so many requests may come too late" },
    ...COMMON_OPTIONS,
  },
  notes: ["Exit code 1 when a promise is broken, or when a planted mistake is not found."],
  examples: [
    { line: "solehold explore", what: "all worlds: all promises hold" },
    { line: "solehold explore --bug margin-zero", what: "the shortest trace to a false belief" },
    { line: "solehold explore --world crowd --ttl 4", what: "a larger world" },
  ],
  run,
};

interface Explored extends ExploreResult {
  readonly world: string;
  readonly bug: string | null;
}

async function run(invocation: Invocation): Promise<number> {
  const { EXPLORABLE_BUGS, EXPLORE_WORLDS } = await import("@solehold/simulator");
  const { values, flags } = invocation;
  const sizes = await sizesOf(invocation);
  const world = (name: ExploreWorldName): ExploreWorld => ({ ...EXPLORE_WORLDS[name], ...sizes });
  if (values.bug === undefined && !flags.has("bugs")) {
    const names = values.world === undefined ? WORLD_CHOICES : [values.world as ExploreWorldName];
    const { explored, seconds } = await exploreAll(
      invocation,
      names.map((name) => [name, null, world(name)]),
    );
    tellWorlds(invocation, explored, seconds);
    return explored.some(({ violation }) => violation !== null) ? 1 : 0;
  }
  const chosen = Object.entries(EXPLORABLE_BUGS).filter(([name]) => flags.has("bugs") || name === values.bug);
  const jobs = chosen.map(([name, bug]): Job => {
    const shownIn = (values.world as ExploreWorldName | undefined) ?? bug.world;
    return [shownIn, name, world(shownIn)];
  });
  const { explored, seconds } = await exploreAll(invocation, jobs);
  if (flags.has("bugs")) {
    tellBugs(invocation, explored);
    return explored.every(({ violation }) => violation !== null) ? 0 : 1;
  }
  tellWorlds(invocation, explored, seconds);
  return explored.some(({ violation }) => violation !== null) ? 1 : 0;
}

type Job = readonly [name: ExploreWorldName, bug: string | null, world: ExploreWorld];

async function exploreAll(
  { io }: Invocation,
  jobs: readonly Job[],
): Promise<{ readonly explored: readonly Explored[]; readonly seconds: number }> {
  const { EXPLORABLE_BUGS, explore } = await import("@solehold/simulator");
  const { realEnv } = await import("solehold");
  const startedMs = realEnv.monotonicMs();
  const explored = jobs.map(([name, bug, world]): Explored => {
    const rules = bug === null ? {} : (EXPLORABLE_BUGS[bug]?.rules ?? {});
    const result = explore(world, {
      rules,
      onLevel: ({ states, depth }) => {
        if (io.stderr.isTTY) io.stderr.write(`\r${name}: ${states} states, depth ${depth} `);
      },
    });
    return { world: name, bug, ...result };
  });
  if (io.stderr.isTTY) io.stderr.write("\r");
  return { explored, seconds: Math.max(1, realEnv.monotonicMs() - startedMs) / SECOND_MS };
}

function tellWorlds({ io, flags }: Invocation, explored: readonly Explored[], seconds: number): void {
  const states = explored.reduce((sum, each) => sum + each.states, 0);
  const depth = Math.max(...explored.map((each) => each.depth));
  const statesPerSecond = Math.round(states / seconds);
  const broken = explored.filter(({ violation }) => violation !== null);
  if (flags.has("json")) {
    const [first] = broken;
    const worlds = explored.map((each) => ({ world: each.world, states: each.states, depth: each.depth }));
    const document = { states, violations: broken.length, depth, statesPerSecond, worlds };
    const found = first === undefined ? {} : { violation: { world: first.world, ...first.violation } };
    io.stdout.write(`${JSON.stringify({ ...document, ...found })}\n`);
    return;
  }
  for (const each of explored) {
    const verdict = each.violation === null ? "all promises hold" : `${each.violation.oracle} is broken`;
    io.stdout.write(
      `${each.world.padEnd(8)}${String(each.states).padStart(9)} states, depth ${String(each.depth).padStart(2)}: ${verdict}\n`,
    );
    each.violation?.trace.forEach((action, index) => {
      io.stdout.write(`${String(index + 1).padStart(4)}  ${action}\n`);
    });
  }
  io.stdout.write(`${states} states, ${statesPerSecond} a second\n`);
}

function tellBugs({ io, flags }: Invocation, explored: readonly Explored[]): void {
  if (flags.has("json")) {
    const found = explored.map(({ bug, world, violation, depth, states }) => ({
      bug,
      world,
      oracle: violation?.oracle ?? null,
      depth,
      states,
    }));
    io.stdout.write(`${JSON.stringify(found)}\n`);
    return;
  }
  io.stdout.write("| planted mistake | world | broken promise | depth |\n|---|---|---|---|\n");
  for (const { bug, world, violation, depth } of explored)
    io.stdout.write(`| ${bug} | ${world} | ${violation?.oracle ?? "NOT FOUND"} | ${depth} |\n`);
}

async function sizesOf({ values }: Invocation): Promise<Partial<ExploreWorld>> {
  const { usageFailure } = await import("../failure.ts");
  const sizes: Record<string, number> = {};
  for (const [option, { field, least, most }] of Object.entries(SIZES)) {
    const text = values[option];
    if (text === undefined) continue;
    if (values.world === undefined)
      throw usageFailure(`--${option} needs --world: say which world to change`);
    if (!/^\d$/.test(text) || Number(text) < least || Number(text) > most)
      throw usageFailure(
        `--${option} must be a number from ${least} to ${most}, got ${JSON.stringify(text)}`,
      );
    sizes[field] = Number(text);
  }
  return sizes;
}
