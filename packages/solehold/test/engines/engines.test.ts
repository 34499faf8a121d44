// A test may start its own server and do to it what operations do: pause, resume, kill, restart. Seen over a bare
// socket and in the kernel's process table, not through the engines' own eyes.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Engine, startCeph, startEtcd, startPostgres, startRedis } from "./index.ts";
import { childrenOf, portOf, processState, RawSocket } from "./raw-socket.ts";

const onlyProcess = (engine: Engine) => engine.processes[0]!;

describe("a Redis of the test's own", () => {
  let redis: Engine;
  beforeAll(async () => {
    redis = await startRedis({ flags: ["--appendfsync", "always"] });
  });
  afterAll(() => redis.stop());

  test("answers at its URL, as the version it says, on loopback only", async () => {
    const socket = await RawSocket.open(portOf(redis.url));
    expect(await socket.command("PING", "+PONG\r\n")).toBe("+PONG\r\n");
    socket.send("INFO server\r\n");
    await expect.poll(() => socket.received).toContain(`redis_version:${redis.version}`);
    socket.close();
    const bound = await RawSocket.open(portOf(redis.url));
    const expected = "*2\r\n$4\r\nbind\r\n$9\r\n127.0.0.1\r\n";
    expect(await bound.command("CONFIG GET bind", expected)).toBe(expected);
    bound.close();
  });

  test("is silent while paused and answers the waiting request when resumed", async () => {
    const other = await startRedis();
    const socket = await RawSocket.open(portOf(redis.url));
    await redis.pause();
    expect(processState(onlyProcess(redis).pid)).toBe("T");
    socket.send("PING\r\n");
    // A server that runs answers many times over in the meantime; this one must have said nothing.
    const witness = await RawSocket.open(portOf(other.url));
    for (let count = 0; count < 50; count += 1) await witness.command("PING", "+PONG\r\n");
    expect(socket.received).toBe("");
    await redis.resume();
    expect(await socket.take(7)).toBe("+PONG\r\n");
    socket.close();
    witness.close();
    await other.stop();
  });

  test("loses its connections when killed, and comes back on the same port with what it had acknowledged", async () => {
    const socket = await RawSocket.open(portOf(redis.url));
    expect(await socket.command("SET kept yes", "+OK\r\n")).toBe("+OK\r\n");
    const firstPid = onlyProcess(redis).pid;
    await redis.kill();
    await socket.closed;
    expect(processState(firstPid)).toBeUndefined();
    expect(onlyProcess(redis).running).toBe(false);
    await expect(RawSocket.open(portOf(redis.url))).rejects.toThrow("ECONNREFUSED");

    await redis.restart();
    expect(onlyProcess(redis).pid).not.toBe(firstPid);
    const again = await RawSocket.open(portOf(redis.url));
    expect(await again.command("GET kept", "$3\r\nyes\r\n")).toBe("$3\r\nyes\r\n");
    again.close();
  });

  test("can be killed and stopped while it is paused", async () => {
    const paused = await startRedis();
    await paused.pause();
    await paused.kill();
    await paused.restart();
    await paused.pause();
    await onlyProcess(paused).stop("SIGTERM");
    expect(onlyProcess(paused).running).toBe(false);
    await paused.stop();
  });

  test("takes flags that override the defaults, and a password that its URL carries", async () => {
    const strict = await startRedis({ flags: ["--appendfsync", "always"], password: "s3cret/@" });
    const socket = await RawSocket.open(portOf(strict.url));
    expect(await socket.command("PING", "-NOAUTH")).toBe("-NOAUTH");
    socket.close();
    const authorised = await RawSocket.open(portOf(strict.url));
    const password = decodeURIComponent(new URL(strict.url).password);
    expect(await authorised.command(`AUTH ${password}`, "+OK\r\n")).toBe("+OK\r\n");
    const expected = "*2\r\n$11\r\nappendfsync\r\n$6\r\nalways\r\n";
    expect(await authorised.command("CONFIG GET appendfsync", expected)).toBe(expected);
    authorised.close();
    await strict.stop();
  });

  test("leaves neither process nor data behind after stop, and says so when asked to restart", async () => {
    const short = await startRedis();
    expect(existsSync(short.dataDir)).toBe(true);
    await short.stop();
    await short.stop();
    expect(existsSync(short.dataDir)).toBe(false);
    expect(processState(onlyProcess(short).pid)).toBeUndefined();
    await expect(short.restart()).rejects.toThrow("start a new one");
  });

  test("reports the end of the server's own log when it cannot start", async () => {
    await expect(startRedis({ flags: ["--no-such-directive", "1"] })).rejects.toThrow(/no-such-directive/);
  });

  test("dies with the process that started it, and the next one removes the folder it left", async () => {
    const killed = await startInChild("setInterval(() => {}, 1000);");
    expect(processState(killed.pid)).toBeDefined();
    killed.child.kill("SIGKILL");
    await expect.poll(() => processState(killed.pid)).toBeUndefined();
    expect(existsSync(killed.dataDir)).toBe(true);

    const left = await startInChild("process.exit(0);");
    await expect.poll(() => processState(left.pid)).toBeUndefined();
    await expect.poll(() => existsSync(left.dataDir)).toBe(false);
    expect(existsSync(killed.dataDir)).toBe(false);
  });
});

test("a paused PostgreSQL has all of its processes paused, not only the first", async () => {
  const postgres = await startPostgres();
  const { pid } = onlyProcess(postgres);
  const children = () => childrenOf(readdirSync("/proc").map(Number).filter(Number.isInteger), pid);
  await postgres.pause();
  const states = [pid, ...children()].map(processState).filter((state) => state !== undefined);
  expect(states.length).toBeGreaterThan(3);
  expect(new Set(states)).toEqual(new Set(["T"]));
  await postgres.resume();
  await postgres.stop();
});

test("an etcd cluster elects another leader when its leader is killed, and takes the dead member back", async () => {
  const etcd = await startEtcd({ members: 3 });
  expect(etcd.urls).toHaveLength(3);
  const leader = await etcd.leader();
  await leader.kill();
  const successor = await etcd.leader();
  expect(successor.name).not.toBe(leader.name);
  await leader.restart();
  expect((await etcd.leader()).running).toBe(true);
  expect(etcd.processes.every((member) => member.running)).toBe(true);
  await etcd.stop();
});

test("a Ceph in memory survives the loss of its gateway, and says what to do when its storage was killed", async () => {
  const ceph = await startCeph();
  const gateway = ceph.processes.find(({ name }) => name === "rgw")!;
  await gateway.kill();
  await expect(RawSocket.open(portOf(ceph.url))).rejects.toThrow("ECONNREFUSED");
  // Resolves only after a conditional write was kept and a stale one refused.
  await ceph.restart();
  await ceph.kill();
  await expect(ceph.restart()).rejects.toThrow('start it with { storage: "disk" }');
  await ceph.stop();
});

async function startInChild(afterwards: string) {
  const engines = new URL("../../../../scripts/engines/index.mjs", import.meta.url).href;
  const script = `
    import { startRedis } from ${JSON.stringify(engines)};
    const redis = await startRedis();
    process.stdout.write(JSON.stringify({ pid: redis.processes[0].pid, dataDir: redis.dataDir }), () => { ${afterwards} });`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = await once(child.stdout, "data");
  const { pid, dataDir }: { pid: number; dataDir: string } = JSON.parse(String(line));
  return { child, pid, dataDir };
}
