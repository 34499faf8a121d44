import { describe, expect, it } from "vitest";
import { type CommandSpec, choice, flag, value } from "../../src/command.ts";
import { parseArguments } from "../../src/parse/arguments.ts";

const spec: CommandSpec = {
  name: "demo",
  summary: "",
  usage: "KEY [options] -- CMD",
  positionals: [{ name: "KEY", presence: "required" }],
  trailing: "required",
  options: {
    ttl: value("DURATION", ""),
    "on-loss": choice(["term", "kill"], ""),
    json: flag(""),
    help: flag(""),
  },
  examples: {},
};

const plain: CommandSpec = { ...spec, trailing: "none", usage: "KEY [options]" };

describe("arguments", () => {
  it("separates the key, the options and the command after --", () => {
    const parsed = parseArguments(spec, ["job", "--ttl", "3s", "--json", "--", "make", "--ttl", "x"]);
    expect(parsed.positionals).toEqual(["job"]);
    expect(parsed.values).toEqual({ ttl: "3s" });
    expect([...parsed.flags]).toEqual(["json"]);
    expect(parsed.trailing).toEqual(["make", "--ttl", "x"]);
  });

  it("keeps a second -- for the command", () => {
    expect(parseArguments(spec, ["job", "--", "sh", "--", "x"]).trailing).toEqual(["sh", "--", "x"]);
  });

  it("takes -h for --help, and then does not ask for the rest", () => {
    expect(parseArguments(spec, ["-h"]).flags.has("help")).toBe(true);
  });

  it.each([
    [["job", "--tll", "3s", "--", "x"], "unknown option --tll (did you mean '--ttl'?)"],
    [["job", "-x", "--", "x"], "unknown option -x"],
    [["job", "--constructor", "--", "x"], "unknown option --constructor"],
    [["job", "--ttl", "--", "x"], "--ttl needs a value: --ttl DURATION"],
    [["job", "--ttl", "--json", "--", "x"], "--ttl needs a value, got --json: write --ttl=--json"],
    [["job", "--json=yes", "--", "x"], "--json takes no value"],
    [["job", "--on-loss", "terms", "--", "x"], "term, kill, got \"terms\" (did you mean 'term'?)"],
    [["--", "x"], "KEY is missing; usage: solehold demo KEY [options] -- CMD"],
    [["job", "make", "all"], 'unexpected argument "make": put the command to run after --'],
    [["job"], "the command to run is missing: put it after --"],
  ])("says what is wrong with %j in one line", (words, message) => {
    const failure = problemOf(() => parseArguments(spec, words));
    expect(failure).toContain(message);
    expect(failure).not.toContain("\n");
  });

  it("refuses words after -- where there is no command to run", () => {
    expect(problemOf(() => parseArguments(plain, ["job", "--", "x"]))).toContain('unexpected argument "x"');
  });

  it("takes a value that begins with a dash when it is written with =", () => {
    expect(parseArguments(plain, ["job", "--ttl=-5"]).values.ttl).toBe("-5");
  });
});

function problemOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("nothing was thrown");
}
