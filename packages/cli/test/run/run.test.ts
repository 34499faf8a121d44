// What a command under a lease is given, and what becomes of it: real processes on an embedded store.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { CliProcess, catchesSignals, PROGRAM } from "../support/cli-process.ts";
import { run } from "../support/fake-io.ts";
import { temporaryFolder, until } from "../support/temporary.ts";
import { endlessWork, fenceAtBegin, linesOf, overlap, shortWork } from "../support/work.ts";

function shell() {
  const folder = temporaryFolder();
  const env = { SOLEHOLD_URL: `embedded:${join(folder, "data")}` };
  return {
    folder,
    log: join(folder, "log"),
    start: (argv: readonly string[], more: Record<string, string> = {}) =>
      new CliProcess(argv, { env: { ...env, ...more } }),
    call: (argv: readonly string[]) => run(argv, { env }),
  };
}

/** As the kernel names it: T when stopped, Z when only a parent has to collect it; null when there is none. */
function stateOf(processId: number): string | null {
  try {
    const status = readFileSync(`/proc/${processId}/stat`, "utf8");
    return status.slice(status.lastIndexOf(")") + 2).charAt(0);
  } catch {
    return null;
  }
}

function isAlive(processId: number): boolean {
  const state = stateOf(processId);
  return state !== null && state !== "Z";
}

describe("a command under a lease", () => {
  it("gets its key, its fence and its end, but not the token", async () => {
    const { start } = shell();
    const secrets = { SOLEHOLD_API_KEY: "sk-secret", SOLEHOLD_TOKEN: "secret" };
    const first = start(["run", "a/b", "--ttl", "30s", "--holder", "me", "--", "env"], secrets);
    expect(await first.exit).toEqual({ code: 0, signal: null });
    const got = Object.fromEntries(first.stdout.split("\n").map((line) => line.split(/=(.*)/s)));
    expect(got).toMatchObject({ SOLEHOLD_KEY: "a/b", SOLEHOLD_FENCE: expect.stringMatching(/^\d+$/) });
    for (const name of ["SOLEHOLD_HOLDER", ...Object.keys(secrets)]) expect(got).not.toHaveProperty(name);
    expect(new Date(String(got.SOLEHOLD_EXPIRES_AT)).toISOString()).toBe(got.SOLEHOLD_EXPIRES_AT);
    expect(first.stdout).not.toContain("TOKEN");
    expect(first.stderr).toBe("");
    const second = start(["run", "a/b", "--", "sh", "-c", "echo $SOLEHOLD_FENCE"]);
    await second.exit;
    expect(BigInt(second.stdout.trim())).toBeGreaterThan(BigInt(String(got.SOLEHOLD_FENCE)));
  });

  it("does not get an API key that stands in the address of a server", async () => {
    const { start, folder } = shell();
    const SOLEHOLD_URL = "http://x:sk-secret@a.example,https://y:sk-secret@b.example:1/c";
    const store = `embedded:${join(folder, "data")}`;
    const child = start(["run", "a/b", "--store", store, "--", "env"], { SOLEHOLD_URL });
    expect(await child.exit).toEqual({ code: 0, signal: null });
    expect(child.stdout).toContain("SOLEHOLD_URL=http://a.example,https://b.example:1/c\n");
    expect(child.stdout).not.toContain("sk-secret");
  });

  it("has this process's stdin, stdout, stderr and NODE_OPTIONS", async () => {
    const { start } = shell();
    const script = "cat; echo to-stderr >&2; echo $NODE_OPTIONS";
    const process = start(["run", "job", "--", "sh", "-c", script], { NODE_OPTIONS: "--no-warnings" });
    process.type("typed\n");
    process.type(null);
    expect(await process.exit).toEqual({ code: 0, signal: null });
    expect(process.stdout).toBe("typed\n--no-warnings\n");
    expect(process.stderr).toBe("to-stderr\n");
  });

  it("passes its exit code back, and 128 + the signal that ended it, and leaves the lease free", async () => {
    const { start, call } = shell();
    expect((await start(["run", "job", "--", "sh", "-c", "exit 42"]).exit).code).toBe(42);
    expect((await start(["run", "job", "--", "sh", "-c", "kill -9 $$"]).exit).code).toBe(137);
    expect(JSON.parse((await call(["get", "job", "--json"])).stdout)).toMatchObject({ status: "released" });
  });

  it("that cannot be found or run gives 127 or 126, and leaves the lease free", async () => {
    const { start, call } = shell();
    const missing = start(["run", "job", "--", "no-such-program"]);
    expect((await missing.exit).code).toBe(127);
    expect(missing.stderr).toContain('cannot find the command "no-such-program"');
    expect((await start(["run", "job", "--", "/etc/passwd"]).exit).code).toBe(126);
    expect(JSON.parse((await call(["get", "job", "--json"])).stdout)).toMatchObject({ status: "released" });
  });

  it.each(["SIGINT", "SIGHUP", "SIGUSR2"] as const)("gets %s that was sent to run", async (signal) => {
    const { start } = shell();
    const name = signal.slice(3);
    const script = `trap 'echo got ${name}; exit 9' ${name}; echo ready; while :; do sleep 0.02; done`;
    const process = start(["run", "job", "--", "sh", "-c", script]);
    await until("the command is ready", () => process.stdout.includes("ready"));
    process.kill(signal);
    expect(await process.exit).toEqual({ code: 9, signal: null });
    expect(process.stdout).toBe(`ready\ngot ${name}\n`);
  });

  it("stops with Ctrl-Z and goes on after it", async () => {
    const { start, log } = shell();
    const process = start(["run", "job", "--ttl", "60s", "--", ...endlessWork("it", log)]);
    await until("it is at work", () => fenceAtBegin("it", log));
    process.kill("SIGTSTP");
    const state = (): string | undefined => readFileSync(`/proc/${process.pid}/stat`, "utf8").split(") ")[1];
    await until("run has stopped", () => state()?.startsWith("T"));
    const written = linesOf(log).length;
    process.kill("SIGCONT");
    await until("it goes on", () => linesOf(log).length > written);
    process.kill("SIGTERM");
    expect((await process.exit).code).toBe(143);
  });

  it("waiting for its lease ends on SIGINT with 130, and never starts", async () => {
    const { start, call, folder } = shell();
    await call(["acquire", "job", "--ttl", "10m"]);
    const mark = join(folder, "mark");
    const process = start(["run", "job", "--wait", "forever", "--json", "--", "touch", mark]);
    await until("it has begun to wait", () => process.handlesSignals);
    process.kill("SIGINT");
    expect((await process.exit).code).toBe(130);
    expect(existsSync(mark)).toBe(false);
  });
});

