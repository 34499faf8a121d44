// What a stranger meets in the first minutes: lines to paste, a wait that is explained, a cause that is true.
import { type AddressInfo, createServer } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { CliProcess } from "./support/cli-process.ts";
import { run } from "./support/fake-io.ts";
import { startServer } from "./support/server-process.ts";
import { temporaryFolder, until } from "./support/temporary.ts";

describe("the lines that acquire prints", () => {
  it("can be pasted: they name the server, the tenant and the holder that were given", async () => {
    const server = await startServer();
    onTestFinished(async () => await server.stop());
    const options = ["--server", server.url, "--tenant", "ci", "--holder", "it's me"];
    const { stdout } = await run(["acquire", "c/d", ...options]);
    const [, SOLEHOLD_TOKEN = ""] = /export SOLEHOLD_TOKEN=(\S+)/.exec(stdout) ?? [];
    const pasted = stdout.split("\n").filter((line) => line.startsWith("  solehold "));
    expect(pasted).toHaveLength(2);
    for (const line of pasted) {
      expect(line).toContain("--holder 'it'\\''s me'");
      const words = line.replace("'it'\\''s me'", "it's_me").trim().split(" ").slice(1);
      const argv = words.map((word) => word.replace("it's_me", "it's me"));
      const { code, stderr } = await run(argv, { env: { SOLEHOLD_TOKEN } });
      expect([line, code, stderr]).toEqual([line, 0, ""]);
    }
  });

  it("are short where the environment says where the leases are", async () => {
    const SOLEHOLD_URL = `embedded:${temporaryFolder()}/data`;
    const { stdout } = await run(["acquire", "job"], { env: { SOLEHOLD_URL } });
    expect(stdout).toMatch(/\n {2}solehold renew job\n {2}solehold release job\n$/);
  });
});

describe("a command that waits", () => {
  async function heldJob() {
    const SOLEHOLD_URL = `embedded:${temporaryFolder()}/data`;
    await run(["acquire", "job", "--ttl", "10m", "--holder", "first"], { env: { SOLEHOLD_URL } });
    return (argv: readonly string[]) =>
      new CliProcess(argv, { env: { SOLEHOLD_URL, SOLEHOLD_HOLDER: "me" } });
  }

  it.each([
    [["run", "job", "--", "true"], /^solehold: waiting for at most 10s: job is held by first, for .*\n$/],
    [["run", "job", "--wait", "5m", "--", "true"], /waiting for at most 5m00s: job is held by first/],
    [["run", "job", "--wait", "forever", "--", "true"], /waiting without a limit: job is held by first/],
    [["elect", "job"], /^solehold: waiting without a limit: job is held by first, for .*\n$/],
    [["elect", "job", "--", "true"], /^solehold: waiting without a limit: job is held by first, for .*\n$/],
    [["acquire", "job"], /^solehold: waiting for at most 10s: job is held by first, for .*\n$/],
  ])("%j says who holds the lease and how long it waits at most, once", async (argv, notice) => {
    const waiting = (await heldJob())(argv);
    await until("it says so", () => waiting.stderr.includes("\n"));
    expect(waiting.stderr).toMatch(notice);
    waiting.kill("SIGINT");
    expect((await waiting.exit).code).toBe(130);
    expect(waiting.stderr.match(/waiting/g)).toHaveLength(1);
    expect(waiting.stdout).toBe("");
  });

  it("says it as a JSON line with --json", async () => {
    const waiting = (await heldJob())(["elect", "job", "--json"]);
    await until("it says so", () => waiting.stderr.includes("\n"));
    expect(JSON.parse(waiting.stderr)).toMatchObject({
      event: "waiting",
      key: "job",
      holder: "first",
      waitMs: "forever",
    });
    waiting.kill("SIGINT");
    await waiting.exit;
  });

  it("says how many wait ahead of it, where a server knows", async () => {
    const server = await startServer();
    onTestFinished(async () => await server.stop());
    const options = ["--server", server.url];
    await run(["acquire", "job", "--ttl", "10m", ...options]);
    const waiters: CliProcess[] = [];
    for (const expected of ["held by", "1 ahead in the queue", "2 ahead in the queue"]) {
      const waiter = new CliProcess(["run", "job", "--wait", "5m", ...options, "--", "true"]);
      waiters.push(waiter);
      await until(`it says ${expected}`, () => waiter.stderr.includes(expected));
    }
    for (const waiter of waiters) waiter.kill("SIGINT");
    for (const waiter of waiters) await waiter.exit;
  });

  it("says nothing when the lease is free", async () => {
    const SOLEHOLD_URL = `embedded:${temporaryFolder()}/data`;
    const running = new CliProcess(["run", "job", "--", "true"], { env: { SOLEHOLD_URL } });
    expect((await running.exit).code).toBe(0);
    expect(running.stderr).toBe("");
  });
});

describe("a store's package that cannot be loaded", () => {
  /** Node runs this before the command line: it makes every import of the package fail. */
  function failingImport(error: string): Record<string, string> {
    const hook = `export async function resolve(name, context, next) {
      if (name === "ioredis") throw ${error};
      return await next(name, context);
    }`;
    const url = (code: string): string => `data:text/javascript,${encodeURIComponent(code)}`;
    const register = `import { register } from "node:module"; register(${JSON.stringify(url(hook))});`;
    return { NODE_OPTIONS: `--import=${url(register)}`, SOLEHOLD_URL: "redis://127.0.0.1:1" };
  }

  it("is not called missing without its real cause", async () => {
    const env = failingImport('new Error("its native part needs libssl 3")');
    const failed = new CliProcess(["ls"], { env });
    expect((await failed.exit).code).toBe(2);
    expect(failed.stderr).toContain("its native part needs libssl 3");
  });

  it("is called missing when it is, with the fix and nothing else", async () => {
    const env = failingImport('Object.assign(new Error("internals"), { code: "ERR_MODULE_NOT_FOUND" })');
    const failed = new CliProcess(["ls"], { env });
    expect((await failed.exit).code).toBe(2);
    expect(failed.stderr).toMatch(/^solehold: .*ioredis is missing: run `npm install ioredis`\n$/);
  });
});

describe("a store that hangs", () => {
  it.each([
    ["run", "job", "--wait", "0", "--", "true"],
    ["get", "job"],
  ])("does not keep %s %s longer than --timeout says", async (...argv) => {
    // It accepts connections and never says a word.
    const silent = createServer((socket) => socket.on("error", () => undefined));
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void silent.close());
    const { port } = silent.address() as AddressInfo;
    const [command = "", ...rest] = argv;
    const store = ["--store", `redis://127.0.0.1:${port}`, "--timeout", "250ms"];
    const { code, stderr } = await run([command, ...store, ...rest]);
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining("was not open within 250 ms: raise 'timeout'"),
    ]);
  });

  it("does not either when it is a server that hangs: a command has twice as long", async () => {
    const silent = createServer((socket) => socket.on("error", () => undefined));
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void silent.close());
    const server = ["--server", `http://127.0.0.1:${(silent.address() as AddressInfo).port}`];
    const { code, stderr } = await run([
      ...["run", "job", ...server, "--timeout", "250ms"],
      ...["--wait", "0", "--", "true"],
    ]);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/gave no answer within \d{1,3} ms/)]);
  });

  it("names a --timeout that is wrong", async () => {
    const { code, stderr } = await run(["get", "job", "--timeout", "soon"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("--timeout")]);
  });
});
