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
import { ensureNginx } from "./nginx.mjs";
import { ADAPTED, BENCH, ensurePackages } from "./own-packages.mjs";
import { planOf, startedFor } from "./test-plan.mjs";

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

/**
 * For what runs beside something else: its words come out together, under its title, when it ends.
 * @param {Step} step @returns {Promise<number>}
 */
function runBeside([title, command, args]) {
  return new Promise((resolvePromise) => {
    const child = spawn(command, args, { cwd: ROOT, stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text) => {
        said += text;
      });
    const end = (code) => {
      console.log(`\n== ${title}\n${said.trimEnd()}`);
      resolvePromise(code);
    };
    child.on("error", ({ message }) => {
      said += message;
      end(127);
    });
    child.on("close", (code, signal) => end(code ?? (signal === null ? 1 : 128)));
  });
}

const EVIDENCE = join(ROOT, "scripts/evidence.mjs");

const bin = (name) => join(ROOT, "node_modules/.bin", name);

/** @typedef {readonly [string, string, readonly string[]]} Step Title, command, arguments. */
/** @typedef {readonly Step[]} Steps */

/** Tests run the build, and make no sense on code that does not compile. @type {Steps} */
const BUILD = [
  ["build", bin("tsc"), ["-b"]],
  ["bundle", process.execPath, [join(ROOT, "scripts/bundle.mjs")]],
  ["stale output", process.execPath, [join(ROOT, "scripts/remove-stale.mjs")]],
  ["dashboard", "npm", ["run", "build", "-w", "packages/dashboard"]],
];

/** All of these are reported, whatever the others say; the longest begin first. @type {Steps} */
const CHECKS = [
  ["packages", process.execPath, [join(ROOT, "scripts/check-packages.mjs")]],
  ["types of the tests", bin("tsc"), ["-p", "tsconfig.test.json", "--noEmit"]],
  ["lint", bin("biome"), ["check", "--error-on-warnings", "."]],
  ["lock files", process.execPath, [join(ROOT, "scripts/complete-lock.mjs"), "--check"]],
  ["layers and time", process.execPath, [join(ROOT, "scripts/check.mjs")]],
  ["types of the engines", bin("tsc"), ["-p", "scripts/engines"]],
  ["reference pages", process.execPath, [join(ROOT, "scripts/reference.mjs"), "--check"]],
  ["vectors", process.execPath, [join(ROOT, "scripts/approval-vectors.mjs"), "--check"]],
  ["rows of the documents", process.execPath, [EVIDENCE, "--check"]],
];

const args = process.argv.slice(2);
const plan = planOf(args);

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

/** Two at a time. @param {Steps} steps @returns {Promise<number>} How many failed. */
async function runInLanes(steps) {
  const left = [...steps];
  let failed = 0;
  const lane = async () => {
    for (let step = left.shift(); step !== undefined; step = left.shift()) {
      if ((await runBeside(step)) === 0) continue;
      failed += 1;
      console.error(`${step[0]}: failed`);
    }
  };
  await Promise.all([lane(), lane()]);
  return failed;
}

async function main() {
  const wasUp = status().flatMap(({ name, state }) => (state === "up" ? [name] : []));
  const adapted = plan.installsAdapted ? install(ADAPTED) : null;
  const prepared = plan.preparesAll ? prepareAll() : null;
  try {
    const unbuilt = await runAll(BUILD);
    if (unbuilt > 0) return finish(0, unbuilt);
    await adapted;
    let failed = 0;
    if (plan.runsChecks) failed = await runInLanes(CHECKS);
    else
      console.log(
        `\nleft out: ${CHECKS.map(([title]) => title).join(", ")} (npm test without a path has them)`,
      );
    await prepared;
    console.log("\n== tests");
    const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
    const code = await run(bin("vitest"), ["run", ...reporters, ...args]);
    const { passed, failed: failedTests } = countTests(code);
    // The same artifacts, now from the results of this very run.
    if (plan.runsChecks)
      failed += await runAll([["evidence", process.execPath, [EVIDENCE, "--check", "--report", report]]]);
    table = tableOf();
    return finish(passed, failed + failedTests);
  } finally {
    await Promise.all([adapted, prepared]);
    await down(startedFor(engineNames, wasUp));
  }
}

/**
 * A test would install and start what it needs by itself, but one after the other and while its timeout runs. Here it is
 * downloads and disk for the most part, so it goes on while the build and the checks keep the cores busy. Never rejects.
 */
async function prepareAll() {
  const engines = ["engines", process.execPath, [join(ROOT, "scripts/engines/cli.mjs"), "up"]];
  if ((await runBeside(engines)) !== 0)
    console.error("some engines could not be started: their tests will fail");
  await install(BENCH);
  for (const ensure of [ensureBrowser, ensurePromtool, ensureNginx])
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
