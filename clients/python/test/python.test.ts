// The Python client: the vectors, and real servers. It speaks for itself in docs/python.md.
import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { promisify } from "node:util";
import { connect, type Leases } from "solehold";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type Pausable, startServer } from "../../../packages/cli/test/support/server-process.ts";
import { until } from "../../../packages/cli/test/support/temporary.ts";

const ROOT = join(import.meta.dirname, "../../..");
const hasPython = spawnSync("python3", ["--version"]).status === 0;
const mayBeLeftOut = !hasPython && process.env.CI !== "true";
if (mayBeLeftOut) console.warn("python3 is missing here: the tests of clients/python are left out");

type Answer = Readonly<Record<string, string | number | boolean | null>>;

/** One Python process with one client. */
class Driver {
  readonly #child: ChildProcess;
  readonly #lines: Interface;
  readonly #asking: ((line: string) => void)[] = [];

  constructor(url: string) {
    this.#child = spawn("python3", [join(import.meta.dirname, "driver.py"), url], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
    });
    this.#lines = createInterface({ input: this.#child.stdout as NodeJS.ReadableStream });
    this.#lines.on("line", (line) => this.#asking.shift()?.(line));
    onTestFinished(() => {
      this.#child.kill("SIGKILL");
    });
  }

  async ask(op: string, given: object = {}): Promise<Answer> {
    const line = new Promise<string>((resolve) => this.#asking.push(resolve));
    this.#child.stdin?.write(`${JSON.stringify({ op, ...given })}\n`);
    return JSON.parse(await line);
  }
}

async function leasesOn(url: string): Promise<Leases> {
  const leases = await connect(url, { holder: "node" });
  onTestFinished(() => leases.close({ release: true }));
  return leases;
}

async function waitersAt(url: string, name: string): Promise<readonly unknown[]> {
  const answer = (await (await fetch(`${url}/v1/queue?name=${name}`)).json()) as {
    waiters: readonly unknown[];
  };
  return answer.waiters;
}

interface Sent {
  readonly path: string;
  readonly token: string;
  /** What the server answered, whether the client got it or not. */
  readonly grantedAtMs: number | undefined;
}

