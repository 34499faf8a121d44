/** `solehold explore`: every state of a small world, on the shipped decision and validity functions. */
import type { Command, Invocation } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

/** Repeated here so that help and completion need not load the library; a test compares. */
export const BUG_CHOICES = [
  "margin-zero",
  "stamp-from-reply",
  "no-compare-and-swap",
  "delete-on-release",
  "revoke-frees-at-once",
  "same-fence-on-regrant",
] as const;

const SECOND_MS = 1_000;

export const command: Command = {
  name: "explore",
  summary: "Walk through all interleavings of a small world",
  usage: "[options]",
  positionals: [],
  trailing: "none",
  options: {
    bug: { type: "value", choices: BUG_CHOICES, help: "plant this mistake and show the shortest way to it" },
    ticks: { type: "value", placeholder: "N", help: "the world ends after so many ticks (default 5)" },
    clients: { type: "value", placeholder: "N", help: "2 or 3 clients (default 2)" },
    ...COMMON_OPTIONS,
  },
  notes: ["Exit code 1 when a promise is broken."],
  examples: [
    { line: "solehold explore", what: "about a million states: all promises hold" },
    { line: "solehold explore --bug margin-zero", what: "the shortest trace to two believers" },
  ],
  run,
};

async function run({ values, flags, io }: Invocation): Promise<number> {
  const { DEFAULT_LIMITS, EXPLORABLE_BUGS, explore } = await import("solehold/sim");
  const { realEnv } = await import("solehold");
  const limits = {
    ...DEFAULT_LIMITS,
    ticks: await small(values.ticks, "ticks", DEFAULT_LIMITS.ticks),
    clients: await small(values.clients, "clients", DEFAULT_LIMITS.clients),
  };
  const startedMs = realEnv.monotonicMs();
  const rules = values.bug === undefined ? {} : (EXPLORABLE_BUGS[values.bug]?.rules ?? {});
  const { states, depth, violation } = explore(limits, rules);
  const seconds = Math.max(1, realEnv.monotonicMs() - startedMs) / SECOND_MS;
  const statesPerSecond = Math.round(states / seconds);
  const violations = violation === null ? 0 : 1;
  if (flags.has("json")) {
    const found = violation === null ? {} : { violation };
    io.stdout.write(`${JSON.stringify({ states, violations, depth, statesPerSecond, ...found })}\n`);
  } else {
    io.stdout.write(`${states} states, depth ${depth}, ${statesPerSecond} states a second: `);
    const trace =
      violation?.trace.map((action, index) => `${String(index + 1).padStart(4)}  ${action}`) ?? [];
    io.stdout.write(
      violation === null ? "all promises hold\n" : `${violation.oracle} is broken\n${trace.join("\n")}\n`,
    );
  }
  return violations;
}

async function small(text: string | undefined, name: string, standard: number): Promise<number> {
  if (text === undefined) return standard;
  const value = /^[1-9]$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isNaN(value)) return value;
  const { usageFailure } = await import("../failure.ts");
  throw usageFailure(`--${name} must be a number from 1 to 9, got ${JSON.stringify(text)}`);
}
