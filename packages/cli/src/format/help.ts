/** Help texts, from the same data that parsing and completion use. */
import { type CommandSpec, type OptionSpec, usageOf } from "../command.ts";

const NAME_WIDTH = 14;
const OPTION_WIDTH = 26;

export function overview(commands: readonly CommandSpec[]): string {
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(NAME_WIDTH)}${summary}`);
  return `solehold: one process at a time owns a named thing, for a bounded time, with a fence.

Usage: solehold COMMAND [ARGUMENTS]

Commands:
${lines.join("\n")}

Every command has --help with examples, --json for scripts, and --store URL or --server URL
(env SOLEHOLD_URL) to say where the leases are; the default is embedded:./.solehold/data.

Exit codes: 0 ok, 1 error, 2 usage, 3 held by another, 4 lost, 5 the store lost data.

Try: solehold run nightly-report --ttl 30s -- ./report.sh
`;
}

export function commandHelp(command: CommandSpec): string {
  const options = Object.entries(command.options).map(([name, spec]) => optionLine(name, spec));
  const examples = Object.entries(command.examples).map(([line, what]) => `  # ${what}\n  $ ${line}`);
  const notes = (command.notes ?? []).map((note) => `${note}\n\n`);
  return `${command.summary}

Usage: ${usageOf(command)}

${notes.join("")}Options:
${options.join("\n")}

Examples:
${examples.join("\n")}
`;
}

function optionLine(name: string, spec: OptionSpec): string {
  const head = `  --${name} ${spec.placeholder}`.trimEnd();
  return head.length < OPTION_WIDTH
    ? `${head.padEnd(OPTION_WIDTH)}${spec.help}`
    : `${head}\n${" ".repeat(OPTION_WIDTH)}${spec.help}`;
}