/** Passes requests on. `fate` says what becomes of the answer to the nth request of a path: a delay, or lost. */
async function proxyTo(target: string, fate: (path: string, nth: number) => number | "lost") {
  const sent: Sent[] = [];
  const proxy = createServer(async (incoming, outgoing) => {
    const path = incoming.url ?? "/";
    const body = await bodyOf(incoming);
    const { host: _host, ...headers } = incoming.headers;
    const onward = request(new URL(path, target), { method: "POST", headers }, async (answer) => {
      const text = await bodyOf(answer);
      sent.push({ path, token: JSON.parse(body).token, grantedAtMs: JSON.parse(text).lease?.grantedAtMs });
      const becomes = fate(path, sent.filter((each) => each.path === path).length);
      if (becomes === "lost") return outgoing.destroy();
      outgoing.writeHead(answer.statusCode ?? 500, { "content-type": "application/json" });
      return setTimeout(() => outgoing.end(text), becomes);
    });
    onward.on("error", () => outgoing.destroy());
    onward.end(body);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, sent };
}

async function bodyOf(stream: IncomingMessage): Promise<string> {
  let text = "";
  for await (const part of stream.setEncoding("utf8")) text += part;
  return text;
}

describe.skipIf(mayBeLeftOut)("the Python client", () => {
  let shared: Pausable;
  beforeAll(async () => {
    shared = await startServer();
  });
  afterAll(() => shared.stop());

  let folder: string | null = null;
  afterEach(() => {
    if (folder !== null) rmSync(folder, { recursive: true, force: true });
    folder = null;
  });

  it("agrees with the vectors", async () => {
    const { stdout } = await promisify(execFile)("python3", [join(import.meta.dirname, "check_vectors.py")]);
    expect(stdout).toMatch(/^validity \d\d, wire \d\d\n$/);
  });

  it("agrees with the vectors of approvals and selection, too, in its second implementation", async () => {
    const check = join(ROOT, "docs/vectors/check.py");
    await expect(promisify(execFile)("python3", [check])).resolves.toMatchObject({ stderr: "" });
  });

  it("holds, renews and releases; others see it, and the next fence is higher", async () => {
    const { url } = shared;
    const [python, leases] = [new Driver(url), await leasesOn(url)];
    const { fence } = await python.ask("acquire", { name: "job-3", ttl: 3, wait: 0 });
    expect(await leases.tryAcquire("job-3")).toMatchObject({ ok: false, holder: "python" });
    await until(
      "it was renewed past its ttl",
      async () => ((await leases.inspect("job-3"))?.renewals ?? 0) >= 4,
    );
    expect(await python.ask("held", { name: "job-3" })).toMatchObject({ held: true, lost: [] });
    expect(await python.ask("release", { name: "job-3" })).toEqual({ released: true });
    expect(await python.ask("check", { name: "job-3" })).toMatchObject({ error: "LeaseLost" });
    expect(await python.ask("release", { name: "job-3" })).toEqual({ released: false });
    const next = await leases.acquire("job-3", { wait: 0 });
    expect(next.fence).toBeGreaterThan(BigInt(String(fence)));
  });

  it("waits its turn, and says who has it when it does not wait", async () => {
    const { url } = shared;
    const [python, leases] = [new Driver(url), await leasesOn(url)];
    const first = await leases.acquire("job-4");
    const denied = await python.ask("acquire", { name: "job-4", wait: 0 });
    expect(denied).toMatchObject({ error: "LeaseHeld", holder: "node" });
    const waiting = python.ask("acquire", { name: "job-4", wait: 40 });
    const queue = async () => (await waitersAt(url, "job-4")).length;
    await until("it waits", async () => (await queue()) === 1);
    await first.release();
    const { fence } = await waiting;
    expect(BigInt(String(fence))).toBeGreaterThan(first.fence);
  });

  it("stops when an operator revokes the lease", async () => {
    const { url } = shared;
    const [python, leases] = [new Driver(url), await leasesOn(url)];
    await python.ask("acquire", { name: "job-5", ttl: 2, wait: 0 });
    await leases.revoke("job-5");
    expect(await python.ask("wait_lost", { name: "job-5", timeout: 40 })).toMatchObject({ lost: true });
    expect(await python.ask("held", { name: "job-5" })).toMatchObject({
      held: false,
      remaining: 0,
      lost: [expect.stringContaining("REVOKED")],
    });
  });

  it("stops by its own clocks when the server is silent", async () => {
    const { url, pause, resume, stop } = await startServer();
    onTestFinished(stop);
    const python = new Driver(url);
    await python.ask("acquire", { name: "job-6", ttl: 1, wait: 0 });
    await pause();
    expect(await python.ask("wait_lost", { name: "job-6", timeout: 40 })).toEqual({
      lost: true,
      reason: "expired",
    });
    expect(await python.ask("check", { name: "job-6" })).toMatchObject({ error: "LeaseLost" });
    await resume();
    // A renewal that arrives now must not revive it.
    const leases = await leasesOn(url);
    await leases.acquire("job-6", { wait: "40s" });
    expect(await python.ask("held", { name: "job-6" })).toMatchObject({ held: false });
  });

  it("asks again with the same token when the answer to an acquire was lost", async () => {
    const { url } = shared;
    const leases = await leasesOn(url);
    const proxy = await proxyTo(url, (path, nth) => (path.endsWith("/acquire") && nth < 3 ? "lost" : 0));
    const python = new Driver(proxy.url);
    const { fence } = await python.ask("acquire", { name: "job-7", ttl: 30, wait: 10 });
    const acquires = proxy.sent.filter(({ path }) => path.endsWith("/acquire"));
    expect(acquires).toHaveLength(3);
    expect(new Set(acquires.map(({ token }) => token)).size).toBe(1);
    expect(await python.ask("held", { name: "job-7" })).toMatchObject({ held: true });
    const view = await leases.inspect("job-7");
    expect(view).toMatchObject({ holder: "python", live: true, fence: BigInt(String(fence)) });
    expect(view?.grantedAtMs).toBe(proxy.sent[0]?.grantedAtMs);
  });

  it("does not believe a grant that is over when it arrives", async () => {
    const { url } = shared;
    const proxy = await proxyTo(url, (path) => (path.endsWith("/acquire") ? 750 : 0));
    const python = new Driver(proxy.url);
    const answer = await python.ask("acquire", { name: "job-8", ttl: 0.7, wait: 0 });
    expect(answer).toMatchObject({
      error: "LeaseUnavailable",
      message: expect.stringContaining("longer than"),
    });
  });

  it("releases what may have been granted without an answer", async () => {
    const { url } = shared;
    const leases = await leasesOn(url);
    const proxy = await proxyTo(url, (path) => (path.endsWith("/acquire") ? "lost" : 0));
    const python = new Driver(proxy.url);
    const failed = await python.ask("acquire", { name: "job-9", ttl: 3600, wait: 0 });
    expect(failed).toMatchObject({ error: "LeaseUnavailable", outcome: "unknown" });
    expect(await leases.tryAcquire("job-9")).toMatchObject({ ok: true });
  });

  it("says what is wrong with a request", async () => {
    const { url } = shared;
    const python = new Driver(url);
    const wrong: readonly (readonly [object, string, string])[] = [
      [{ name: "job-10", ttl: 0.004 }, "ValueError", "ttl of 0.004 s leaves no room"],
      [{ name: "job-10", wait: -1 }, "ValueError", "wait must be a number of seconds from 0, got -1"],
      [{ name: "$job" }, "LeaseRefused", "name must not begin with '$'"],
    ];
    for (const [given, error, message] of wrong) {
      const answer = await python.ask("acquire", given);
      expect(answer).toMatchObject({ error, message: expect.stringContaining(message) });
    }
  });

  it("runs the program of its page", async () => {
    const { url } = shared;
    const page = readFileSync(join(ROOT, "docs/python.md"), "utf8");
    const [, code = "", printed = ""] = /```python\n([\s\S]+?)```\n+```text\n([\s\S]+?)```/.exec(page) ?? [];
    folder = mkdtempSync(join(tmpdir(), "solehold-python-"));
    writeFileSync(join(folder, "solehold.py"), readFileSync(join(ROOT, "clients/python/solehold.py")));
    writeFileSync(join(folder, "program.py"), code.replace("http://127.0.0.1:7077", url));
    const { stdout } = await promisify(execFile)("python3", [join(folder, "program.py")]);
    expect(stdout).toBe(printed);
  });
});
