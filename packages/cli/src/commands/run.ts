/**
 * `solehold run`: a command that works only while the lease is held. Its whole process group is dead before
 * the lease could belong to another, even if this process is stopped or killed or the store is frozen; see
 * run/supervisor.ts for how, and for what is not promised.
 */
import { type Command, choice, value } from "../command.ts";
import { ACQUIRE_OPTIONS, CONNECTION_OPTIONS, KEY } from "../options.ts";
import { ON_LOSS_CHOICES } from "../run/plan.ts";

export const command: Command = {
  name: "run",
  summary: "Run a command while holding a lease",
  usage: "KEY [options] -- CMD [ARG...]",
  positionals: KEY,
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
    `Exit codes besides the command's own: 3 when another holds the lease after --wait, 4 when the lease was
lost, 126 or 127 when the command cannot be run or found.`,
  ],
  examples: {
    "solehold run nightly-report --ttl 30s -- ./report.sh": "at most one report at a time",
    "solehold run nightly-report --wait 0 --at-least 50m -- ./report.sh":
      "once an hour, however many crons start it: exit 3 for the others",
    "solehold run gpu --slots 3 -- ./train.sh":
      "at most three at a time; SOLEHOLD_SLOT says which: 0, 1 or 2",
    "solehold run deploy --wait 0 -- make deploy": "do not wait: exit 3 if another deploys",
    "solehold run migrate --wait 5m --grace 8s -- sh -c 'psql -v fence=$SOLEHOLD_FENCE -f up.sql'":
      "wait for a turn, and pass the fence on",
  },
  action: async () => (await import("../actions/run.ts")).run,
};
