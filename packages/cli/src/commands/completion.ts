/** `solehold completion`: a script for the shell, made from the same data as the help. */
import type { Command, Invocation } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;

export const command: Command = {
  name: "completion",
  summary: "Print a completion script for bash, zsh or fish",
  usage: "bash|zsh|fish",
  positionals: [{ name: "SHELL", presence: "required", choices: SHELLS }],
  trailing: "none",
  options: COMMON_OPTIONS,
  examples: [
    { line: 'eval "$(solehold completion bash)"', what: "in ~/.bashrc" },
    { line: 'eval "$(solehold completion zsh)"', what: "in ~/.zshrc, after compinit" },
    { line: "solehold completion fish > ~/.config/fish/completions/solehold.fish", what: "once" },
  ],
  run,
};

async function run({ positionals: [asked = ""], io }: Invocation): Promise<number> {
  const shell = SHELLS.find((known) => known === asked) ?? "bash";
  const { loadAllCommands } = await import("../registry.ts");
  const { completionScript } = await import("../completion-scripts.ts");
  io.stdout.write(completionScript(shell, await loadAllCommands()));
  return 0;
}
