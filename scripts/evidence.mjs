// `npm run evidence`: runs the tests that docs/seeds/rows.json names, and writes docs/seeds/README.md and artifacts/ from
// their results. A second run leaves no difference.
//   --check              compares instead of writing, as if all tests of the rows had passed, and runs none
//   --report FILE        with --check: takes the results from this report of vitest, and fails for a row whose test is missing
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import * as api from "solehold/seeds";
import { engineNames } from "./engines/index.mjs";
import { down, status } from "./engines/shared.mjs";
import { allPassed, filesOf, OWN_TEST, readRows, resultsOf, testOf } from "./seeds/index.mjs";

const ROOT = `${resolve(dirname(new URL(import.meta.url).pathname), "..")}/`;
const [mode, option, reportFile] = process.argv.slice(2);
const rows = readRows();

/** Runs these test files. @param {readonly string[]} files @returns {ReadonlyMap<string, string>} */
function run(files) {
  const scratch = mkdtempSync(join(tmpdir(), "solehold-evidence-"));
  const report = join(scratch, "report.json");
  try {
    const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
    spawnSync(join(ROOT, "node_modules/.bin/vitest"), ["run", ...reporters, ...files], {
      cwd: ROOT,
      stdio: "inherit",
    });
    return readReport(report);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function readReport(file) {
  return resultsOf(JSON.parse(readFileSync(file, "utf8")), ROOT);
}

/** Rows whose test did not pass, in words. @param {ReadonlyMap<string, string>} results */
function problemsOf(results, some = rows) {
  return some.flatMap((row) => {
    const result = results.get(testOf(row));
    return result === "passed"
      ? []
      : [`${row.id} ${row.item}: ${testOf(row)}: ${result ?? "there is no such test"}`];
  });
}

async function check(results) {
  const stale = [...(await filesOf(rows, results, api))].flatMap(([path, text]) => {
    const file = join(ROOT, path);
    return existsSync(file) && readFileSync(file, "utf8") === text
      ? []
      : [`${path} is not what npm run evidence writes`];
  });
  return [...problemsOf(results), ...stale];
}

async function write() {
  const wasUp = status().flatMap(({ name, state }) => (state === "up" ? [name] : []));
  const files = [...new Set(rows.map(({ file }) => file))];
  try {
    // The artifacts' own test looks at what is written, so it comes second.
    const results = new Map(run(files.filter((file) => file !== OWN_TEST)));
    const own = rows.filter(({ file }) => file === OWN_TEST);
    for (const row of own) results.set(testOf(row), "passed");
    for (const [path, text] of await filesOf(rows, results, api)) {
      mkdirSync(dirname(join(ROOT, path)), { recursive: true });
      writeFileSync(join(ROOT, path), text);
    }
    const looked = run([OWN_TEST]);
    const failed = [...looked].flatMap(([test, result]) =>
      result === "passed" ? [] : [`${test}: ${result}`],
    );
    return [...problemsOf(results), ...problemsOf(looked, own), ...failed];
  } finally {
    await down(engineNames.filter((name) => !wasUp.includes(name)));
  }
}

const problems =
  mode === "--check"
    ? await check(option === "--report" ? readReport(reportFile) : allPassed(rows))
    : await write();
for (const problem of problems) console.error(problem);
console.log(`rows of the documents: ${rows.length}, ${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;
