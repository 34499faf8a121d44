import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { COMMANDS } from "../src/registry.ts";
import { run } from "./support/fake-io.ts";

/** What bash would offer for the last of the words. */
async function offered(...words: readonly string[]): Promise<readonly string[]> {
  const { stdout: script } = await run(["completion", "bash"]);
  const line = words.map((word) => `'${word}'`).join(" ");
  const program = `${script}
COMP_WORDS=(solehold ${line}); COMP_CWORD=${words.length}; _solehold; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return execFileSync("bash", ["-c", program], { encoding: "utf8" }).split("\n").filter(Boolean);
}

describe("completion", () => {
  it("offers the commands", async () => {
    expect(await offered("re")).toEqual(["renew", "release", "resume", "revoke", "repair"]);
    expect(await offered("")).toEqual(COMMANDS.map(({ name }) => name));
  });

  it("offers the options of the command, and the choices of an option", async () => {
    expect(await offered("run", "job", "--on")).toEqual(["--on-loss"]);
    expect(await offered("run", "job", "--on-loss", "k")).toEqual(["kill"]);
    expect(await offered("acquire", "job", "--purpose", "")).toEqual([
      "Operation",
      "StateWrite",
      "MigrationHandoff",
    ]);
    expect(await offered("completion", "z")).toEqual(["zsh"]);
  });

  it("leaves what follows -- to the shell", async () => {
    expect(await offered("run", "job", "--", "--on-lo")).toEqual([]);
  });

  it.each(["zsh", "fish"])("for %s names every command and its summary", async (shell) => {
    const { code, stdout } = await run(["completion", shell]);
    expect(code).toBe(0);
    for (const name of COMMANDS.map(({ name }) => name)) expect(stdout).toContain(name);
    expect(stdout).toContain("Run a command while holding a lease");
  });
});
