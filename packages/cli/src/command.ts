/** What a command is: data for help, parsing and completion, and the function that does the work. */
import type { Io } from "./io.ts";
import type { ParsedArguments } from "./parse/arguments.ts";

export interface OptionSpec {
  /** A flag is there or not; a value option takes one word. */
  readonly type: "flag" | "value";
  /** What stands for the value in help: DURATION, URL. */
  readonly placeholder?: string;
  readonly help: string;
  /** The only values that are allowed; also offered by shell completion. */
  readonly choices?: readonly string[];
}

export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

export interface PositionalSpec {
  readonly name: string;
  readonly presence: "required" | "optional";
  /** The only words that are allowed here; also offered by shell completion. */
  readonly choices?: readonly string[];
}

export interface Example {
  readonly line: string;
  readonly what: string;
}

export interface CommandSpec {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** What follows the name, as in `KEY [options] -- CMD...`. */
  readonly usage: string;
  readonly positionals: readonly PositionalSpec[];
  /** Whether a command line of its own may follow `--`. */
  readonly trailing: "none" | "required" | "optional";
  readonly options: OptionSpecs;
  readonly examples: readonly Example[];
  /** More for `--help`, a paragraph each. */
  readonly notes?: readonly string[];
}

export interface Invocation extends ParsedArguments {
  readonly io: Io;
}

/**
 * A command module stays light: types only from the library at the top, the library itself inside `run`
 * through `connection.ts`, so that help and completion can load all commands quickly.
 */
export interface Command extends CommandSpec {
  /** Resolves to the exit code. Throws a Failure, or what the library throws. */
  run(invocation: Invocation): Promise<number>;
}
