// npm run check-alerts: Prometheus's own promtool judges the alert rules of deploy/, and runs the cases beside them: when each
// alert fires and when it does not. `npm test` does the same (docs/test/deploy.test.ts). promtool is in Debian's package
// prometheus, 20 MB, installed on first use when we are root, like the engines.
import { join } from "node:path";
import { ensureProgram } from "./engines/install.mjs";
import { run } from "./engines/programs.mjs";

const DEPLOY = join(import.meta.dirname, "../deploy");
const JUDGEMENTS = [
  ["check", "rules", "prometheus-alerts.yaml"],
  ["test", "rules", "prometheus-alerts.test.yaml"],
];

/** @type {import("./check-alerts.mjs").ensurePromtool} */
export const ensurePromtool = (say = console.error) =>
  ensureProgram({ program: "promtool", package: "prometheus" }, say);

/** @type {import("./check-alerts.mjs").checkAlerts} */
export async function checkAlerts(folder = DEPLOY) {
  const promtool = await ensurePromtool();
  const said = [];
  for (const args of JUDGEMENTS) said.push(await run(promtool, args, { cwd: folder }));
  return said.join("");
}

if (process.argv[1] === import.meta.filename) console.log(await checkAlerts());
