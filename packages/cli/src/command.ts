/**
 * What a command is: data for help, parsing and completion. What it does is its action, a module of its own that
 * loads when the command runs, so that help and completion stay quick.
 */
import type { Io } from "./io.ts";

export interface OptionSpec {
  /** A flag is there or not; a value option takes one word. */
  readonly type: "flag" | "value";
  /** What stands for the value in help: DURATION, URL. */
  readonly placeholder: string;
  readonly help: string;
  /** The only values that are allowed; also offered by shell completion. */
  readonly choices?: readonly string[];
}

export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

export function flag(help: string): OptionSpec {
  return { type: "flag", placeholder: "", help };
}

export function value(placeholder: string, help: string): OptionSpec {
  return { type: "value", placeholder, help };
}

export function choice(
  choices: readonly string[],
  help: string,
  placeholder = choices.join("|"),
): OptionSpec {
  return { type: "value", placeholder, help, choices };
}

export interface PositionalSpec {
  readonly name: string;
  readonly presence: "required" | "optional";
  /** Any number of words from here on. */
  readonly isRepeatable?: true;
  /** The only words that are allowed here; also offered by shell completion. */
  readonly choices?: readonly string[];
}

export interface CommandSpec {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** What follows the name, where that is not its arguments and `[options]`: `KEY [options] -- CMD...`. */
  readonly usage?: string;
  /** Default: none. */
  readonly positionals?: readonly PositionalSpec[];
  /** Whether a command line of its own may follow `--`. Default: "none". */
  readonly trailing?: "none" | "required" | "optional";
  readonly options: OptionSpecs;
  /** More for `--help`, a paragraph each. */
  readonly notes?: readonly string[];
  /** From a command line to what it is for. */
  readonly examples: Readonly<Record<string, string>>;
}

export function usageOf({ name, usage, positionals = [] }: CommandSpec): string {
  const words = positionals.map(({ name, presence }) => (presence === "required" ? name : `[${name}]`));
  return `solehold ${name} ${usage ?? [...words, "[options]"].join(" ")}`;
}

export interface Command extends CommandSpec {
  readonly action: () => Promise<Action>;
}

/** Resolves to the exit code. Throws a Failure, or what the library throws. */
export type Action = (invocation: Invocation) => Promise<number>;

export interface ParsedArguments {
  readonly positionals: readonly string[];
  /** What follows `--`. */
  readonly trailing: readonly string[];
  readonly values: Readonly<Record<string, string>>;
  readonly flags: ReadonlySet<string>;
}

export interface Invocation extends ParsedArguments {
  readonly io: Io;
  /** All of them, for those that are about commands. */
  readonly commands: readonly Command[];
}
