// dynalite, the DynamoDB emulator from npm, with its tables in the engine's folder. It checks that
// requests are signed, but not by whom: any keys open it. It proves nothing about AWS itself.
import { join } from "node:path";
import { startEngine } from "./engine.mjs";
import { withPlace } from "./place.mjs";
import { http } from "./probes.mjs";
import { requireDynalite } from "./programs.mjs";

/** @type {typeof import("./index.mjs").startDynalite} */
export const startDynalite = async ({ dataDir: wanted } = {}) => {
  const startedAt = performance.now();
  const { script, version } = await requireDynalite();

  return withPlace({ name: "dynalite", dataDir: wanted, portCount: 1 }, async (place) => {
    const { dataDir, ports } = place;
    const [port = 0] = ports;
    const url = `http://127.0.0.1:${port}`;
    const server = place.define({
      name: "dynalite",
      command: process.execPath,
      args: [
        ...[script, "--host", "127.0.0.1", "--port", `${port}`, "--path", join(dataDir, "data")],
        // A table is there as soon as it was asked for; on AWS that takes seconds.
        ...["--createTableMs", "0", "--deleteTableMs", "0", "--updateTableMs", "0"],
      ],
      logFile: join(dataDir, "dynalite.log"),
      ready: async () => (await http(url)).body.startsWith("healthy"),
      env: { NODE_OPTIONS: "" },
    });
    const credentials = { accessKeyId: "test", secretAccessKey: "testtest", region: "us-east-1" };
    const processes = [server];
    return startEngine({ name: "dynalite", version, urls: [url], credentials, place, processes }, startedAt);
  });
};
