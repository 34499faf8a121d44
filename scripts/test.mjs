// The test command: build, lint, layer check, types of the tests, packages, engines, all tests. Its last line is
// "N passed, N failed". Arguments are passed on to vitest. A path or a name narrows the run: then it only builds and
// runs those tests, with the engines that they ask for.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { ensureBrowser } from "./browser.mjs";
import { ensurePromtool } from "./check-alerts.mjs";
import { engineTable } from "./engine-table.mjs";
import { engineNames } from "./engines/index.mjs";
import { down, status } from "./engines/shared.mjs";
import { ADAPTED, BENCH, ensurePackages } from "./own-packages.mjs";

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

const EVIDENCE = join(ROOT, "scripts/evidence.mjs");

const bin = (name) => join(ROOT, "node_modules/.bin", name);

/** @typedef {readonly (readonly [string, string, readonly string[]])[]} Steps Title, command, arguments. */

/** Tests run the build, and make no sense on code that does not compile. @type {Steps} */
const BUILD = [
  ["build", bin("tsc"), ["-b"]],
  ["bundle", process.execPath, [join(ROOT, "scripts/bundle.mjs")]],
  ["stale output", process.execPath, [join(ROOT, "scripts/remove-stale.mjs")]],
  ["dashboard", "npm", ["run", "build", "-w", "packages/dashboard"]],
];

/** All of these are reported, whatever the others say. @type {Steps} */
const CHECKS = [
  ["lint", bin("biome"), ["check", "--error-on-warnings", "."]],
  ["lock files", process.execPath, [join(ROOT, "scripts/complete-lock.mjs"), "--check"]],
  ["layers and time", process.execPath, [join(ROOT, "scripts/check.mjs")]],
  ["types of the tests", bin("tsc"), ["-p", "tsconfig.test.json", "--noEmit"]],
  ["types of the engines", bin("tsc"), ["-p", "scripts/engines"]],
  ["packages", process.execPath, [join(ROOT, "scripts/check-packages.mjs")]],
  ["reference pages", process.execPath, [join(ROOT, "scripts/reference.mjs"), "--check"]],
  ["vectors", process.execPath, [join(ROOT, "scripts/approval-vectors.mjs"), "--check"]],
  ["rows of the documents", process.execPath, [EVIDENCE, "--check"]],
];

/** An option alone (`--reporter=verbose`) narrows nothing; a path, a name or `-t` does. */
const args = process.argv.slice(2);
const isNarrowed = args.some((arg) => !arg.startsWith("-") || /^(-t|--testNamePattern|--changed)/.test(arg));

/** @param {Steps} steps @returns {Promise<number>} How many failed. */
async function runAll(steps) {
  let failed = 0;
  for (const [title, command, commandArgs] of steps) {
    console.log(`\n== ${title}`);
    if ((await run(command, commandArgs)) === 0) continue;
    failed += 1;
    console.error(`${title}: failed`);
  }
  return failed;
}

async function main() {
  // Beside the build, because it mostly waits for the registry. The types of the tests need what is adapted, too.
  const needsAdapted = !isNarrowed || args.some((arg) => /adapters|guards|docs/.test(arg));
  const adapted = needsAdapted ? install(ADAPTED) : Promise.resolve();
  const unbuilt = await runAll(BUILD);
  await adapted;
  if (unbuilt > 0) return finish(0, unbuilt);
  const wasUp = status().flatMap(({ name, state }) => (state === "up" ? [name] : []));
  let failed = 0;
  try {
    if (isNarrowed) {
      console.log(
        `\nleft out: ${CHECKS.map(([title]) => title).join(", ")} (npm test without a path has them)`,
      );
    } else {
      failed = await runAll(CHECKS);
      await prepareAll();
    }
    console.log("\n== tests");
    const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
    const code = await run(bin("vitest"), ["run", ...reporters, ...args]);
    const { passed, failed: failedTests } = countTests(code);
    // The same artifacts, now from the results of this very run.
    if (!isNarrowed)
      failed += await runAll([["evidence", process.execPath, [EVIDENCE, "--check", "--report", report]]]);
    table = tableOf();
    return finish(passed, failed + failedTests);
  } finally {
    // Tests start the engines that they ask for. Those that somebody had running already stay.
    await down(engineNames.filter((name) => !wasUp.includes(name)));
  }
}

/** A test would install and start what it needs by itself, but one after the other and while its timeout runs. */
async function prepareAll() {
  console.log("\n== engines");
  if ((await run(process.execPath, [join(ROOT, "scripts/engines/cli.mjs"), "up"])) !== 0) {
    console.error("some engines could not be started: their tests will fail");
  }
  await Promise.all([install(BENCH), programs()]);
}

/** Debian's, one after the other: there is one lock for all of them. */
async function programs() {
  for (const ensure of [ensureBrowser, ensurePromtool])
    await ensure(console.log).catch(({ message }) => console.error(message));
}

/** @param {string} folder */
async function install(folder) {
  await ensurePackages(folder, console.log).catch(({ message }) => console.error(message));
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
