// npm run bench [-- NAME...] [--quick] [--json]: measures, prints a table, writes bench/results/*.json.
// Figures are ratios within one run: ours against the raw floor and against peers on the same machine.
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { printTable } from "./lib/table.mjs";

const FOLDER = import.meta.dirname;
const names = readdirSync(join(FOLDER, "cases"))
  .filter((file) => file.endsWith(".mjs"))
  .map((file) => file.replace(/\.mjs$/, ""));

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: "boolean" }, json: { type: "boolean" }, help: { type: "boolean", short: "h" } },
});

if (values.help) {
  console.log(`npm run bench [-- NAME...] [--quick] [--json]\ncases: ${names.join(", ")}`);
} else {
  process.exitCode = await main();
}

async function main() {
  const unknown = positionals.filter((name) => !names.includes(name));
  if (unknown.length > 0) {
    console.error(`unknown case ${unknown.join(", ")}: there are ${names.join(", ")}`);
    return 2;
  }
  const results = [];
  for (const name of positionals.length > 0 ? positionals : names) {
    const { run } = await import(`./cases/${name}.mjs`);
    const say = (message) => process.stderr.isTTY && process.stderr.write(`\r\x1b[K${name}: ${message}`);
    const rows = await run({ quick: values.quick === true, say });
    say("");
    results.push(...rows);
    mkdirSync(join(FOLDER, "results"), { recursive: true });
    writeFileSync(join(FOLDER, "results", `${name}.json`), `${JSON.stringify(rows, null, 2)}\n`);
  }
  if (values.json) console.log(JSON.stringify(results, null, 2));
  else printTable(results);
  return 0;
}
