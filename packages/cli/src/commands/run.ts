/**
 * `solehold run`: a command that works only while the lease is held. Its whole process group is dead before
 * the lease could belong to another, even if this process is stopped or killed or the store is frozen; see
 * run/keeper.ts for how, and for what is not promised.
 */
import type { Command, Invocation } from "../command.ts";
import {
  APPROVALS_OPTION,
  CONNECTION_OPTIONS,
  HOLDER_OPTION,
  NOTE_OPTION,
  PURPOSE_OPTION,
  TTL_OPTION,
  WAIT_OPTION,
} from "../options.ts";
import { ON_LOSS_CHOICES } from "../run/plan.ts";

export const command: Command = {
  name: "run",
  summary: "Run a command while holding a lease",
  usage: "KEY [options] -- CMD [ARG...]",
  positionals: [{ name: "KEY", presence: "required" }],
  trailing: "required",
  options: {
    ttl: TTL_OPTION,
    wait: WAIT_OPTION,
    purpose: PURPOSE_OPTION,
    holder: {
      ...HOLDER_OPTION,
      help: "the name of the holder (env SOLEHOLD_HOLDER; default HOST:PID:RANDOM)",
    },
    note: NOTE_OPTION,
    approvals: APPROVALS_OPTION,
    "on-loss": {
      type: "value",
      choices: ON_LOSS_CHOICES,
      help: "SIGTERM then SIGKILL; SIGKILL alone; or let it go on (default term)",
    },
    grace: {
      type: "value",
      placeholder: "DURATION",
      help: "between SIGTERM and SIGKILL, at most a third of --ttl (default a fifth, at most 5s)",
    },
    ...CONNECTION_OPTIONS,
  },
  notes: [
    `The command gets SOLEHOLD_KEY, SOLEHOLD_FENCE and SOLEHOLD_EXPIRES_AT in its environment, and this
process's stdin, stdout, stderr and signals. Its exit code is passed back (128 + the signal's number if
one ended it). Give the fence to whatever the command writes to.`,
    `Exit codes besides the command's own: 3 when another holds the lease after --wait, 4 when the lease was
lost, 126 or 127 when the command cannot be run or found.`,
  ],
  examples: [
    { line: "solehold run nightly-report --ttl 30s -- ./report.sh", what: "at most one report at a time" },
    { line: "solehold run deploy --wait 0 -- make deploy", what: "do not wait: exit 3 if somebody deploys" },
    {
      line: "solehold run migrate --wait 5m --grace 8s -- sh -c 'psql -v fence=$SOLEHOLD_FENCE -f up.sql'",
      what: "wait for a turn, and pass the fence on",
    },
  ],
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { io, trailing, flags } = invocation;
  const { keyOf, withLeases } = await import("../connection.ts");
  const { runOptions } = await import("../run/options.ts");
  const { HeldCommand } = await import("../run/held-command.ts");
  const { announcer, exitCodeOf } = await import("../run/result.ts");
  const { approvalForAcquire } = await import("../approvals/present.ts");
  const { interruptible } = await import("../interrupt.ts");
  const { acquireAndSay } = await import("../waiting.ts");
  const key = keyOf(invocation);
  const { acquire, plan } = runOptions(invocation);
  const announce = announcer(io, key, flags.has("json") ? "json" : "text");
  return await withLeases(invocation, "process", async (leases) => {
    const approval = await approvalForAcquire(invocation, leases, key, acquire);
    const held = new HeldCommand({ io, plan, command: trailing, announce });
    try {
      const lease = await interruptible(io, (signal) =>
        acquireAndSay(leases, key, { ...acquire, ...approval, signal }, io),
      );
      return exitCodeOf(await held.run(lease, leases.executor), trailing[0] ?? "");
    } finally {
      held.dismiss();
    }
  });
}
