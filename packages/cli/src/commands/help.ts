/** `solehold help`: the commands, or one of them in full. */
import type { Command, Invocation } from "../command.ts";
import { usageFailure } from "../failure.ts";
import { COMMON_OPTIONS } from "../options.ts";
import { didYouMean } from "../parse/suggest.ts";

export const command: Command = {
  name: "help",
  summary: "Show this, or the help of a command",
  usage: "[COMMAND]",
  positionals: [{ name: "COMMAND", presence: "optional" }],
  trailing: "none",
  options: COMMON_OPTIONS,
  examples: [{ line: "solehold help run", what: "the same as solehold run --help" }],
  run,
};

async function run({ positionals: [name], io }: Invocation): Promise<number> {
  const { commandNames, loadAllCommands, loadCommand } = await import("../registry.ts");
  const { commandHelp, overview } = await import("../usage.ts");
  if (name === undefined) {
    io.stdout.write(overview(await loadAllCommands()));
    return 0;
  }
  const asked = await loadCommand(name);
  if (asked === null) {
    throw usageFailure(`unknown command ${name}${didYouMean(name, commandNames())}: see solehold help`);
  }
  io.stdout.write(commandHelp(asked));
  return 0;
}
