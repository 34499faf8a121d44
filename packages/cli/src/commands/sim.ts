/** `solehold sim`: the real code in a simulated world, seed after seed, and the proof that the checks bite. */
import { type Command, choice, flag, value } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "sim",
  summary: "Simulate the lease code with faults, by seed",
  usage: "[options]",
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
