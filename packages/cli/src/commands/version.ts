/** `solehold version`. */
import type { Command, Invocation } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "version",
  summary: "Show the version",
  usage: "[--json]",
  positionals: [],
  trailing: "none",
  options: COMMON_OPTIONS,
  examples: [{ line: "solehold version --json", what: "with that of Node and the platform" }],
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { versions } = await import("../versions.ts");
  const { printAnswer } = await import("../text/print.ts");
  const { solehold, node, platform } = versions();
  printAnswer(invocation, {
    document: () => ({ solehold, node, platform }),
    lines: () => [`solehold ${solehold} (node ${node}, ${platform})`],
  });
  return 0;
}
