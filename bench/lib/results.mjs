// What a run leaves behind: <case>.json with everything, <case>.svg, and one README.md over all cases that were
// measured so far in the folder.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg, totalmem } from "node:os";
import { join } from "node:path";
import { barChart, lineChart } from "./svg.mjs";
import { contenderCells, figureCells, markdownTable, times } from "./table.mjs";

export function machine() {
  const [first] = cpus();
  const load = loadavg().map((value) => Number(value.toFixed(2)));
  const memoryGb = Math.round(totalmem() / 2 ** 30);
  return {
    processors: cpus().length,
    model: first?.model ?? "unknown",
    memoryGb,
    node: process.version,
    load,
  };
}

export function writeResult(folder, result) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${result.name}.json`), `${JSON.stringify(result, null, 2)}\n`);
  const plot = plotOf(result);
  if (plot !== null) writeFileSync(join(folder, `${result.name}.svg`), plot);
}

export function writeReport(folder, names) {
  const results = names
    .map((name) => join(folder, `${name}.json`))
    .filter(existsSync)
    .map((path) => JSON.parse(readFileSync(path, "utf8")));
  const intro =
    "# Figures\n\nWritten by `npm run bench`. Ratios compare rounds that ran side by side; rates are of this machine only.\n";
  writeFileSync(join(folder, "README.md"), [intro, ...results.map(section)].join("\n"));
}

function section(result) {
  const { name, about, conditions = [], doesMore, groups = [], rows, notes = [], quick } = result;
  const { processors, model, node, load } = result.machine;
  const lines = [`## ${name}`, "", `${about}.`, ""];
  lines.push(
    `\`npm run bench -- ${name}${quick ? " --quick" : ""}\` on ${processors} x ${model}, Node ${node}, load ${load[0]} at the start.`,
    "",
  );
  lines.push(...conditions.map((text) => `- ${text}`));
  if (doesMore !== undefined) lines.push(`- ours does more: ${doesMore}`);
  lines.push(...notes.map((text) => `- ${text}`));
  lines.push("", markdownTable(figureCells(rows)));
  for (const group of groups)
    lines.push(`**${group.title}**, ${group.unit}`, "", markdownTable(contenderCells(group)));
  if (plotOf(result) !== null) lines.push(`![${name}](${name}.svg)`, "");
  return lines.join("\n");
}

function plotOf({ name, about, groups = [], chart, machine: { processors, node } }) {
  const title = `${name}: ${about.replace(/^[^:]*: /, "")}`;
  const subtitle = `one run on ${processors} processors, Node ${node}; medians of interleaved rounds`;
  if (chart?.kind === "lines") return lineChart({ title, subtitle, ...chart });
  const bars = chart?.groups ?? groups.map(barsOf);
  return bars.length === 0 ? null : barChart({ title, subtitle, groups: bars });
}

function barsOf({ title, unit, contenders }) {
  const bars = contenders.map(({ name, perSecond, role, ratio }) => ({
    label: name,
    value: perSecond,
    role,
    ...(ratio.perSecond === null ? {} : { note: times(ratio.perSecond) }),
  }));
  return { title, unit: `${unit}/s`, bars };
}
