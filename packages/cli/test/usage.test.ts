import { PURPOSES } from "solehold/internal";
import { describe, expect, it } from "vitest";
import { PURPOSE_CHOICES } from "../src/options.ts";
import { parseArguments } from "../src/parse/arguments.ts";
import { COMMANDS } from "../src/registry.ts";
import { run } from "./support/fake-io.ts";

describe("help", () => {
  it("lists every command, and is what no arguments, help and --help show", async () => {
    const shown = await Promise.all([[], ["help"], ["--help"], ["-h"]].map((argv) => run(argv)));
    for (const { code, stdout, stderr } of shown) {
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      for (const name of COMMANDS.map(({ name }) => name))
        expect(stdout).toMatch(new RegExp(`^  ${name} `, "m"));
      expect(stdout).toContain(
        "Exit codes: 0 ok, 1 error, 2 usage, 3 held by another, 4 lost, 5 the store lost data.",
      );
    }
  });

  it.each(COMMANDS.map(({ name }) => name))("of %s has its options and an example", async (name) => {
    const command = COMMANDS.find((each) => each.name === name);
    const { code, stdout } = await run([name, "--help"]);
    expect(code).toBe(0);
    const examples = Object.keys(command?.examples ?? {});
    expect(examples.length).toBeGreaterThan(0);
    for (const line of examples) expect(stdout).toContain(`$ ${line}`);
    for (const option of Object.keys(command?.options ?? {})) expect(stdout).toContain(`--${option}`);
    expect(stdout).toContain("--json");
    expect(await run(["help", name])).toEqual({ code: 0, stdout, stderr: "" });
  });

  it("shows examples that parse", () => {
    for (const command of COMMANDS) {
      for (const line of Object.keys(command.examples)) {
        const [call = ""] = line.slice(line.indexOf("solehold ")).split(/ [|>&]|\)/);
        const words = call.match(/'[^']*'|\S+/g) ?? [];
        expect(words[1], line).toBe(command.name);
        expect(() => parseArguments(command, words.slice(2)), line).not.toThrow();
      }
    }
  });

  it("names the purposes that the library knows", () => {
    expect(PURPOSE_CHOICES).toEqual(PURPOSES);
  });
});

describe("a wrong command line", () => {
  it.each([
    [["rnu"], "unknown command rnu (did you mean 'run'?): see solehold help"],
    [["help", "relaese"], "unknown command relaese (did you mean 'release'?)"],
    [["--store", "memory:"], "the command is missing before option --store"],
    [["ls", "--stroe", "memory:"], "unknown option --stroe (did you mean '--store'?)"],
    [["ls", "--store", "memory:", "--server", "http://localhost"], "--store and --server exclude each other"],
    [["ls", "--server", "localhost:7077"], "--server must be an http:// or https:// URL"],
    [["ls", "--store", "oracle://localhost"], "the unknown scheme 'oracle:'"],
    [["ls", "--store", "data"], "has no scheme"],
    [["ls", "--store", "memory:", "--limit", "0"], "--limit must be a whole number from 1"],
    [["ls", "--store", "memory:", "--tenant", "a/b"], "tenant must have"],
    [["acquire", "$floor", "--store", "memory:"], "KEY must not begin with '$'"],
    [["acquire", "", "--store", "memory:"], "KEY must not be empty"],
    [["acquire", "k", "--store", "memory:", "--ttl", "soon"], "--ttl must be at least 1 ms"],
    [["acquire", "k", "--store", "memory:", "--ttl", "2h"], "--ttl must be from 1 to 3600000 ms"],
    [["acquire", "k", "--store", "memory:", "--wait", "-1"], "--wait needs a value, got -1"],
    [["acquire", "k", "--store", "memory:", "--wait=-1"], "--wait must be at least 0 ms"],
    [["acquire", "k", "--store", "memory:", "--purpose", "operation"], "did you mean 'Operation'?"],
    [["acquire", "k", "--store", "memory:", "--term", "1.5"], "--term must be a whole number"],
    [["acquire", "k", "--store", "memory:", "--holder", "a\nb"], "--holder must not contain control"],
    [
      ["renew", "k", "--store", "memory:"],
      "--token is missing: pass what acquire printed, or set SOLEHOLD_TOKEN",
    ],
    [["handoff", "k", "--store", "memory:", "--token", "t"], "--to is missing"],
    [["handoff", "k", "--store", "memory:", "--token", "t", "--to", "b"], "--within is missing"],
    [["break", "k", "--store", "memory:"], "--period is missing"],
    [["revoke", "k", "--store", "memory:", "--fence", "x"], "--fence must be a decimal number"],
    [["run", "k", "--store", "memory:", "--ttl", "500ms", "--", "true"], "--ttl must be at least 1.0s"],
    [
      ["run", "k", "--store", "memory:", "--ttl", "3s", "--grace", "2s", "--", "true"],
      "--grace must be at most",
    ],
    [["run", "k", "true"], "the command to run is missing: put it after --"],
    [["elect", "k", "true"], "put the command to run after --"],
    [["run", "k", "", "--", "true"], "KEY must not be empty"],
    [["run", "k", "l", "k", "--", "true"], 'KEY "k" is given twice: name each once'],
    [["run", "k", "l", "--at-least", "1h", "--", "true"], "--at-least is for one KEY"],
    [["run", "k", "l", "--approvals", "f", "--", "true"], "--approvals is for one KEY"],
    [["schema", "redis"], "STORE must be postgres, got"],
    [["quorum", "verfy"], "did you mean 'verify'?"],
    [["coordinator", "select", "k"], "--nodes is missing"],
    [["coordinator", "select", "k", "--nodes", "a"], "--nodes must be NAME=WEIGHT"],
    [["coordinator", "select", "k", "--nodes", "a=1,a=2"], "LC_DUPLICATE_CANDIDATE"],
    [["keygen"], "--out is missing"],
    [["approve", "k"], "--file is missing"],
    [["completion", "tcsh"], "SHELL must be bash or zsh or fish"],
  ])("%j exits 2 with one line that names the fix", async (argv, message) => {
    const { code, stdout, stderr } = await run(argv);
    expect(stderr).toContain(message);
    expect(stderr).toMatch(/^solehold: [^\n]+\n$/);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  });

  it("is a document too with --json", async () => {
    const { code, stdout } = await run(["ls", "--json", "--nope"]);
    expect(code).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: "USAGE" }, exitCode: 2 });
  });

  it("is not a document when --json belongs to the command that should have been run", async () => {
    expect((await run(["run", "--", "x", "--json"])).stdout).toBe("");
  });
});

describe("version and schema", () => {
  it("say what they are asked for", async () => {
    const version = JSON.parse((await run(["version", "--json"])).stdout);
    expect(version).toMatchObject({ node: process.versions.node });
    expect((await run(["--version"])).stdout).toContain(`solehold ${version.solehold} `);
    const { stdout } = await run(["schema", "--table", "mine"]);
    expect(stdout).toContain('create table if not exists "solehold"."mine"');
  });
});
