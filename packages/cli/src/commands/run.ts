/** Commands that hold a lease for as long as they run. */
import { type Command, choice, value } from "../command.ts";
import { ACQUIRE_OPTIONS, CONNECTION_OPTIONS, KEY, KEYS } from "../options.ts";
import { ON_LOSS_CHOICES } from "../run/plan.ts";

/**
 * `solehold run`: a command that works only while the lease is held. Its whole process group is dead before
 * the lease could belong to another, even if this process is stopped or killed or the store is frozen; see
 * run/supervisor.ts for how, and for what is not promised.
 */
export const run: Command = {
  name: "run",
  summary: "Run a command while holding a lease, or several",
  usage: "KEY... [options] -- CMD [ARG...]",
  positionals: KEYS,
  trailing: "required",
  options: {
    ...ACQUIRE_OPTIONS,
    holder: value("NAME", "the name of the holder (env SOLEHOLD_HOLDER; default HOST:PID:RANDOM)"),
    "on-loss": choice(ON_LOSS_CHOICES, "SIGTERM then SIGKILL; SIGKILL alone; or let it go on (default term)"),
    grace: value(
      "DURATION",
      "between SIGTERM and SIGKILL, at most a third of --ttl (default a fifth, at most 5s)",
    ),
    ...CONNECTION_OPTIONS,
  },
  notes: [
    `The command gets SOLEHOLD_KEY, SOLEHOLD_SLOT, SOLEHOLD_FENCE and SOLEHOLD_EXPIRES_AT in its environment,
and this process's stdin, stdout, stderr and signals. Its exit code is passed back (128 + the signal's number if
one ended it). Give the fence to whatever the command writes to.`,
    `With several KEYs it holds all of them or none, whatever the order in which others name them, and the command is
stopped when any of them is lost. SOLEHOLD_KEY, _SLOT and _FENCE are then the first one's, SOLEHOLD_KEY_2, SOLEHOLD_SLOT_2
and SOLEHOLD_FENCE_2 the second one's, and so on; SOLEHOLD_EXPIRES_AT is when the first of them ends. --wait is for all
together, the other options are for each.`,
    `Exit codes besides the command's own: 3 when another holds the lease after --wait, 4 when the lease was
lost, 126 or 127 when the command cannot be run or found.`,
  ],
  examples: {
    "solehold run nightly-report --ttl 30s -- ./report.sh": "at most one report at a time",
    "solehold run nightly-report --wait 0 --at-least 50m -- ./report.sh":
      "once an hour, however many crons start it: exit 3 for the others",
    "solehold run gpu --slots 3 -- ./train.sh":
      "at most three at a time; SOLEHOLD_SLOT says which: 0, 1 or 2",
    "solehold run account/7 account/3 --wait 30s -- ./transfer.sh":
      "both or none; SOLEHOLD_FENCE is of account/7, SOLEHOLD_FENCE_2 of account/3",
    "solehold run deploy --wait 0 -- make deploy": "do not wait: exit 3 if another deploys",
    "solehold run migrate --wait 5m --grace 8s -- sh -c 'psql -v fence=$SOLEHOLD_FENCE -f up.sql'":
      "wait for a turn, and pass the fence on",
  },
  action: async () => (await import("../actions/run.ts")).run,
};

/** Waiting is what an election is; and an approval works once, so it cannot carry a second term. */
const { wait: _wait, approvals: _approvals, ...runOptions } = run.options;

/** `solehold elect`: stands for election for as long as it runs, optionally with a command for each term. */
export const elect: Command = {
  name: "elect",
  summary: "Stand for election, and run a command while leading",
  usage: "KEY [options] [-- CMD [ARG...]]",
  positionals: KEY,
  trailing: "optional",
  options: { ...runOptions, ...CONNECTION_OPTIONS },
  notes: [
    `With a command: it runs while this process leads, as under 'solehold run'; when the lease is lost it is
stopped, and this process campaigns for the next term; when it ends by itself, its exit code is the
result. Ctrl-C and SIGTERM are passed on to it, and end the campaign.
Without a command: prints a line when a term begins and when it ends, until Ctrl-C.`,
  ],
  examples: {
    "solehold elect scheduler --ttl 15s -- ./scheduler": "one scheduler among many replicas",
    "solehold elect scheduler --json": "follow one's own terms in a script",
  },
  action: async () => (await import("../actions/run.ts")).elect,
};
