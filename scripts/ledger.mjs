// npm run ledger [-- --quick | --seeds N --seconds N | --check]: runs simulation, planted bugs, explorer, model and soaks on
// every engine, and writes what was seen to artifacts/ledger.json and docs/ledger.md. Exit code 1 when a promise was broken,
// a canary (a planted mistake) was not found, or a part ran nothing. --check runs nothing: it says whether the ledger in the
// repository speaks of the source that is there.
import { execFileSync, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { pageOf, problemsOf } from "./ledger/page.mjs";
import { commit, sourceHash } from "./sources.mjs";

const ROOT = join(import.meta.dirname, "..");
const JSON_FILE = join(ROOT, "artifacts/ledger.json");
/** What the ledger speaks of. A change elsewhere (docs, command line, dashboard) does not make it stale. */
const SOURCES = ["packages/solehold/src", "packages/simulator/src", "packages/server/src", "spec", "soak"];
/** Against a part that hangs: a busy machine takes several times as long as a quiet one. */
const PART_LIMIT_MS = 1_800_000;
const CLI = ["packages/cli/bin/solehold.js"];
const QUINT = [
  "node_modules/@informalsystems/quint/dist/src/cli.js",
  "run",
  "--backend=typescript",
  "--verbosity=1",
];
const { witnesses, mistakes } = JSON.parse(readFileSync(join(ROOT, "spec/mistakes.json"), "utf8"));

const sinceStart = () => `${Math.round(performance.now() / 1_000)} s`.padStart(5);
const say = (text) => console.error(`${sinceStart()}  ${text}`);

/** Never rejects: a program that cannot be started, or does not end in time, has no output. */
function output(args) {
  return new Promise((resolve) => {
    const stdio = ["ignore", "pipe", "pipe"];
    const child = spawn(process.execPath, args, { cwd: ROOT, stdio, timeout: PART_LIMIT_MS });
    let [stdout, stderr] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (chunk) => (stdout += chunk));
    child.stderr.setEncoding("utf8").on("data", (chunk) => (stderr += chunk));
    child.once("error", (error) => resolve({ code: null, stdout: "", stderr: error.message }));
    child.once("close", (code, signal) => resolve({ code: code ?? signal, stdout, stderr }));
  });
}

/** The JSON that a command prints; null when it prints none. */
async function json(title, args) {
  say(`${title}: begins`);
  const { code, stdout, stderr } = await output(args);
  try {
    const found = JSON.parse(stdout);
    say(`${title}: ends with ${code}`);
    return found;
  } catch {
    say(`${title}: no result (${code}). ${stderr.slice(-2_000)}`);
    return null;
  }
}

async function simulation(title, args) {
  const found = await json(`simulation, ${title}`, [...CLI, "sim", ...args, "--json"]);
  const command = `solehold sim ${args.join(" ")}`;
  return {
    title,
    command,
    ...(found ?? { seeds: 0, violations: 0, sometimes: {}, missed: [], nondeterministic: [] }),
  };
}

async function model(samples) {
  say("model: begins");
  const quint = (file, main, invariant, seed, count, more = []) =>
    output([
      ...QUINT,
      join("spec", file),
      ...[
        `--main=${main}`,
        `--invariant=${invariant}`,
        `--seed=${seed}`,
        `--max-samples=${count}`,
        "--max-steps=60",
      ],
      ...more,
    ]);
  const { code, stdout } = await quint("lease.qnt", "shipped", "safe", 3, samples, [
    "--witnesses",
    ...witnesses,
  ]);
  const reached = Object.fromEntries(
    [...stdout.matchAll(/^(\w+) was witnessed in (\d+) trace/gm)].map(([, name, count]) => [
      name,
      Number(count),
    ]),
  );
  const ran = stdout.includes("No violation found") || code === 1;
  const found = [];
  for (const { main, invariant, seed } of mistakes) {
    const { stdout: said } = await quint("mistakes.qnt", main, invariant, seed, 1_000);
    found.push({ bug: main, oracle: said.includes("[violation] Found an issue") ? invariant : null });
  }
  say("model: ends");
  return { traces: ran ? samples : 0, violations: code === 0 ? 0 : 1, reached, witnesses, bugs: found };
}

