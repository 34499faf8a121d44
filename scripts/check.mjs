// Three rules that neither the compiler nor the linter knows:
// 1. Layers: a folder of the library imports only from folders before it, and packages only from packages before them.
// 2. Time, timers and randomness come in through the env port, so that a simulation can stand in for them.
// 3. No cycle of imports between the folders of a package, nor between its files. Imports of types count, and so do
//    imports that load on demand: a cycle is about what a reader has to know at once.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";

const ROOT = resolve(import.meta.dirname ?? dirname(new URL(import.meta.url).pathname), "..");
const LIBRARY = join(ROOT, "packages/solehold/src");

/** In order: each may import itself and those before it. */
const LAYERS = [
  "core",
  "placement",
  "approvals",
  "env",
  "support",
  "store",
  "stores",
  "executor",
  "audit",
  "layers",
  "wire",
  "remote",
  "waiting",
  "client",
  "guards",
  "adapters",
  "writer",
  "facades",
  "doctor",
  "conformance",
];
/** Decisions without a clock or I/O; they hash and verify. */
const PURE = new Set(["placement", "approvals"]);
const PACKAGES = ["solehold", "simulator", "server", "cli"];
const PACKAGE_NAMES = {
  solehold: "solehold",
  "@solehold/simulator": "simulator",
  "@solehold/server": "server",
  "@solehold/cli": "cli",
};

/** Packages under rule 3; the others follow when their cycles are gone. */
const ACYCLIC = new Set(["server", "cli"]);

