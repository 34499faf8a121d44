// Text that callers chose must not steer the terminal of whoever looks at it; scripts get it as it is.
import { describe, expect, it, onTestFinished } from "vitest";
import { CliProcess } from "./support/cli-process.ts";
import { run } from "./support/fake-io.ts";
import { startHostileServer } from "./support/hostile-proxy.ts";
import { startServer } from "./support/server-process.ts";
import { until } from "./support/temporary.ts";

const HOSTILE = "evil\u001b]0;owned\u0007\u202e\nforged";
const ESCAPED = "evil\\u{1b}]0;owned\\u{7}\\u{202e}";

/** Solehold itself refuses such names and notes; a server that is not to be trusted may send them. */
async function hostileServer(): Promise<Record<string, string>> {
  const SOLEHOLD_URL = await startHostileServer("placeholder", HOSTILE);
  const argv = ["acquire", "job", "--ttl", "10m", "--holder", "placeholder", "--note", "a placeholder"];
  await run(argv, { env: { SOLEHOLD_URL } });
  return { SOLEHOLD_URL };
}

function expectEscaped(text: string): void {
  expect(text).toContain(ESCAPED);
  expect(text).not.toMatch(/^forged/m);
  // Nothing but printable characters and the ends of lines.
  expect(text.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
}

describe("hostile text", () => {
  it("is escaped by ls and get", async () => {
    const env = await hostileServer();
    expectEscaped((await run(["ls"], { env })).stdout);
    const { stdout } = await run(["get", "job"], { env });
    expectEscaped(stdout);
    expect(stdout).toContain(`a ${ESCAPED}`);
  });

  it("is escaped in the table of a terminal, whose colours stay", async () => {
    const env = await hostileServer();
    const { stdout } = await run(["ls"], { env, terminal: { columns: 200 } });
    expect(stdout).toContain(ESCAPED);
    expect(stdout).toContain("\u001b[32mheld");
    expect(stdout).not.toContain("\u001b]");
  });

  it("is escaped in failures and in the notice of a wait", async () => {
    const env = await hostileServer();
    const denied = await run(["acquire", "job", "--holder", "me", "--wait", "20ms"], { env });
    expect(denied.code).toBe(3);
    expectEscaped(denied.stderr);
    expect(denied.stderr.match(/owned/g)).toHaveLength(2);
  });

  it("is escaped by watch", async () => {
    const watch = new CliProcess(["watch"], { env: await hostileServer() });
    await until("the lease was shown", () => watch.stdout.includes("\n"));
    watch.kill("SIGINT");
    await watch.exit;
    expectEscaped(watch.stdout);
  });

  it("is escaped by audit ls: a refused request is recorded as it came", async () => {
    const server = await startServer();
    onTestFinished(async () => await server.stop());
    const body = JSON.stringify({ name: "job", holder: HOSTILE, token: "t" });
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${server.url}/v1/leases/acquire`, { method: "POST", headers, body });
    expect(answer.status).toBe(400);
    expectEscaped((await run(["audit", "ls", "--server", server.url])).stdout);
    const { stdout } = await run(["audit", "ls", "--server", server.url, "--json"]);
    expect(JSON.parse(stdout).entries).toMatchObject([{ holder: HOSTILE }]);
  });

  it("stays as it is in --json", async () => {
    const env = await hostileServer();
    const listed = await run(["ls", "--json"], { env });
    expect(JSON.parse(listed.stdout).leases).toMatchObject([{ holder: HOSTILE, note: `a ${HOSTILE}` }]);
    const got = await run(["get", "job", "--json"], { env });
    expect(JSON.parse(got.stdout)).toMatchObject({ holder: HOSTILE, note: `a ${HOSTILE}` });
    const denied = await run(["acquire", "job", "--holder", "me", "--wait", "0", "--json"], { env });
    expect(JSON.parse(denied.stdout).error).toMatchObject({ holder: HOSTILE });
  });
});
