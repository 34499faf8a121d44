// npm run bench [-- NAME...] [--quick] [--json]: measures, prints tables, writes bench/results.
// Figures are ratios within one run: ours against the raw floor and against peers on the same machine.
import { fork } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { BENCH, ensurePackages } from "../scripts/own-packages.mjs";
import { machine, writeReport, writeResult } from "./lib/results.mjs";
import { notMeasured } from "./lib/rows.mjs";
import { contenderCells, figureCells, textTable } from "./lib/table.mjs";

const FOLDER = import.meta.dirname;
const CASE_PROCESS = join(FOLDER, "lib", "case-process.mjs");
const CASES = readdirSync(join(FOLDER, "cases"))
  .filter((file) => file.endsWith(".mjs"))
  .map((file) => file.replace(/\.mjs$/, ""));
const OPTIONS = {
  quick: { type: "boolean" },
  json: { type: "boolean" },
  rounds: { type: "string" },
  "round-ms": { type: "string" },
  out: { type: "string" },
  help: { type: "boolean", short: "h" },
};
const HELP = `npm run bench [-- NAME...] [options]

Measures Solehold against raw floors and other libraries, all in the same run, on engines of its own.

Cases: ${CASES.join(", ")} (default: all)

Options:
  --quick        short rounds: all cases in a few minutes
  --json         one JSON array on standard output: { case, unit, ours, floor, ratio, peers, bar, met }
  --rounds N     rounds of each contender
  --round-ms N   length of a round
  --out FOLDER   where the results go (default bench/results)
  --help         show this help`;

process.exitCode = await main();

async function main() {
  const wanted = readArguments();
  if ("problem" in wanted) {
    console.error(wanted.problem);
    return 2;
  }
  if (wanted.help) {
    console.log(HELP);
    return 0;
  }
  const { names, out, json } = wanted;
  await ensurePackages(BENCH, (message) => console.error(message));
  const results = [];
  for (const name of names) results.push(await measure(name, wanted));
  writeReport(out, CASES);
  const rows = results.flatMap((result) => result.rows);
  if (json) console.log(JSON.stringify(rows, null, 2));
  else console.log(textTable(figureCells(rows)));
  return results.some(({ failed }) => failed) ? 1 : 0;
}

/** A case that fails is reported as such and does not keep the others from running. */
async function measure(name, { quick, json, out, rounds, roundMs }) {
  const started = performance.now();
  const base = { name, quick, at: new Date().toISOString(), machine: machine() };
  const measured = await runCase({ name, quick, rounds, roundMs });
  const seconds = Math.round((performance.now() - started) / 1_000);
  if (measured === null) {
    console.error(`${name}: failed after ${seconds} s`);
    return { ...base, failed: true, rows: [notMeasured(name, "the case failed, see standard error")] };
  }
  const result = { ...base, seconds, ...measured };
  writeResult(out, result);
  console.error(`${name}: done in ${seconds} s`);
  if (!json) printCase(result);
  return result;
}

/** Null when it ended without a result. */
function runCase(request) {
  return new Promise((resolve, reject) => {
    const child = fork(CASE_PROCESS, [JSON.stringify(request)], { stdio: ["ignore", 2, "inherit", "ipc"] });
    let measured = null;
    child.once("message", (message) => {
      measured = message;
    });
    child.once("error", reject);
    child.once("exit", () => resolve(measured));
  });
}

function printCase({ about, conditions = [], doesMore, notes = [], groups = [] }) {
  const more = doesMore === undefined ? [] : [`ours does more: ${doesMore}`];
  console.log([about, ...conditions, ...more, ...notes].join("\n  "));
  for (const group of groups)
    console.log(`\n${group.title}, ${group.unit}\n${textTable(contenderCells(group))}`);
}

function readArguments() {
  let parsed;
  try {
    parsed = parseArgs({ allowPositionals: true, options: OPTIONS });
  } catch (error) {
    return { problem: `${error.message}\n\n${HELP}` };
  }
  const { values, positionals } = parsed;
  const unknown = positionals.filter((name) => !CASES.includes(name));
  if (unknown.length > 0)
    return { problem: `unknown case ${unknown.join(", ")}: there are ${CASES.join(", ")}` };
  const numbers = { rounds: values.rounds, "round-ms": values["round-ms"] };
  for (const [option, value] of Object.entries(numbers)) {
    if (value !== undefined && !/^[1-9]\d*$/.test(value)) {
      return { problem: `--${option} must be a whole number from 1, got ${value}` };
    }
  }
  const numberOf = (value) => (value === undefined ? undefined : Number(value));
  return {
    names: positionals.length > 0 ? positionals : CASES,
    help: values.help === true,
    quick: values.quick === true,
    json: values.json === true,
    out: values.out ?? join(FOLDER, "results"),
    rounds: numberOf(values.rounds),
    roundMs: numberOf(values["round-ms"]),
  };
}
