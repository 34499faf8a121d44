/** Commands about the commands. */
import type { Command } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

/** `solehold completion`: a script for the shell, made from the same data as the help. */
export const completion: Command = {
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
  action: async () => (await import("../actions/about.ts")).completion,
};

/** `solehold version`. */
export const version: Command = {
  name: "version",
  summary: "Show the version",
  usage: "[--json]",
  options: COMMON_OPTIONS,
  examples: { "solehold version --json": "with that of Node and the platform" },
  action: async () => (await import("../actions/about.ts")).version,
};

/** `solehold help`: the commands, or one of them in full. */
export const help: Command = {
  name: "help",
  summary: "Show this, or the help of a command",
  usage: "[COMMAND]",
  positionals: [{ name: "COMMAND", presence: "optional" }],
  options: COMMON_OPTIONS,
  examples: { "solehold help run": "the same as solehold run --help" },
  action: async () => (await import("../actions/about.ts")).help,
};
