// The table of engines at the end of the test command: what each can do, as its open store said in the tests, and how
// many cases of the conformance kit passed and failed on it. Everything comes from vitest's report, so an engine whose
// tests did not run has no numbers here.

const KIT_TITLE = /^(?:the store contract|leases) on (.+)$/;

/**
 * @typedef {object} EngineRow
 * @property {string} name
 * @property {Record<string, unknown> | null} engine What its store stated; null when that test did not run.
 * @property {number} passed
 * @property {number} failed
 */

/** @param {any} report vitest's JSON @returns {readonly EngineRow[]} */
export function engineRows(report) {
  const tests = report.testResults.flatMap((file) => file.assertionResults);
  /** @type {Map<string, { name: string, engine: Record<string, unknown> | null, passed: number, failed: number }>} */
  const rows = new Map();
  for (const { meta } of tests) {
    const engine = meta?.engine;
    if (engine !== undefined) rows.set(engine.name, { name: engine.name, engine, passed: 0, failed: 0 });
  }
  for (const { ancestorTitles, status } of tests) {
    const subject = KIT_TITLE.exec(ancestorTitles[0] ?? "")?.[1];
    if (subject === undefined || (status !== "passed" && status !== "failed")) continue;
    // "Redis through a node-redis client" is Redis, too.
    const name = [...rows.keys()].find((known) => subject.startsWith(known)) ?? subject;
    const row = rows.get(name) ?? { name, engine: null, passed: 0, failed: 0 };
    rows.set(name, row);
    row[status] += 1;
  }
  return [...rows.values()];
}

/** Empty when the report has nothing about engines. @param {any} report */
export function engineTable(report) {
  const rows = engineRows(report);
  if (rows.length === 0) return "";
  const text = (value) => (value === undefined ? "?" : String(value));
  const yes = (value) => (value === undefined ? "?" : value ? "yes" : "no");
  const cells = rows.map(({ name, engine, passed, failed }) => [
    name,
    text(engine?.version),
    yes(engine?.durable),
    text(engine?.clock),
    yes(engine?.watch),
    yes(engine?.conditionalDelete),
    text(engine?.maxBatch),
    String(passed),
    String(failed),
  ]);
  const head = [
    "engine",
    "version",
    "durable",
    "clock",
    "watch",
    "conditional delete",
    "batch",
    "kit passed",
    "kit failed",
  ];
  const lines = [head, ...cells];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column]))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

// By itself, on a report: node scripts/engine-table.mjs report.json
if (process.argv[1] === new URL(import.meta.url).pathname) {
  const { readFileSync } = await import("node:fs");
  console.log(engineTable(JSON.parse(readFileSync(process.argv[2] ?? "", "utf8"))));
}