describe("one run in another", () => {
  it("has both leases while the command works, and the inner one's loss ends the command alone", async () => {
    const { start, call, log } = shell();
    const inner = [process.execPath, PROGRAM, "run", "b", "--", ...endlessWork("it", log)];
    const both = start(["run", "a", "--", ...inner]);
    await until("it is at work", () => fenceAtBegin("it", log));
    for (const key of ["a", "b"])
      expect([key, (await call(["acquire", key, "--wait", "0"])).code]).toEqual([key, 3]);
    await call(["revoke", "b"]);
    expect((await both.exit).code).toBe(4);
    expect((await call(["acquire", "a", "--wait", "0"])).code).toBe(0);
  });
});

describe("several names in one run", () => {
  it("are held together, and the command gets the fence of each, in the order in which they were named", async () => {
    const { start, call } = shell();
    await start(["run", "a", "--", "true"]).exit;
    // It is told nothing of the names of a run around it.
    const around = { SOLEHOLD_KEY_3: "outer", SOLEHOLD_FENCE_3: "7" };
    const process = start(["run", "b", "a", "--ttl", "30s", "--", "sh", "-c", "env; read go"], around);
    await until("it is at work", () => process.stdout.includes("SOLEHOLD_FENCE_2="));
    const got = Object.fromEntries(process.stdout.split("\n").map((line) => line.split(/=(.*)/s)));
    expect(got).toMatchObject({ SOLEHOLD_KEY: "b", SOLEHOLD_KEY_2: "a", SOLEHOLD_SLOT_2: "0" });
    expect(Object.keys(got).filter((name) => /_3$/.test(name))).toEqual([]);
    for (const [key, fence] of [
      ["a", got.SOLEHOLD_FENCE_2],
      ["b", got.SOLEHOLD_FENCE],
    ]) {
      const { status, fence: shown } = JSON.parse((await call(["get", String(key), "--json"])).stdout);
      expect([key, status, BigInt(shown)]).toEqual([key, "held", BigInt(String(fence))]);
    }
    process.type("\n");
    expect((await process.exit).code).toBe(0);
    for (const key of ["a", "b"])
      expect((await call(["acquire", key, "--wait", "0"])).code, `${key} is free`).toBe(0);
  });

  it("end the command when any of them is lost, and the others are released", async () => {
    const { start, call, log } = shell();
    const process = start(["run", "a", "b", "c", "--ttl", "10m", "--", ...endlessWork("it", log)]);
    await until("it is at work", () => fenceAtBegin("it", log));
    await call(["revoke", "b"]);
    expect((await process.exit).code).toBe(4);
    expect(process.stderr).toBe("solehold: lost the lease b: it was lost (revoked); stopping the command\n");
    for (const key of ["a", "c"])
      expect((await call(["acquire", key, "--wait", "0"])).code, `${key} is free`).toBe(0);
  });

  it("are none when one of them is held by another: it says which, and waits for it if it may", async () => {
    const { start, call, folder } = shell();
    const held = JSON.parse((await call(["acquire", "b", "--ttl", "10m", "--json"])).stdout);
    const mark = join(folder, "mark");
    const denied = start(["run", "a", "b", "c", "--wait", "0", "--", "touch", mark]);
    expect((await denied.exit).code).toBe(3);
    expect(denied.stderr).toContain("b is held by");
    const waiting = start(["run", "c", "b", "a", "--wait", "forever", "--json", "--", "touch", mark]);
    await until("it waits", () => waiting.stderr.includes('"event":"waiting"'));
    expect(JSON.parse(waiting.stderr.split("\n")[0] ?? "")).toMatchObject({
      key: "b",
      keys: ["c", "b", "a"],
    });
    expect(existsSync(mark)).toBe(false);
    await call(["release", "b", "--token", held.token]);
    expect((await waiting.exit).code).toBe(0);
    expect(existsSync(mark)).toBe(true);
  });
});

