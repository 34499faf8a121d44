// The test command: build, lint, layer check, types of the tests, engines, all tests. Its last line is
// "N passed, N failed". Arguments are passed on to vitest (a path or a name narrows the run).
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { engineTable } from "./engine-table.mjs";

const ROOT = resolve(dirname(new URL(import.meta.url).pathname), "..");
const scratch = mkdtempSync(join(tmpdir(), "solehold-test-"));
const report = join(scratch, "report.json");
const started = process.hrtime.bigint();

/** @param {string} command @param {readonly string[]} args @returns {Promise<number>} */
function run(command, args) {
  return new Promise((resolvePromise) => {
    const child = spawn(command, args, { cwd: ROOT, stdio: "inherit" });
    child.on("error", () => resolvePromise(127));
    child.on("exit", (code, signal) => resolvePromise(code ?? (signal === null ? 1 : 128)));
  });
}

const bin = (name) => join(ROOT, "node_modules/.bin", name);

/** @type {readonly (readonly [string, string, readonly string[]])[]} */
const CHECKS = [
  ["build", bin("tsc"), ["-b"]],
  ["bundle", process.execPath, [join(ROOT, "scripts/bundle.mjs")]],
  ["lint", bin("biome"), ["check", "--error-on-warnings", "."]],
  ["lock file", process.execPath, [join(ROOT, "scripts/complete-lock.mjs"), "--check"]],
  ["layers and time", process.execPath, [join(ROOT, "scripts/check.mjs")]],
  ["types of the tests", bin("tsc"), ["-p", "tsconfig.test.json", "--noEmit"]],
  ["types of the engines", bin("tsc"), ["-p", "scripts/engines"]],
  ["vectors", process.execPath, [join(ROOT, "scripts/approval-vectors.mjs"), "--check"]],
];

/** Engines and tests only make sense on code that compiles; the other checks are all reported. */
async function main() {
  let failed = 0;
  for (const [title, command, args] of CHECKS) {
    console.log(`\n== ${title}`);
    const code = await run(command, args);
    if (code === 0) continue;
    failed += 1;
    console.error(`${title}: failed`);
    if (title === "build" || title === "bundle") return finish(0, failed);
  }
  const narrowed = process.argv.slice(2);
  console.log("\n== engines");
  if ((await run(process.execPath, [join(ROOT, "scripts/engines/cli.mjs"), "up"])) !== 0) {
    console.error("some engines could not be started: their tests will fail");
  }
  try {
    console.log("\n== tests");
    const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
    const code = await run(bin("vitest"), ["run", ...reporters, ...narrowed]);
    const { passed, failed: failedTests } = countTests(code);
    table = tableOf();
    return finish(passed, failed + failedTests);
  } finally {
    await run(process.execPath, [join(ROOT, "scripts/engines/cli.mjs"), "down"]);
  }
}

/** A runner that failed without a failed test (an unhandled error, a broken file) counts as one failure. */
function countTests(code) {
  try {
    const result = JSON.parse(readFileSync(report, "utf8"));
    const brokenFiles = result.testResults.filter(
      (file) => file.status === "failed" && file.assertionResults.length === 0,
    );
    const failedTests = result.numFailedTests + brokenFiles.length;
    return { passed: result.numPassedTests, failed: code !== 0 && failedTests === 0 ? 1 : failedTests };
  } catch {
    return { passed: 0, failed: 1 };
  }
}

/** Empty when the runner left no report. */
function tableOf() {
  try {
    return engineTable(JSON.parse(readFileSync(report, "utf8")));
  } catch {
    return "";
  }
}

let table = "";
/** @type {{ passed: number, failed: number }} */
let summary = { passed: 0, failed: 0 };

function finish(passed, failed) {
  summary = { passed, failed };
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
}

await main();
rmSync(scratch, { recursive: true, force: true });
const seconds = Number(process.hrtime.bigint() - started) / 1e9;
if (table !== "") console.log(`\n${table}`);
console.log(`\nin ${seconds.toFixed(0)} s`);
console.log(`${summary.passed} passed, ${summary.failed} failed`);
