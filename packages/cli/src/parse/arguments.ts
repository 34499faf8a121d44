/**
 * From the words of a command line to the command and its arguments. Every mistake is a usage failure in one line
 * that names the option and the fix; nothing unknown is ignored.
 */
import { parseArgs } from "node:util";
import {
  type Command,
  type CommandSpec,
  type OptionSpec,
  type OptionSpecs,
  type ParsedArguments,
  usageOf,
} from "../command.ts";
import { usageFailure } from "../failure.ts";
import { didYouMean } from "./suggest.ts";

/** Throws a usage failure that names the nearest one when there is no such command. */
export function commandNamed(name: string, commands: readonly Command[]): Command {
  const command = commands.find((each) => each.name === name);
  if (command !== undefined) return command;
  const what = name.startsWith("-") ? "the command is missing before option" : "unknown command";
  const near = didYouMean(
    name,
    commands.map((each) => each.name),
  );
  throw usageFailure(`${what} ${name}${near}: see solehold help`);
}

export function parseArguments(command: CommandSpec, words: readonly string[]): ParsedArguments {
  const { options } = command;
  const end = words.indexOf("--");
  const own = end < 0 ? words : words.slice(0, end);
  const { tokens } = parseArgs({
    args: [...own],
    options: nativeOptions(options),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const positionals: string[] = [];
  const values: Record<string, string> = {};
  const flags = new Set<string>();
  for (const token of tokens) {
    if (token.kind === "positional") positionals.push(token.value);
    if (token.kind !== "option") continue;
    const spec = Object.hasOwn(options, token.name) ? options[token.name] : undefined;
    if (spec === undefined) throw unknownOption(command, token.rawName, token.name);
    if (spec.type === "flag") {
      if (token.value !== undefined) throw usageFailure(`${token.rawName} takes no value: write it alone`);
      flags.add(token.name);
    } else {
      values[token.name] = checkedValue(token.rawName, spec, token);
    }
  }
  const trailing = end < 0 ? [] : words.slice(end + 1);
  if (!flags.has("help")) checkShape(command, positionals, trailing);
  return { positionals, trailing, values, flags };
}

function nativeOptions(options: OptionSpecs): Record<string, { type: "boolean" | "string"; short?: string }> {
  const native: Record<string, { type: "boolean" | "string"; short?: string }> = {};
  for (const [name, { type }] of Object.entries(options)) {
    native[name] = { type: type === "flag" ? "boolean" : "string" };
  }
  return { ...native, help: { type: "boolean", short: "h" } };
}

function checkedValue(
  rawName: string,
  spec: OptionSpec,
  given: { readonly value: string | undefined; readonly inlineValue: boolean | undefined },
): string {
  const { value, inlineValue } = given;
  if (value === undefined) throw usageFailure(`${rawName} needs a value: ${rawName} ${spec.placeholder}`);
  if (inlineValue !== true && value.length > 1 && value.startsWith("-")) {
    throw usageFailure(
      `${rawName} needs a value, got ${value}: write ${rawName}=${value} if that is what you mean`,
    );
  }
  const { choices } = spec;
  if (choices !== undefined && !choices.includes(value)) {
    const hint = didYouMean(value, choices);
    throw usageFailure(
      `${rawName} must be one of ${choices.join(", ")}, got ${JSON.stringify(value)}${hint}`,
    );
  }
  return value;
}

function unknownOption(command: CommandSpec, rawName: string, name: string): Error {
  const hint = didYouMean(name, Object.keys(command.options), "--");
  const own = takesNoCommand(command) ? "" : ", and put the options of CMD after --";
  return usageFailure(`unknown option ${rawName}${hint}: see solehold ${command.name} --help${own}`);
}

function checkShape(command: CommandSpec, positionals: readonly string[], trailing: readonly string[]): void {
  const usage = `usage: ${usageOf(command)}`;
  const { positionals: expected = [] } = command;
  const missing = expected.find(
    ({ presence }, index) => presence === "required" && index >= positionals.length,
  );
  if (missing !== undefined) throw usageFailure(`${missing.name} is missing; ${usage}`);
  for (const [index, { name, choices }] of expected.entries()) {
    const given = positionals[index];
    if (given === undefined || choices === undefined || choices.includes(given)) continue;
    const hint = didYouMean(given, choices);
    throw usageFailure(
      `${name} must be ${choices.join(" or ")}, got ${JSON.stringify(given)}${hint}; ${usage}`,
    );
  }
  const extra = positionals[expected.length];
  if (extra !== undefined && expected.at(-1)?.isRepeatable !== true) {
    const fix = takesNoCommand(command) ? "" : ": put the command to run after --";
    throw usageFailure(`unexpected argument ${JSON.stringify(extra)}${fix}; ${usage}`);
  }
  if (command.trailing === "required" && trailing.length === 0) {
    throw usageFailure(`the command to run is missing: put it after --; ${usage}`);
  }
  if (takesNoCommand(command) && trailing.length > 0) {
    throw usageFailure(`unexpected argument ${JSON.stringify(trailing[0])} after --; ${usage}`);
  }
}

function takesNoCommand({ trailing = "none" }: CommandSpec): boolean {
  return trailing === "none";
}