describe("a supervisor that takes longer to start than the lease lasts", () => {
  it("costs no time of the lease: it is acquired when the command can start", async () => {
    const { start, log } = shell();
    const [slow, supervisor] = await until("a supervisor was stopped before it was ready", async () => {
      const process = start(["run", "job", "--ttl", "1s", "--", ...endlessWork("it", log)]);
      const child = await until("it has a supervisor", () => childrenOf(process.pid)[0]);
      onTestFinished(() => void (isAlive(child) && globalThis.process.kill(child, "SIGKILL")));
      globalThis.process.kill(child, "SIGSTOP");
      await until("the supervisor stands still", () => stateOf(child) === "T");
      // Its first act is to shield itself from signals.
      if (!catchesSignals(child)) return [process, child] as const;
      globalThis.process.kill(child, "SIGKILL");
      return null;
    });
    const other = start(["run", "job", "--", "true"]);
    expect((await other.exit).code).toBe(0);
    expect(other.stderr).toBe("");
    globalThis.process.kill(supervisor, "SIGCONT");
    await until("it is at work", () => fenceAtBegin("it", log));
    slow.kill("SIGTERM");
    expect((await slow.exit).code).toBe(143);
  });
});

describe("the end of a command", () => {
  it("is the end of everything that it started, before the next one begins", async () => {
    const { start, log } = shell();
    const leaving = `(${"trap '' TERM; while :; do echo first >> \"$0\"; sleep 0.02; done"}) & sleep 0.2; exit 5`;
    const first = start(["run", "job", "--ttl", "3s", "--", "sh", "-c", leaving, log]);
    await until("the background process is at work", () => linesOf(log).length > 0);
    const second = start(["run", "job", "--wait", "60s", "--", ...shortWork("second", log)]);
    expect((await first.exit).code).toBe(5);
    expect((await second.exit).code).toBe(0);
    expect(overlap("first", "second", log)).toBeNull();
  });

  it("comes at once when the lease is revoked, with a grace to finish", async () => {
    const { start, call, log } = shell();
    const script = `trap 'echo finishing >> "$0"; exit 0' TERM; echo begins >> "$0"; while :; do sleep 0.02; done`;
    const process = start(["run", "job", "--ttl", "10m", "--", "sh", "-c", script, log]);
    await until("it is at work", () => linesOf(log).includes("begins"));
    await call(["revoke", "job"]);
    expect((await process.exit).code).toBe(4);
    expect(linesOf(log)).toEqual(["begins", "finishing"]);
    expect(process.stderr).toContain("lost the lease job: it was lost (revoked)");
  });

  it("is left to the command itself with --on-loss ignore", async () => {
    const { start, call, log, folder } = shell();
    const go = join(folder, "go");
    const script = `echo begins >> "$0"; until [ -e "$1" ]; do sleep 0.02; done; exit 6`;
    const process = start(["run", "job", "--on-loss", "ignore", "--", "sh", "-c", script, log, go]);
    await until("it is at work", () => linesOf(log).includes("begins"));
    await call(["revoke", "job"]);
    await until("the loss was noticed", () => process.stderr.includes("the command goes on"));
    await start(["run", "other", "--", "touch", go]).exit;
    expect((await process.exit).code).toBe(6);
  });

  it("follows when its supervisor dies", async () => {
    const { start, log } = shell();
    const process = start(["run", "job", "--", ...endlessWork("it", log)]);
    await until("it is at work", () => fenceAtBegin("it", log));
    const supervisor = childrenOf(process.pid)[0] ?? Number.NaN;
    const command = childrenOf(supervisor)[0] ?? Number.NaN;
    globalThis.process.kill(supervisor, "SIGKILL");
    expect((await process.exit).code).toBe(1);
    expect(process.stderr).toContain("ended unexpectedly, so the command was killed");
    expect(isAlive(command)).toBe(false);
  });

  it("leaves no process behind", async () => {
    const { start, log } = shell();
    const process = start(["run", "job", "--", ...endlessWork("it", log)]);
    await until("it is at work", () => fenceAtBegin("it", log));
    const supervisor = childrenOf(process.pid)[0] ?? Number.NaN;
    expect(isAlive(supervisor)).toBe(true);
    process.kill("SIGTERM");
    await process.exit;
    await until("the supervisor has gone", () => !isAlive(supervisor));
  });
});

function childrenOf(processId: number): readonly number[] {
  const text = readFileSync(`/proc/${processId}/task/${processId}/children`, "utf8");
  return text.split(" ").filter(Boolean).map(Number);
}
