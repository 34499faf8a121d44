/** Every state of small worlds, on the shipped decision and validity functions. */
import {
  EXPLORABLE_BUGS,
  EXPLORE_WORLDS,
  type ExploreResult,
  type ExploreWorld,
  type ExploreWorldName,
  explore as exploreWorld,
} from "@solehold/simulator";
import { realEnv } from "solehold/internal";
import type { Invocation } from "../command.ts";
import { EXIT, usageFailure } from "../failure.ts";
import { printAnswer } from "../format/answer.ts";

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

interface Explored extends ExploreResult {
  readonly world: ExploreWorldName;
  readonly bug: string | null;
}

export async function explore(invocation: Invocation): Promise<number> {
  const { values, flags } = invocation;
  const sizes = sizesOf(invocation);
  const chosen = values.world as ExploreWorldName | undefined;
  const all = Object.keys(EXPLORE_WORLDS) as ExploreWorldName[];
  const bugs = Object.entries(EXPLORABLE_BUGS).filter(([name]) => flags.has("bugs") || name === values.bug);
  const jobs =
    bugs.length === 0
      ? (chosen === undefined ? all : [chosen]).map((world) => ({ world, bug: null }))
      : bugs.map(([bug, { world }]) => ({ world: chosen ?? world, bug }));
  const startedMs = realEnv.monotonicMs();
  const explored = jobs.map(({ world, bug }) => exploreOne(invocation, world, bug, sizes));
  if (invocation.io.stderr.isTTY) invocation.io.stderr.write("\r");
  const broken = explored.filter(({ violation }) => violation !== null);
  if (flags.has("bugs")) {
    printBugs(invocation, explored);
    return broken.length === explored.length ? EXIT.ok : EXIT.error;
  }
  printWorlds(invocation, explored, Math.max(1, realEnv.monotonicMs() - startedMs) / SECOND_MS);
  return broken.length === 0 ? EXIT.ok : EXIT.error;
}

function exploreOne(
  { io }: Invocation,
  world: ExploreWorldName,
  bug: string | null,
  sizes: Partial<ExploreWorld>,
): Explored {
  const rules = bug === null ? {} : (EXPLORABLE_BUGS[bug]?.rules ?? {});
  const onLevel = ({ states, depth }: { readonly states: number; readonly depth: number }): void => {
    if (io.stderr.isTTY) io.stderr.write(`\r${world}: ${states} states, depth ${depth} `);
  };
  return { world, bug, ...exploreWorld({ ...EXPLORE_WORLDS[world], ...sizes }, { rules, onLevel }) };
}

function printWorlds(invocation: Invocation, explored: readonly Explored[], seconds: number): void {
  const states = explored.reduce((sum, each) => sum + each.states, 0);
  const statesPerSecond = Math.round(states / seconds);
  const broken = explored.filter(({ violation }) => violation !== null);
  const [first] = broken;
  printAnswer(invocation, {
    document: () => ({
      states,
      violations: broken.length,
      depth: Math.max(...explored.map((each) => each.depth)),
      statesPerSecond,
      worlds: explored.map((each) => ({ world: each.world, states: each.states, depth: each.depth })),
      ...(first === undefined ? {} : { violation: { world: first.world, ...first.violation } }),
    }),
    lines: () => [
      ...explored.flatMap(({ world, states: found, depth, violation }) => [
        `${world.padEnd(8)}${String(found).padStart(9)} states, depth ${String(depth).padStart(2)}: ${violation === null ? "all promises hold" : `${violation.oracle} is broken`}`,
        ...(violation?.trace ?? []).map((action, index) => `${String(index + 1).padStart(4)}  ${action}`),
      ]),
      `${states} states, ${statesPerSecond} a second`,
    ],
  });
}

function printBugs(invocation: Invocation, explored: readonly Explored[]): void {
  printAnswer(invocation, {
    document: () =>
      explored.map(({ bug, world, violation, depth, states }) => {
        const oracle = violation?.oracle ?? null;
        return { bug, world, oracle, depth, states };
      }),
    lines: () => [
      "| planted mistake | world | broken promise | depth |",
      "|---|---|---|---|",
      ...explored.map(
        ({ bug, world, violation, depth }) =>
          `| ${bug} | ${world} | ${violation?.oracle ?? "NOT FOUND"} | ${depth} |`,
      ),
    ],
  });
}

function sizesOf({ values }: Invocation): Partial<ExploreWorld> {
  const sizes: Record<string, number> = {};
  for (const [option, { field, least, most }] of Object.entries(SIZES)) {
    const text = values[option];
    if (text === undefined) continue;
    if (values.world === undefined)
      throw usageFailure(`--${option} needs --world: say which world to change`);
    if (!/^\d$/.test(text) || Number(text) < least || Number(text) > most) {
      const range = `a number from ${least} to ${most}`;
      throw usageFailure(`--${option} must be ${range}, got ${JSON.stringify(text)}`);
    }
    sizes[field] = Number(text);
  }
  return sizes;
}
