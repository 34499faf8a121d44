import { spawn } from "node:child_process";
import { appendFile, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { FileAuditTrail } from "solehold/internal";
import { describe, expect, it, onTestFinished } from "vitest";
import { engine } from "../../solehold/test/engines/index.ts";
import { CliProcess } from "./support/cli-process.ts";

const PROGRAM = fileURLToPath(new URL("../bin/solehold.js", import.meta.url));

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "solehold-cli-"));
  onTestFinished(async () => await rm(path, { recursive: true, force: true }));
  return path;
}

async function run(
  ...argv: readonly string[]
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = new CliProcess(argv);
  const { code } = await child.exit;
  return { code, stdout: child.stdout, stderr: child.stderr };
}

async function served(...argv: readonly string[]): Promise<{ child: CliProcess; url: string }> {
  const child = new CliProcess(["serve", "--json", "--port", "0", ...argv]);
  for (let tries = 0; tries < 1_000 && !child.stdout.includes("\n"); tries += 1) {
    if (child.hasExited) throw new Error(child.stderr);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return { child, url: JSON.parse(child.stdout).url };
}

describe("solehold serve", () => {
  it("serves leases until SIGTERM, then drains and leaves with 0", async () => {
    const dataDir = await folder();
    const { child, url } = await served("--data-dir", dataDir);
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ name: "a", holder: "h", token: "t" });
    expect((await fetch(`${url}/v1/leases/acquire`, { method: "POST", headers, body })).status).toBe(200);
    expect((await run("audit", "ls", "--server", url, "--json")).stdout).toContain('"action":"grant"');
    const verified = await run("audit", "verify", "--server", url);
    expect([verified.code, verified.stdout]).toEqual([0, expect.stringMatching(/^2 entries are proven/)]);
    process.kill(child.pid, "SIGTERM");
    expect(await child.exit).toEqual({ code: 0, signal: null });
  });

  it("reads its files again on SIGHUP, and goes on", async () => {
    const { child, url } = await served("--data-dir", await folder(), "--store", "memory:");
    process.kill(child.pid, "SIGHUP");
    for (let tries = 0; tries < 500 && !child.stderr.includes("read again"); tries += 1)
      await new Promise((resolve) => setTimeout(resolve, 10));
    expect(child.stderr).toContain("certificates and rules were read again");
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
  });

  it("answers although its log cannot be written", async () => {
    const argv = ["--port", "0", "--store", "memory:", "--audit", "memory", "--data-dir", await folder()];
    const words = [process.execPath, PROGRAM, "serve", "--json", "--log-level", "debug", ...argv];
    const child = spawn("sh", ["-c", 'exec "$@" 2>/dev/full', "sh", ...words]);
    onTestFinished(() => void child.kill("SIGKILL"));
    const line = await new Promise((resolve) => child.stdout.once("data", resolve));
    const { url } = JSON.parse(String(line));
    const answer = await fetch(`${url}/v1/nowhere`);
    expect([answer.status, await answer.json()]).toMatchObject([404, { reason: "ROUTE_NOT_FOUND" }]);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
  });

  it("refuses settings that cannot work with exit code 2 and the fix", async () => {
    const dataDir = await folder();
    const open = await run("serve", "--host", "0.0.0.0", "--data-dir", dataDir);
    expect([open.code, open.stderr]).toEqual([2, expect.stringMatching(/no API keys.*solehold keys add/)]);
    const port = await run("serve", "--port", "many");
    expect([port.code, port.stderr]).toEqual([2, expect.stringMatching(/--port must be a whole number/)]);
  });
});

describe("a secret in a URL", () => {
  it("is not printed by serve, in its answer or in its log, whatever its log level is", async () => {
    // A Redis whose default user needs no password takes any.
    const store = `${engine("redis").replace("redis://", "redis://default:S3CRETPW@")}/7`;
    const argv = ["--data-dir", await folder(), "--store", store, "--log-level", "debug"];
    const { child, url } = await served(...argv);
    await fetch(`${url}/readyz`);
    process.kill(child.pid, "SIGTERM");
    await child.exit;
    expect(JSON.parse(child.stdout).store).toMatch(/^redis:\/\/\*\*\*@/);
    expect(child.stderr).toContain('"listening"');
    expect(child.stdout + child.stderr).not.toContain("S3CRETPW");
  });

  it("is not printed by audit, which uses it as the API key", async () => {
    const dataDir = await folder();
    const add = ["keys", "add", "a", "--tenants", "*", "--actions", "*", "--data-dir", dataDir, "--json"];
    const { key } = JSON.parse((await run(...add)).stdout);
    const { url } = await served("--data-dir", dataDir, "--store", "memory:", "--audit", "memory");
    const secret = (good: string) => url.replace("http://", `http://x:${good}@`);
    expect(await run("audit", "ls", "--server", secret(key))).toMatchObject({ code: 0, stderr: "" });
    for (const server of [secret("shk_S3CRET"), "http://x:shk_S3CRET@127.0.0.1:1", "x:shk_S3CRET@ y"]) {
      const { code, stdout, stderr } = await run("audit", "ls", "--server", server);
      expect([code === 0, stderr === "", (stdout + stderr).includes("S3CRET")]).toEqual([
        false,
        false,
        false,
      ]);
    }
  });
});

