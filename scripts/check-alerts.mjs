// npm run check-alerts: Prometheus's own promtool judges the alert rules of deploy/, and runs the cases beside them: when each
// alert fires and when it does not. Not part of `npm test`, because Debian's package prometheus brings 20 MB; it is installed
// on first use, when we are root.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { installPackages } from "./engines/install.mjs";
import { findProgram } from "./engines/programs.mjs";

const DEPLOY = join(import.meta.dirname, "../deploy");

if (findProgram("promtool") === undefined) await installPackages(["prometheus"], console.error);
const promtool = findProgram("promtool");
if (promtool === undefined)
  throw new Error("Debian's package prometheus did not bring the program 'promtool'");
for (const args of [
  ["check", "rules", "prometheus-alerts.yaml"],
  ["test", "rules", "prometheus-alerts.test.yaml"],
]) {
  const { status } = spawnSync(promtool, args, { cwd: DEPLOY, stdio: "inherit" });
  if (status !== 0) process.exit(1);
}
