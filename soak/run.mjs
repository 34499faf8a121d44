// npm run soak [-- --engine redis,postgres --seconds 60 --processes 6 --json]: real processes on real engines, disturbed
// at random. Exit code 0 when every promise was kept on every engine, 1 when one was broken, 2 for wrong arguments.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { soak } from "./driver.mjs";
import { ENGINES } from "./engines.mjs";
import { printProgress, printResults } from "./report.mjs";

const NAMES = Object.keys(ENGINES);
const PLANTS = ["guard", "lease"];
const OPTIONS = {
  engine: { type: "string", default: NAMES.join(",") },
  seconds: { type: "string", default: "60" },
  processes: { type: "string", default: "6" },
  plant: { type: "string" },
  json: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
};
const HELP = `npm run soak [-- options]

Workers take leases and add to guarded counters while they are stopped, continued and killed at random
and the engine is restarted under them. No update may be lost, and fences must grow.

Options:
  --engine NAMES   of ${NAMES.join(", ")}, separated by commas (default: all)
  --seconds N      how long each engine is disturbed (default 60)
  --processes N    how many workers (default 6)
  --plant MISTAKE  to see that it is noticed: guard (the guard accepts every fence), lease (nobody takes one)
  --json           one JSON array on standard output
  --help           show this help`;

for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130));
process.exitCode = await main();

async function main() {
  let wanted;
  try {
    wanted = readArguments();
  } catch (error) {
    console.error(`soak: ${error.message}`);
    return 2;
  }
  if (wanted.help) {
    console.log(HELP);
    return 0;
  }
  if (!existsSync(fileURLToPath(import.meta.resolve("solehold")))) {
    console.error("soak: the library is not built: run `npm run build`");
    return 2;
  }
  const results = [];
  for (const name of wanted.names) results.push(await soak(name, { ...wanted, onProgress: printProgress }));
  printResults(results, wanted.json);
  return results.every(({ violations }) => violations.length === 0) ? 0 : 1;
}

function readArguments() {
  const { values } = parseArgs({ options: OPTIONS });
  const names = values.engine.split(",");
  const unknown = names.find((name) => !NAMES.includes(name));
  if (unknown !== undefined) throw new Error(`--engine '${unknown}' is not one of ${NAMES.join(", ")}`);
  if (values.plant !== undefined && !PLANTS.includes(values.plant))
    throw new Error(`--plant '${values.plant}' is not one of ${PLANTS.join(", ")}`);
  return {
    names,
    seconds: wholeNumber("seconds", values.seconds, 1, 86_400),
    processes: wholeNumber("processes", values.processes, 1, 64),
    plant: values.plant ?? null,
    json: values.json,
    help: values.help,
  };
}

function wholeNumber(name, text, least, most) {
  const value = Number(text);
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new Error(`--${name} must be a whole number from ${least} to ${most}, got '${text}'`);
}
