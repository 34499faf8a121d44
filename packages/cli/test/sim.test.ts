// The command `sim` as users run it, from the build: threads, its document, its exit code.
import { describe, expect, it } from "vitest";
import { CliProcess } from "./support/cli-process.ts";

const SEEDS = process.env.SOLEHOLD_EFFORT === "full" ? 100 : 20;

async function sim(...argv: readonly string[]) {
  const cli = new CliProcess(["sim", ...argv]);
  const { code } = await cli.exit;
  return { code, stdout: cli.stdout, stderr: cli.stderr };
}

describe("solehold sim", () => {
  it("finds the same with one thread and with several", async () => {
    const [one, two] = await Promise.all([
      sim("--seeds", String(SEEDS), "--workers", "1", "--json"),
      sim("--seeds", String(SEEDS), "--workers", "2", "--json"),
    ]);
    const { seedsPerMinute: _one, ...first } = JSON.parse(one.stdout);
    const { seedsPerMinute: _two, ...second } = JSON.parse(two.stdout);
    expect(first).toEqual(second);
    expect(first).toMatchObject({
      seeds: SEEDS,
      violations: 0,
      givenUp: 0,
      nondeterministic: [],
    });
    expect([one.code, two.code]).toEqual([0, 0]);
  });

  it("replays one seed through servers with its time-line", async () => {
    const { code, stdout } = await sim("--seed", "1", "--through", "server");
    expect(code).toBe(0);
    expect(stdout).toContain("entry=server");
    expect(stdout).toMatch(/ms +n1 +n2/);
  });
});