describe("solehold keys", () => {
  it("makes a key that works, lists it without its secret, and revokes it", async () => {
    const dataDir = await folder();
    const made = JSON.parse((await run("keys", "add", "ci", "--data-dir", dataDir, "--json")).stdout);
    expect(made).toMatchObject({ name: "ci", tenants: ["default"], prefixes: [""] });
    expect(made.actions).toEqual(["acquire", "renew", "release", "use", "resume", "handoff", "read"]);
    const { url } = await served("--data-dir", dataDir, "--store", "memory:");
    const status = async (): Promise<number> =>
      (await fetch(`${url}/v1/leases`, { headers: { authorization: `Bearer ${made.key}` } })).status;
    expect(await status()).toBe(200);
    const listed = await run("keys", "ls", "--data-dir", dataDir);
    expect(listed.stdout).toContain(made.id);
    expect(listed.stdout + (await run("keys", "ls", "--data-dir", dataDir, "--json")).stdout).not.toContain(
      made.key,
    );
    expect((await run("keys", "revoke", made.id, "--data-dir", dataDir)).code).toBe(0);
    for (let tries = 0; tries < 500 && (await status()) !== 401; tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    expect(await status()).toBe(401);
    expect((await run("keys", "revoke", made.id, "--data-dir", dataDir)).code).toBe(1);
  });

  it("makes a key for a role that ends by itself", async () => {
    const dataDir = await folder();
    const argv = ["keys", "add", "audits", "--role", "auditor", "--expires", "90d", "--data-dir", dataDir];
    const made = JSON.parse((await run(...argv, "--json")).stdout);
    expect(made.actions).toEqual(["read", "audit"]);
    expect((Date.parse(made.expiresAt) - Date.now()) / 86_400_000).toBeCloseTo(90, 1);
    expect((await run("keys", "ls", "--data-dir", dataDir)).stdout).toContain(
      `valid until ${made.expiresAt.slice(0, 10)}`,
    );
  });

  it.each([
    [["keys", "add"], "needs a NAME"],
    [["keys", "add", "x", "--role", "auditor", "--actions", "read"], "exclude each other"],
    [["keys", "add", "x", "--expires", "soon"], "--expires"],
    [["keys", "revoke"], "needs the ID"],
    [["keys", "add", "x", "--actions", "aquire"], "did you mean 'acquire'"],
    [["keys", "add", "x", "--tenants", "a/b"], "--tenants must have"],
  ])("says what is wrong with %j", async (argv, message) => {
    const { code, stderr } = await run(...argv, "--data-dir", await folder());
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });
});

describe("solehold audit", () => {
  it("lists, exports and proves the trail of a server that is not running, and finds a change", async () => {
    const dataDir = await folder();
    const trail = join(dataDir, "audit");
    const { child, url } = await served("--data-dir", dataDir, "--store", "memory:");
    const headers = { "content-type": "application/json" };
    for (const name of ["a", "b", "c"]) {
      const body = JSON.stringify({ name, holder: "h", token: "secret-token" });
      await fetch(`${url}/v1/leases/acquire`, { method: "POST", headers, body });
    }
    process.kill(child.pid, "SIGTERM");
    await child.exit;
    const exported = await run("audit", "export", "--folder", trail, "--key", "b");
    expect(
      exported.stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).key),
    ).toEqual(["b"]);
    expect(JSON.parse(exported.stdout)).toMatchObject({ caller: "local", address: "127.0.0.1" });
    const listed = await run("audit", "ls", "--folder", trail, "--limit", "2", "--caller", "local");
    expect(listed.stdout.trim().split("\n").length).toBe(3);
    expect(exported.stdout + listed.stdout).not.toContain("secret-token");
    expect((await run("audit", "verify", "--folder", trail)).code).toBe(0);
    const file = join(trail, "audit-000000000001.jsonl");
    await appendFile(file, (await readFile(file, "utf8")).split("\n")[0] ?? "");
    await appendFile(file, "\n");
    const changed = await run("audit", "verify", "--folder", trail);
    expect([changed.code, changed.stdout]).toEqual([1, expect.stringContaining("NOT PROVEN from entry 6")]);
  });

  /** A trail of small segments. */
  async function writtenTrail(name: string, entries: number): Promise<string> {
    const trail = join(await folder(), "audit");
    const file = await FileAuditTrail.open({ folder: trail, durability: "background", segmentBytes: 1_024 });
    for (let index = 0; index < entries; index += 1)
      await file.append({
        ...{ at: index, tenant: "t", key: `${name}-${index}`, leaseId: "", action: "grant", allowed: true },
        ...{ reason: "OK_DECISION_COMPUTE", reasonCode: 1, traceId: "", outcome: "applied" },
      });
    await file.close();
    return trail;
  }

  it("finds with a head that was kept elsewhere that the whole trail was made up anew, or cut", async () => {
    const trail = await writtenTrail("true", 8);
    const head = (await run("audit", "head", "--folder", trail)).stdout.trim();
    expect(head).toMatch(/^8:[0-9a-f]{64}$/);
    const verify = async (where: string) => await run("audit", "verify", "--folder", where, "--anchor", head);
    expect((await verify(trail)).code).toBe(0);
    const madeUp = await verify(await writtenTrail("false", 8));
    expect([madeUp.code, madeUp.stdout]).toEqual([1, expect.stringContaining("(rewritten)")]);
    const cut = await verify(await writtenTrail("true", 3));
    expect([cut.code, cut.stdout]).toEqual([1, expect.stringContaining("(truncated)")]);
  });

  it("believes a head only if it is signed by the key that was named", async () => {
    const trail = await writtenTrail("true", 8);
    const keys = await folder();
    const keygen = async (name: string) => {
      const out = join(keys, name);
      const made = JSON.parse((await run("keygen", "--out", out, "--json")).stdout);
      return { out, publicKey: made.publicKey as string };
    };
    const [own, other] = [await keygen("own.pem"), await keygen("other.pem")];
    const sign = async (key: string, where = trail) =>
      (await run("audit", "head", "--folder", where, "--sign-key", key)).stdout.trim();
    const head = await sign(own.out);
    const verify = async (anchor: string, ...more: readonly string[]) => {
      const argv = ["--folder", trail, "--anchor", anchor, ...more];
      return (await run("audit", "verify", ...argv)).code;
    };
    const signed = ["--public-key", own.publicKey];
    expect(await verify(head, ...signed)).toBe(0);
    const [sequence, hash, signature] = head.split(":");
    expect([
      await verify(head),
      await verify(`${sequence}:${hash}`, ...signed),
      await verify(await sign(other.out), ...signed),
      await verify(`${sequence}:${"0".repeat(64)}:${signature}`, ...signed),
      await verify(await sign(own.out, await writtenTrail("false", 8)), ...signed),
    ]).toEqual([2, 2, 1, 1, 1]);
  });

  it("proves what is left after the first segments were archived, from where they ended", async () => {
    const trail = await writtenTrail("a", 12);
    const [first, second] = (await readdir(trail)).filter((name) => name.startsWith("audit-")).sort();
    const lines = (await readFile(join(trail, first ?? ""), "utf8")).trimEnd().split("\n");
    const { sequence, hash } = JSON.parse(lines.at(-1) ?? "");
    expect(second).toContain(String(sequence + 1));
    await rm(join(trail, first ?? ""));
    expect((await run("audit", "verify", "--folder", trail)).code).toBe(1);
    const rest = await run("audit", "verify", "--folder", trail, "--start-after", `${sequence}:${hash}`);
    expect([rest.code, rest.stdout]).toEqual([0, expect.stringContaining(`${12 - sequence} entries`)]);
  });

  it("asks a server for its head, and for a proof against one", async () => {
    const { url } = await served("--data-dir", await folder(), "--store", "memory:", "--audit", "memory");
    const head = (await run("audit", "head", "--server", url)).stdout.trim();
    expect((await run("audit", "verify", "--server", url, "--anchor", head)).code).toBe(0);
    const [sequence] = head.split(":");
    const other = await run("audit", "verify", "--server", url, "--anchor", `${sequence}:${"0".repeat(64)}`);
    expect([other.code, other.stdout]).toEqual([1, expect.stringContaining("(rewritten)")]);
    const wrong = await run("audit", "verify", "--server", url, "--anchor", "12");
    expect([wrong.code, wrong.stderr]).toEqual([
      2,
      expect.stringContaining("--anchor must be SEQUENCE:HASH"),
    ]);
  });
});
