// A real NATS server with JetStream, its streams in the engine's folder.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { startEngine } from "./engine.mjs";
import { withPlace } from "./place.mjs";
import { firstLine } from "./probes.mjs";
import { requireProgram, run } from "./programs.mjs";

/** @type {typeof import("./index.mjs").startNats} */
export const startNats = async ({ dataDir: wanted, settings = [] } = {}) => {
  const startedAt = performance.now();
  const program = requireProgram("nats", "nats-server");
  const version = /v(\d\S*)/.exec(await run(program, ["--version"]))?.[1] ?? "unknown";

  return withPlace({ name: "nats", dataDir: wanted, portCount: 1 }, async (place) => {
    const { dataDir, ports } = place;
    const [port = 0] = ports;
    const configFile = join(dataDir, "nats.conf");
    const storeDir = JSON.stringify(join(dataDir, "data"));
    const lines = [`listen: "127.0.0.1:${port}"`, `jetstream { store_dir: ${storeDir} }`, ...settings];
    writeFileSync(configFile, `${lines.join("\n")}\n`);
    const server = place.define({
      name: "nats",
      command: program,
      args: ["--config", configFile],
      logFile: join(dataDir, "nats.log"),
      ready: async () => JSON.parse((await firstLine(port, "")).replace(/^INFO /, "")).jetstream === true,
    });
    const urls = [`nats://127.0.0.1:${port}`];
    return startEngine({ name: "nats", version, urls, place, processes: [server] }, startedAt);
  });
};
