// A real nginx for the test of deploy/nginx.conf: Debian's, installed on first use when we are root, as a process of its own
// that needs no right and no folder of the system.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ensureProgram } from "./engines/install.mjs";
import { withPlace } from "./engines/place.mjs";
import { http } from "./engines/probes.mjs";

/** Where nginx keeps what it receives; by default in folders of the system. */
const SCRATCH = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];

/** @type {import("./nginx.mjs").ensureNginx} */
export const ensureNginx = (say = console.error) =>
  ensureProgram({ program: "nginx", package: "nginx" }, say);

/** @type {import("./nginx.mjs").startNginx} */
export async function startNginx(sitesOn) {
  const command = await ensureNginx();
  return withPlace({ name: "nginx", dataDir: undefined, portCount: 1 }, async (place) => {
    const { dataDir, ports } = place;
    const [port = 0] = ports;
    const scratch = SCRATCH.map((name) => `${name}_temp_path ${join(dataDir, name)};`).join(" ");
    const main = [
      "daemon off; master_process off; events {}",
      `pid ${join(dataDir, "pid")};`,
      `http { access_log off; ${scratch}\n${sitesOn(port)}}\n`,
    ];
    writeFileSync(join(dataDir, "nginx.conf"), main.join("\n"));
    const server = place.define({
      name: "nginx",
      command,
      args: ["-p", dataDir, "-c", join(dataDir, "nginx.conf"), "-e", "stderr"],
      logFile: join(dataDir, "nginx.log"),
      // Whatever the answer: a site with TLS says that it speaks no plain HTTP.
      ready: async () => (await http(`http://127.0.0.1:${port}/`)).status > 0,
    });
    await server.start();
    return { port, stop: () => place.vacate() };
  });
}
