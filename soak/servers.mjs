// Two Solehold servers that share an embedded store, as users start them: the command, each in a process of its own.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startEngine } from "../scripts/engines/engine.mjs";
import { withPlace } from "../scripts/engines/place.mjs";

const CLI = fileURLToPath(new URL("../packages/cli/bin/solehold.js", import.meta.url));
const MANIFEST = new URL("../packages/server/package.json", import.meta.url);
/** Clients must find their way while one of them is away: requests that wait are not given long to finish. */
const DRAIN_MS = "500";

/** @returns {Promise<import("../scripts/engines/index.mjs").Engine>} */
export async function startServers() {
  const startedAt = performance.now();
  const { version } = JSON.parse(readFileSync(MANIFEST, "utf8"));
  return await withPlace({ name: "server", dataDir: undefined, portCount: 2 }, async (place) => {
    const store = `embedded:${join(place.dataDir, "store")}`;
    const urls = place.ports.map((port) => `http://127.0.0.1:${port}`);
    const processes = place.ports.map((port, index) => {
      const dataDir = join(place.dataDir, `server-${index}`);
      const where = ["--port", String(port), "--data-dir", dataDir, "--store", store];
      return place.define({
        name: `server-${index}`,
        command: process.execPath,
        args: [CLI, "serve", ...where, "--drain-ms", DRAIN_MS, "--log-level", "warn"],
        logFile: join(place.dataDir, `server-${index}.log`),
        ready: async () => (await fetch(`${urls[index]}/readyz`)).ok,
      });
    });
    return await startEngine({ name: "server", version, urls, place, processes }, startedAt);
  });
}