/** In 5 s the guard's mistake went unnoticed in two of five runs: workers are stopped at random. */
const CANARY_SECONDS = "30";

/** The soak's own canaries: a guard that accepts every fence, and workers without leases. */
async function soakCanaries() {
  const found = [];
  for (const plant of ["guard", "lease"]) {
    const args = [
      "soak/run.mjs",
      "--engine",
      "embedded",
      "--seconds",
      CANARY_SECONDS,
      "--plant",
      plant,
      "--json",
    ];
    const [result] = (await json(`soak, planted: ${plant}`, args)) ?? [];
    const oracle = result?.violations[0]?.replaceAll(/\d{4,}/g, "…") ?? null;
    found.push({ bug: plant, oracle });
  }
  return found;
}

async function run({ seeds, seconds }) {
  const startedAt = new Date().toISOString();
  // Now, and not at the end: what changes meanwhile is not what was run.
  const about = { commit: commit(), sources: { folders: SOURCES, sha256: sourceHash(SOURCES) } };
  const simulations = [
    await simulation("shipped code", ["--seeds", `${seeds}`]),
    await simulation("clocks out of bounds", ["--seeds", `${Math.ceil(seeds / 4)}`, "--clocks", "unbounded"]),
  ];
  // Both run on one core.
  const [bugs, small] = await Promise.all([
    json("planted bugs", [...CLI, "sim", "--planted-bugs", "--json"]),
    (async () => ({
      explorer: await json("explorer", [...CLI, "explore", "--json"]),
      explorerBugs: await json("explorer, planted bugs", [...CLI, "explore", "--bugs", "--json"]),
      model: await model(seeds),
    }))(),
  ]);
  const soaks = await json(`soaks, ${seconds} s each`, ["soak/run.mjs", "--seconds", `${seconds}`, "--json"]);
  const soakBugs = await soakCanaries();
  return {
    startedAt,
    seconds: Math.round(performance.now() / 1_000),
    command: `npm run ledger${process.argv.length > 2 ? ` -- ${process.argv.slice(2).join(" ")}` : ""}`,
    ...about,
    node: process.version,
    machine: `${cpus().length} x ${cpus()[0]?.model ?? "unknown"}`,
    ...{ simulations, bugs: bugs ?? [], ...small, soaks: soaks ?? [], soakBugs },
  };
}

function check() {
  const ledger = JSON.parse(readFileSync(JSON_FILE, "utf8"));
  const isFresh = ledger.sources.sha256 === sourceHash(SOURCES);
  console.log(
    isFresh ? "the ledger speaks of this source" : `the ledger is of ${ledger.commit}: npm run ledger`,
  );
  return isFresh ? 0 : 1;
}

async function main() {
  const options = { seeds: "string", seconds: "string", quick: "boolean", check: "boolean" };
  const { values } = parseArgs({
    options: Object.fromEntries(Object.entries(options).map(([name, type]) => [name, { type }])),
  });
  if (values.check) return check();
  const wanted = values.quick ? { seeds: 100, seconds: 5 } : { seeds: 1_000, seconds: 30 };
  for (const name of ["seeds", "seconds"]) {
    if (values[name] === undefined) continue;
    if (!/^[1-9]\d{0,6}$/.test(values[name]))
      throw new RangeError(`--${name} must be a whole number from 1, got '${values[name]}'`);
    wanted[name] = Number(values[name]);
  }
  execFileSync("npm", ["run", "build"], { cwd: ROOT, stdio: ["ignore", "ignore", "inherit"] });
  say("built");
  const ledger = await run(wanted);
  writeFileSync(JSON_FILE, `${JSON.stringify(ledger, null, 2)}\n`);
  writeFileSync(join(ROOT, "docs/ledger.md"), pageOf(ledger));
  const problems = problemsOf(ledger);
  for (const problem of problems) console.error(`RED: ${problem}`);
  console.log(
    `docs/ledger.md: ${problems.length === 0 ? "green" : `${problems.length} problems`}, ${sinceStart().trim()}`,
  );
  return problems.length === 0 ? 0 : 1;
}

process.exitCode = await main().catch((error) => {
  console.error(`ledger: ${error.message}`);
  return 2;
});
