// `npm run engines -- up | down | status`, run as a command in a folder of its own, and what a test sees of it.
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { engine, engineRecord } from "./index.ts";
import { portOf, processState, RawSocket } from "./raw-socket.ts";

const cli = fileURLToPath(new URL("../../../../scripts/engines/cli.mjs", import.meta.url));
let parent: string;
let folder: string;

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "solehold-shared-"));
  folder = join(parent, "engines");
  vi.stubEnv("SOLEHOLD_ENGINES_DIR", folder);
  vi.stubEnv("SOLEHOLD_ENGINES", undefined);
});
afterEach(async () => {
  await engines("down");
  vi.unstubAllEnvs();
  rmSync(parent, { recursive: true });
});

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function engines(...args: string[]): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(process.execPath, [cli, ...args], { env: process.env }, (error, stdout, stderr) => {
      resolve({
        code: typeof error?.code === "number" ? error.code : error === null ? 0 : -1,
        stdout,
        stderr,
      });
    });
  });
}

test("up starts the engine for every later process, and again does nothing", async () => {
  const first = await engines("up", "redis");
  expect(first).toMatchObject({ code: 0, stderr: "" });
  const record = engineRecord("redis");
  expect(first.stdout).toContain(record.url);
  expect(first.stdout).toContain(record.version);
  const socket = await RawSocket.open(portOf(engine("redis")));
  expect(await socket.command("PING", "+PONG\r\n")).toBe("+PONG\r\n");
  socket.close();

  const second = await engines("up", "redis");
  expect(second.stdout).toContain("was up");
  expect(engineRecord("redis")).toEqual(record);
});

test("two commands at once start one engine", async () => {
  await Promise.all([engines("up", "redis"), engines("up", "redis")]);
  const status: { engines: { name: string; state: string }[] } = JSON.parse(
    (await engines("status", "--json")).stdout,
  );
  expect(status.engines.map(({ name, state }) => `${name} ${state}`)).toEqual(["redis up"]);
});

test("a test that asks for an engine starts it, and that one only, for every later process", async () => {
  const started = engineRecord("redis");
  const socket = await RawSocket.open(portOf(started.url));
  expect(await socket.command("PING", "+PONG\r\n")).toBe("+PONG\r\n");
  socket.close();
  expect((await engines("up", "redis")).stdout).toContain("was up");
  expect(engineRecord("redis")).toEqual(started);
  expect((await engines("status")).stdout).not.toContain("nats");
});

test("an engine that was killed is reported as dead, not handed to tests, and started anew", async () => {
  await engines("up", "redis", "nats");
  const before = engineRecord("redis");
  const nats = engineRecord("nats");
  const [redisProcess] = before.processes;
  process.kill(redisProcess!.pid, "SIGKILL");
  await expect.poll(() => processState(redisProcess!.pid)).toBeUndefined();

  expect((await engines("status")).stdout).toMatch(/redis\s+dead/);
  expect(engineRecord("redis").processes).not.toEqual(before.processes);
  await engines("up", "redis", "nats");
  expect(engineRecord("nats")).toEqual(nats);
});

test("engines end with the process that owns them", async () => {
  await engines("up", "redis");
  const { supervisor, processes } = engineRecord("redis");
  process.kill(supervisor.pid, "SIGKILL");
  for (const { pid } of processes) await expect.poll(() => processState(pid)).toBeUndefined();
  expect((await engines("status")).stdout).toMatch(/redis\s+dead/);
});

test("down ends every process and deletes the folder, and is content when there is none", async () => {
  await engines("up", "redis", "nats");
  const pids = ["redis", "nats"].flatMap((name) => {
    const { supervisor, processes } = engineRecord(name as "redis" | "nats");
    return [supervisor.pid, ...processes.map(({ pid }) => pid)];
  });
  expect((await engines("down")).stdout).toMatch(/stopped .*redis/);
  expect(pids.map(processState)).toEqual(pids.map(() => undefined));
  expect(existsSync(folder)).toBe(false);
  expect(await engines("down")).toMatchObject({ code: 0, stdout: "no engines were up\n" });
});

test.each([
  ["of one command", [["up", "redis", "nats"]]],
  [
    "of two commands",
    [
      ["up", "redis"],
      ["up", "nats"],
    ],
  ],
])(
  "down with a name ends that engine and leaves the others running: engines %s",
  async (_title, commands) => {
    for (const words of commands) await engines(...words);
    const redis = engineRecord("redis");
    const nats = engineRecord("nats");
    expect((await engines("down", "nats")).stdout).toBe("stopped nats\n");
    expect(nats.processes.map(({ pid }) => processState(pid))).toEqual([undefined]);
    expect(existsSync(nats.dataDir)).toBe(false);
    expect(engineRecord("redis")).toEqual(redis);
    expect((await engines("status")).stdout).not.toContain("nats");
  },
);

test("a test that asks for an engine which cannot be started learns why", () => {
  const elsewhere = join(parent, "other.json");
  vi.stubEnv("SOLEHOLD_ENGINES", elsewhere);
  writeFileSync(folder, "a file where the engines' folder should be");
  expect(() => engine("redis")).toThrow(`"redis" could not be started (looked in ${elsewhere}):\nEEXIST`);
});

test("an engine that this machine cannot run is named with the reason", () => {
  const record = { state: "unavailable", name: "ceph", reason: "installing radosgw needs root" };
  mkdirSync(folder);
  writeFileSync(join(folder, "state.json"), JSON.stringify({ schema: 1, engines: { ceph: record } }));
  expect(() => engine("ceph")).toThrow(
    'the engine "ceph" is unavailable here: installing radosgw needs root',
  );
});

test("SOLEHOLD_ENGINES names another state file, and one that is not ours is refused with its path", async () => {
  const elsewhere = join(parent, "other.json");
  vi.stubEnv("SOLEHOLD_ENGINES", elsewhere);
  const { url } = engineRecord("redis");
  expect(readFileSync(elsewhere, "utf8")).toContain(url);
  await engines("down");
  writeFileSync(elsewhere, "{");
  expect(() => engine("redis")).toThrow(`not JSON: delete ${elsewhere}`);
  vi.stubEnv("SOLEHOLD_ENGINES", undefined);
});

test("a wrong word on the command line is answered with what there is", async () => {
  expect(await engines("up", "mysql")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("unknown engine mysql: there are redis"),
  });
  expect(await engines("restart")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("unknown command restart"),
  });
  expect(await engines("down", "mysql")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("unknown engine mysql: there are redis"),
  });
  expect(await engines("status", "redis")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("takes no names"),
  });
});
