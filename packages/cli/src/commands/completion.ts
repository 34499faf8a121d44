/** `solehold completion`: a script for the shell, made from the same data as the help. */
import type { Command } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "completion",
  summary: "Print a completion script for bash, zsh or fish",
  usage: "bash|zsh|fish",
  positionals: [{ name: "SHELL", presence: "required", choices: ["bash", "zsh", "fish"] }],
  options: COMMON_OPTIONS,
  examples: {
    'eval "$(solehold completion bash)"': "in ~/.bashrc",
    'eval "$(solehold completion zsh)"': "in ~/.zshrc, after compinit",
    "solehold completion fish > ~/.config/fish/completions/solehold.fish": "once",
  },
  action: async () => (await import("../actions/completion.ts")).completion,
};
