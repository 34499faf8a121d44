/** `solehold watch`: one line per change. */
import type { Command, Invocation } from "../command.ts";
import { CONNECTION_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "watch",
  summary: "Print a line for every change of a lease",
  usage: "[PREFIX] [options]",
  positionals: [{ name: "PREFIX", presence: "optional" }],
  trailing: "none",
  options: {
    renewals: { type: "flag", help: "also renewals, which are many" },
    every: {
      type: "value",
      placeholder: "DURATION",
      help: "how often to look where the store cannot announce changes (default 1s)",
    },
    ...CONNECTION_OPTIONS,
  },
  notes: [
    `What is held at the start comes first. Changes that follow each other faster than the store tells, or
than --every, may show as one.`,
  ],
  examples: [
    { line: "solehold watch job/", what: "until Ctrl-C" },
    { line: "solehold watch --json | jq -c '[.event, .key, .holder]'", what: "for a script" },
  ],
  run,
};

const DEFAULT_EVERY_MS = 1_000;

async function run(invocation: Invocation): Promise<number> {
  const { io, flags, positionals } = invocation;
  const { withLeases } = await import("../connection.ts");
  const { durationOption } = await import("../values.ts");
  const { failureOf } = await import("../outcomes.ts");
  const { interruptible, Interrupted } = await import("../interrupt.ts");
  const { LeaseWatcher } = await import("../watching/watcher.ts");
  const { changePrinter } = await import("../watching/lines.ts");
  const [prefix = ""] = positionals;
  const everyMs = durationOption(invocation, "every", 10) ?? DEFAULT_EVERY_MS;
  const print = changePrinter(io, flags.has("json") ? "json" : "text");
  const onChange: typeof print = (change) => {
    if (change.kind !== "renewed" || flags.has("renewals")) print(change);
  };
  const onTrouble = (error: unknown): void => {
    io.stderr.write(`solehold: ${failureOf(error).message}; still watching\n`);
  };
  return await withLeases(invocation, "user", async ({ executor, tenant }) => {
    try {
      return await interruptible(io, async (signal) => {
        await new LeaseWatcher({ executor, tenant, prefix, everyMs, onChange, onTrouble }).run(signal);
        return 0;
      });
    } catch (error) {
      // Ctrl-C is how this command ends.
      if (error instanceof Interrupted) return error.details.exitCode;
      throw error;
    }
  });
}