const FORBIDDEN = [
  [/\bDate\.now\(/, "Date.now"],
  [/\bnew Date\(\)/, "new Date()"],
  [/\bperformance\.now\(/, "performance.now"],
  [/\bprocess\.hrtime\b/, "process.hrtime"],
  [/\bMath\.random\(/, "Math.random"],
  [/\brandomUUID\(/, "randomUUID"],
  [/(?<![.\w])setTimeout\(/, "setTimeout"],
  [/(?<![.\w])setInterval\(/, "setInterval"],
  [/(?<![.\w])setImmediate\(/, "setImmediate"],
];

/** @param {string} folder @returns {string[]} */
function sourcesIn(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
}

/** Comments may speak of what code may not do. @param {string} text */
function withoutComments(text) {
  return text
    .replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, " "))
    .replace(/(^|[^:])\/\/.*$/gm, "$1");
}

/** @param {string} text @returns {{ specifier: string, line: number }[]} */
function importsOf(text) {
  const pattern = /(?:\bfrom\s+|\bimport\s+|\bimport\(\s*)["']([^"']+)["']/g;
  return [...text.matchAll(pattern)].map((match) => ({
    specifier: match[1] ?? "",
    line: text.slice(0, match.index).split("\n").length,
  }));
}

/** @param {string} file */
function layerOf(file) {
  const [first = ""] = relative(LIBRARY, file).split(sep);
  return LAYERS.includes(first) ? first : null;
}

/** @param {string} file @param {string} text @returns {string[]} */
function layerProblems(file, text) {
  const own = layerOf(file);
  if (own === null) return [];
  return importsOf(text).flatMap(({ specifier, line }) => {
    if (!specifier.startsWith(".")) {
      const foreign = own === "core" || (PURE.has(own) && specifier !== "node:crypto");
      return foreign ? [`${at(file, line)}: ${own} must not import '${specifier}'`] : [];
    }
    const target = layerOf(resolve(dirname(file), specifier));
    const allowed = target !== null && LAYERS.indexOf(target) <= LAYERS.indexOf(own);
    return allowed
      ? []
      : [`${at(file, line)}: ${own} must not import ${target ?? "the package's entry"} ('${specifier}')`];
  });
}

/** @param {string} file @param {string} text @param {string} own @returns {string[]} */
function packageProblems(file, text, own) {
  return importsOf(text).flatMap(({ specifier, line }) => {
    const name = Object.keys(PACKAGE_NAMES).find(
      (each) => specifier === each || specifier.startsWith(`${each}/`),
    );
    if (name === undefined) return [];
    const target = PACKAGE_NAMES[/** @type {keyof typeof PACKAGE_NAMES} */ (name)];
    return PACKAGES.indexOf(target) < PACKAGES.indexOf(own)
      ? []
      : [`${at(file, line)}: the package ${own} must not import ${target} ('${specifier}')`];
  });
}

/** @param {string} file @param {string} text @returns {string[]} */
function timeProblems(file, text) {
  if (file.startsWith(join(LIBRARY, "env") + sep)) return [];
  return text
    .split("\n")
    .flatMap((row, index) =>
      FORBIDDEN.filter(([pattern]) => /** @type {RegExp} */ (pattern).test(row)).map(
        ([, name]) => `${at(file, index + 1)}: ${name} belongs into the env port (packages/solehold/src/env)`,
      ),
    );
}

/**
 * The modules that make up a package at the level of its top folders: each folder of its sources, and each file beside
 * them. @param {string} source @param {string} file
 */
function folderOf(source, file) {
  return relative(source, file).split(sep)[0] ?? "";
}

/** @typedef {Map<string, Map<string, string>>} Graph From a node to those it imports, with the first place where. */

/** @param {Graph} graph @param {string} from @param {string} to @param {string} place */
function addEdge(graph, from, to, place) {
  const edges = graph.get(from) ?? new Map();
  if (from !== to && !edges.has(to)) edges.set(to, place);
  graph.set(from, edges);
}

/** A cycle in the graph, as the steps that make it up; null without one. @param {Graph} graph @returns {string[] | null} */
function cycleIn(graph) {
  /** @type {Set<string>} */
  const finished = new Set();
  /** @param {string} node @param {string[]} path @returns {string[] | null} */
  const visit = (node, path) => {
    if (finished.has(node)) return null;
    const begin = path.indexOf(node);
    if (begin >= 0) return [...path.slice(begin), node];
    for (const next of graph.get(node)?.keys() ?? []) {
      const cycle = visit(next, [...path, node]);
      if (cycle !== null) return cycle;
    }
    finished.add(node);
    return null;
  };
  for (const node of graph.keys()) {
    const cycle = visit(node, []);
    if (cycle !== null)
      return cycle
        .slice(1)
        .map((to, index) => `${cycle[index]} -> ${to} (${graph.get(cycle[index] ?? "")?.get(to)})`);
  }
  return null;
}

/** @param {string} own @param {ReadonlyMap<string, string>} texts By file. @returns {string[]} */
function cycleProblems(own, texts) {
  const source = join(ROOT, "packages", own, "src");
  /** @type {Graph} */
  const folders = new Map();
  /** @type {Graph} */
  const modules = new Map();
  for (const [file, text] of texts) {
    for (const { specifier, line } of importsOf(text)) {
      if (!specifier.startsWith(".")) continue;
      const target = resolve(dirname(file), specifier);
      addEdge(folders, folderOf(source, file), folderOf(source, target), at(file, line));
      addEdge(modules, relative(source, file), relative(source, target), at(file, line));
    }
  }
  return [folders, modules].flatMap((graph) => {
    const cycle = cycleIn(graph);
    return cycle === null ? [] : [`the package ${own} has a cycle of imports: ${cycle.join(", ")}`];
  });
}

/** @param {string} file @param {number} line */
function at(file, line) {
  return `${relative(ROOT, file)}:${line}`;
}

const problems = [];
let files = 0;
for (const own of PACKAGES) {
  /** @type {Map<string, string>} */
  const texts = new Map();
  for (const file of sourcesIn(join(ROOT, "packages", own, "src"))) {
    files += 1;
    const text = withoutComments(readFileSync(file, "utf8"));
    texts.set(file, text);
    problems.push(
      ...layerProblems(file, text),
      ...packageProblems(file, text, own),
      ...timeProblems(file, text),
    );
  }
  if (ACYCLIC.has(own)) problems.push(...cycleProblems(own, texts));
}
for (const problem of problems) console.error(problem);
console.log(`layers, time and cycles: ${files} files, ${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;
