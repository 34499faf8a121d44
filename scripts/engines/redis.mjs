// A real Redis server. Append-only file, synced every second: an acknowledged write survives a kill of the process,
// but up to a second of them is lost with the machine. Tests that need another promise pass flags.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startEngine } from "./engine.mjs";
import { withPlace } from "./place.mjs";
import { firstLine } from "./probes.mjs";
import { requireProgram, run } from "./programs.mjs";

/** @type {typeof import("./index.mjs").startRedis} */
export const startRedis = async ({ dataDir: wanted, flags = [], password } = {}) => {
  const startedAt = performance.now();
  const program = requireProgram("redis", "redis-server");
  const version = /v=(\S+)/.exec(await run(program, ["--version"]))?.[1] ?? "unknown";

  return withPlace({ name: "redis", dataDir: wanted, portCount: 1 }, async (place) => {
    const { dataDir, ports } = place;
    const [port = 0] = ports;
    mkdirSync(join(dataDir, "data"));
    const server = place.define({
      name: "redis",
      command: program,
      args: [
        ...["--bind", "127.0.0.1", "--port", `${port}`, "--dir", join(dataDir, "data"), "--daemonize", "no"],
        ...["--appendonly", "yes", "--appendfsync", "everysec", "--save", ""],
        ...(password === undefined ? [] : ["--requirepass", password]),
        ...flags,
      ],
      logFile: join(dataDir, "redis.log"),
      // While it loads its file it answers -LOADING; a server that wants a password is up.
      ready: async () => /^(\+PONG|-NOAUTH)/.test(await firstLine(port, "PING\r\n")),
    });
    const userInfo = password === undefined ? "" : `:${encodeURIComponent(password)}@`;
    const urls = [`redis://${userInfo}127.0.0.1:${port}`];
    return startEngine({ name: "redis", version, urls, place, processes: [server] }, startedAt);
  });
};

/** @type {typeof import("./index.mjs").startRedisSentinel} */
export const startRedisSentinel = async ({ dataDir: wanted, primaryPort }) => {
  const startedAt = performance.now();
  const program = requireProgram("redis", "redis-server");
  const version = /v=(\S+)/.exec(await run(program, ["--version"]))?.[1] ?? "unknown";

  return withPlace({ name: "redis", dataDir: wanted, portCount: 1 }, async (place) => {
    const { dataDir, ports } = place;
    const [port = 0] = ports;
    // Sentinel writes what it learns into its configuration.
    const config = join(dataDir, "sentinel.conf");
    const lines = [
      ...["bind 127.0.0.1", `port ${port}`, `dir ${dataDir}`, "daemonize no"],
      `sentinel monitor primary 127.0.0.1 ${primaryPort} 1`,
      ...["sentinel down-after-milliseconds primary 500", "sentinel failover-timeout primary 3000"],
    ];
    writeFileSync(config, `${lines.join("\n")}\n`);
    const sentinel = place.define({
      name: "sentinel",
      command: program,
      args: [config, "--sentinel"],
      logFile: join(dataDir, "sentinel.log"),
      ready: async () => (await firstLine(port, "PING\r\n")).startsWith("+PONG"),
    });
    const urls = [`redis://127.0.0.1:${port}`];
    return startEngine({ name: "redis", version, urls, place, processes: [sentinel] }, startedAt);
  });
};
