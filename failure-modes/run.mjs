// npm run failure-modes [-- --subject NAME] [--fault NAME] [--check]: the same faults for every library, one process each, and
// the table of what was seen. Without a filter it writes docs/failure-modes.md. Each is given up after 90 s, and that is what
// was seen. --check runs nothing: it says whether the page speaks of the source that is there.
// Exit code 1: Solehold missed a bar, a backend did not start (nothing is written then), or the page is of another source.
// 2: a filter that names nothing.
import { execFileSync, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { BENCH, ensurePackages } from "../scripts/own-packages.mjs";
import { commit, sourceHash } from "../scripts/sources.mjs";

const ROOT = join(import.meta.dirname, "..");
const PAGE = join(ROOT, "docs/failure-modes.md");
/** What the page speaks of: what was run, and the versions of the other libraries. */
const SOURCES = ["packages/solehold/src", "failure-modes", "bench/package.json"];
const TIMEOUT_MS = 90_000;
/** What `one.mjs` prints when the backend is there: only then is an end of the process a finding. */
const STARTED = "started\n";
const NOT_APPLICABLE = { isSafe: null, seen: "does not apply: it has no server" };

const { values } = parseArgs({
  options: { subject: { type: "string" }, fault: { type: "string" }, check: { type: "boolean" } },
});
// Now, and not at the end: what changes meanwhile is not what was run.
const about = { commit: commit(), sha256: sourceHash(SOURCES), startedAt: new Date().toISOString() };
if (values.check) {
  const isFresh = readFileSync(PAGE, "utf8").includes(about.sha256);
  console.log(
    isFresh ? "the page speaks of this source" : "the page is of another source: npm run failure-modes",
  );
  process.exit(isFresh ? 0 : 1);
}
execFileSync("npm", ["run", "build"], { cwd: ROOT, stdio: ["ignore", "ignore", "inherit"] });
await ensurePackages(BENCH, console.error);
const { SUBJECTS, TTL_MS } = await import("./subjects.mjs");
const { FAULTS } = await import("./faults.mjs");
const subjects = chosen(
  "subject",
  SUBJECTS.map(({ name }) => name),
).map((name) => SUBJECTS.find((each) => each.name === name));
const faults = chosen("fault", Object.keys(FAULTS));

function chosen(option, all) {
  const wanted = values[option];
  if (wanted === undefined) return all;
  if (all.includes(wanted)) return [wanted];
  console.error(`--${option} must be one of ${all.join(", ")}; got ${wanted}`);
  process.exit(2);
}

/** What was seen; a process that ended without a word is a finding too, once its backend had started. */
function runOne(subject, fault) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(import.meta.dirname, "one.mjs"), subject, fault], {
      stdio: ["ignore", "pipe", "pipe"],
      timeout: TIMEOUT_MS,
      killSignal: "SIGKILL",
    });
    let printed = "";
    let complained = "";
    child.stdout.on("data", (chunk) => {
      printed += chunk;
    });
    child.stderr.on("data", (chunk) => {
      complained += chunk;
    });
    child.once("close", (code, signal) => {
      if (!printed.startsWith(STARTED))
        return reject(new Error(`the backend of ${subject} did not start:\n${complained || signal || code}`));
      const last = printed.trim().split("\n").at(-1) ?? "";
      if (code === 0 && last.startsWith("{")) return resolve(JSON.parse(last));
      const [, thrown = ""] = /^(?:\w+ \[?)?(\w*Error)\b/m.exec(complained) ?? [];
      const how =
        signal === "SIGKILL" ? "gave no answer" : `its process ended${thrown && `: uncaught ${thrown}`}`;
      if (values.fault !== undefined) console.error(complained);
      resolve({ isSafe: false, seen: how });
    });
  });
}

const rows = [];
const startedMs = performance.now();
let done = 0;
for (const fault of faults) {
  const cells = [];
  for (const subject of subjects) {
    const { isSafe, seen } = doesApply(subject, fault) ? await runOne(subject.name, fault) : NOT_APPLICABLE;
    const mark = isSafe === null ? "–" : isSafe ? "✔" : "✘";
    done += 1;
    const seconds = Math.round((performance.now() - startedMs) / 1_000);
    const progress = `${done}/${faults.length * subjects.length}, ${seconds} s`;
    console.log(`${mark} ${fault}: ${subject.name}: ${seen} (${progress})`);
    cells.push(`${mark} ${seen}`);
    if (subject.name === "solehold" && isSafe === false) process.exitCode = 1;
  }
  rows.push({ fault, cells });
}

if (values.subject === undefined && values.fault === undefined) writeFileSync(PAGE, page());

function doesApply({ backend }, fault) {
  return backend !== "files" || FAULTS[fault].needsServer !== true;
}

function page() {
  const row = (cells) => `| ${cells.join(" | ")} |`;
  const used = SUBJECTS.map(({ name, version, backend, settings }) =>
    row([`\`${name}\``, version(), backend, settings]),
  );
  const bars = Object.entries(FAULTS).map(([name, { what, good }]) => row([name, what, good]));
  return `# What goes wrong in lock libraries

<!-- Made by \`npm run failure-modes\`. Change that, not this. -->

The same faults for each library as its own documentation uses it, in one run: on a real Redis or etcd behind a proxy, or on
files. Each is in a process of its own, with a ttl of ${TTL_MS} ms. Times are to the nearest 50 ms. ✔ and ✘ say whether the bar of
the second table was met; a library that does not promise something is not at fault for it, but its user should know.

${[
  row(["fault", ...SUBJECTS.map(({ name }) => `\`${name}\``)]),
  row(["fault", ...SUBJECTS].map(() => "---")),
  ...rows.map(({ fault, cells }) => row([fault, ...cells])),
].join("\n")}

## The faults, and the bar
${[row(["fault", "what happens", "the bar"]), row(["---", "---", "---"]), ...bars].join("\n")}

## What was used
${[row(["library", "version", "backend", "settings"]), row(["---", "---", "---", "---"]), ...used].join("\n")}

Begun ${about.startedAt} on Node.js ${process.version}, at commit \`${about.commit}\`. The sha256 of ${SOURCES.map((path) => `\`${path}\``).join(", ")}
was \`${about.sha256}\`: \`npm run failure-modes -- --check\` compares it with the source that you have.

Cut off: the proxy lets nothing pass. A holder of a file lock is cut off by keeping its event loop busy, and the other one is
then another process.
`;
}
