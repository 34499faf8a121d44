/** Commands that look for mistakes in Solehold itself. */
import { type Command, choice, flag, value } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

/** `solehold sim`: the real code in a simulated world, seed after seed, and the proof that the checks bite. */
export const sim: Command = {
  name: "sim",
  summary: "Simulate the lease code with faults, by seed",
  options: {
    seeds: value("N", "how many seeds (default 1000)"),
    seed: value("N", "this one seed, with its time-line (env DST_SEED)"),
    clocks: choice(["bounded", "unbounded"], "rates within the drift bound, or not (default bounded)"),
    faults: value("LIST", "only these faults, separated by commas"),
    through: choice(
      ["library", "server"],
      "with --seed: without or through servers, whatever the seed draws",
    ),
    workers: value("N", "threads (default: one a core); the result is the same"),
    minutes: value("N", "go on for so many minutes in place of --seeds"),
    "planted-bugs": flag("plant every known mistake and show after how many seeds it is found"),
    trace: value("FILE", "with --seed: write the run as JSON, for the playground"),
    save: value("FILE", "with --seed: shrink the failure and keep it as a case for the tests"),
    ...COMMON_OPTIONS,
  },
  notes: [
    "Exit code 1 when a promise was broken, a planted bug was not found, two runs of a seed differed, or a large run (1000 seeds) never reached one of the situations that it must reach.",
  ],
  examples: {
    "solehold sim --seeds 5000 --json": "five thousand worlds",
    "solehold sim --seed 40": "one world again, with its time-line",
    "solehold sim --seed 40 --trace run.json": "the same world as a picture: open run.json in the playground",
    "solehold sim --planted-bugs": "show that the checks can fail",
  },
  action: async () => (await import("../actions/sim.ts")).sim,
};

/** Repeated here so that help and completion need not load the simulator; a test compares. */
export const BUG_CHOICES: readonly string[] = `
  margin-zero stamp-from-reply takeover-by-latest stamp-from-earliest no-compare-and-swap delete-on-release
  same-fence-on-regrant renew-expired renew-revives-released release-by-key revoke-frees-at-once release-before-stopping
  constant-nonce collect-at-once collect-without-floor expired-stays-taken handoff-for-anybody break-ignored
  guard-off min-hold-ends-with-release lock-delay-ignored slot-taken-from-its-holder
`
  .trim()
  .split(/\s+/);
export const WORLD_CHOICES = [
  "clocks",
  "late",
  "both",
  "guard",
  "handoff",
  "closed",
  "crowd",
  "keys",
  "slots",
] as const;

/** `solehold explore`: every state of small worlds, on the shipped decision and validity functions. */
export const explore: Command = {
  name: "explore",
  summary: "Walk through all interleavings of small worlds",
  options: {
    world: choice(WORLD_CHOICES, "only this world (default all)"),
    bug: choice(BUG_CHOICES, "plant this mistake and show the shortest way to it"),
    bugs: flag("plant every mistake, one after another"),
    clients: value("N", "with --world: so many clients"),
    keys: value("N", "with --world: so many keys"),
    ttl: value("N", "with --world: a lease lasts so many ticks"),
    lag: value("N", "with --world: clocks are off by so many ticks at most"),
    doubt: value("N", "with --world: the store's time is known within N ticks"),
    late: value("N", "with --world: so many requests may come too late"),
    ...COMMON_OPTIONS,
  },
  notes: ["Exit code 1 when a promise is broken, or when a planted mistake is not found."],
  examples: {
    "solehold explore": "all worlds: all promises hold",
    "solehold explore --bug margin-zero": "the shortest trace to a false belief",
    "solehold explore --world crowd --ttl 4": "a larger world",
  },
  action: async () => (await import("../actions/explore.ts")).explore,
};
