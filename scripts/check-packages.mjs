// node scripts/check-packages.mjs [20 22 24]: packs every package as `npm publish` would, and checks the tarballs of the last
// build.
// 1. publint and Are The Types Wrong have nothing to say (ES modules only; Node.js lets `require` load them).
// 2. Nothing dangles: every condition of every export, every bin and every source of a source map is in the tarball.
// 3. Each has a README, a CHANGELOG that names its version, and the LICENSE of the repository.
// 4. Small programs that use the library from its tarball run (scripts/check-programs.mjs); with versions as arguments, also
//    on these versions of Node.js.
// 5. The steps of deploy/Dockerfile run with them, and its command serves (scripts/check-image.mjs).
import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import { promisify } from "node:util";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { imageProblems } from "./check-image.mjs";
import { programProblems } from "./check-programs.mjs";

const ROOT = join(import.meta.dirname, "..");
const ATTW = join(ROOT, "node_modules/.bin/attw");

/** @typedef {{ name: string, version: string, exports?: unknown, bin?: unknown }} Manifest */
/** @typedef {{ folder: string, tarball: string, manifest: Manifest, files: ReadonlySet<string> }} Packed */

/** @param {string} destination @returns {Packed[]} */
function packAll(destination) {
  const options = ["--workspaces", "--json", "--ignore-scripts", "--loglevel=error"];
  const args = ["pack", ...options, "--pack-destination", destination];
  const packed = JSON.parse(execFileSync("npm", args, { cwd: ROOT, encoding: "utf8" }));
  return packed.map(({ name, filename, files }) => {
    const folder = join(ROOT, "packages", name.replace("@solehold/", ""));
    return {
      folder,
      tarball: join(destination, filename),
      manifest: JSON.parse(readFileSync(join(folder, "package.json"), "utf8")),
      files: new Set(files.map(({ path }) => path)),
    };
  });
}

/** Every target, whichever condition leads there. @param {unknown} exports @returns {string[]} */
function targetsOf(exports) {
  if (typeof exports === "string") return [exports];
  return Object.values(exports ?? {}).flatMap(targetsOf);
}

/** @param {Packed} packed @returns {string[]} */
function danglingIn({ folder, manifest, files }) {
  const targets = [...targetsOf(manifest.exports), ...targetsOf(manifest.bin)].map((target) => ({
    from: "package.json",
    to: posix.normalize(target),
  }));
  const sources = [...files]
    .filter((file) => file.endsWith(".map"))
    .flatMap((file) =>
      JSON.parse(readFileSync(join(folder, file), "utf8")).sources.map((source) => ({
        from: file,
        to: posix.join(posix.dirname(file), source),
      })),
    );
  return [...targets, ...sources]
    .filter(({ to }) => !files.has(to))
    .map(({ from, to }) => `${from} points to ${to}, which 'files' in package.json leaves out`);
}

/** @param {Packed} packed @returns {string[]} */
function missingPapers({ folder, manifest, files }) {
  const missing = ["README.md", "CHANGELOG.md", "LICENSE"].filter((paper) => !files.has(paper));
  if (missing.length > 0) return missing.map((paper) => `${paper} is not in the tarball`);
  const read = (/** @type {string} */ path) => readFileSync(path, "utf8");
  return [
    ...(read(join(folder, "LICENSE")) === read(join(ROOT, "LICENSE"))
      ? []
      : ["LICENSE is not that of the repository"]),
    ...(read(join(folder, "CHANGELOG.md")).includes(`## [${manifest.version}]`)
      ? []
      : [`CHANGELOG.md has no section '## [${manifest.version}]'`]),
  ];
}

/** @param {Packed} packed @returns {Promise<string[]>} */
async function publintProblems({ tarball, manifest }) {
  const bytes = readFileSync(tarball);
  const content = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  const { messages } = await publint({ pack: { tarball: content }, strict: true });
  return messages.map((message) => `publint: ${formatMessage(message, manifest)}`);
}

/** @param {Packed} packed @returns {Promise<string[]>} */
async function typeProblems({ tarball }) {
  const args = [tarball, "--profile", "esm-only", "--no-definitely-typed", "--no-color", "--format", "ascii"];
  try {
    await promisify(execFile)(ATTW, args);
    return [];
  } catch (error) {
    return [`attw: ${error.stdout}${error.stderr}`];
  }
}

/** @param {readonly Packed[]} all @param {string} folder @returns {Promise<string[]>} */
async function problemsOfPrograms(all, folder) {
  const library = all.find(({ manifest }) => manifest.name === "solehold");
  if (library === undefined) return ["there is no package 'solehold'"];
  mkdirSync(folder);
  return programProblems(library.tarball, folder, process.argv.slice(2));
}

/** @param {string} folder @returns {Promise<string[]>} */
function problemsOfImage(folder) {
  mkdirSync(folder);
  return imageProblems(destination, folder);
}

const destination = mkdtempSync(join(tmpdir(), "solehold-packages-"));
try {
  const all = packAll(destination);
  const checks = [danglingIn, missingPapers, publintProblems, typeProblems];
  const problems = await Promise.all(
    all.map(async (packed) => {
      const found = (await Promise.all(checks.map((check) => check(packed)))).flat();
      return found.map((problem) => `${packed.manifest.name}: ${problem}`);
    }),
  );
  problems.push(await problemsOfPrograms(all, join(destination, "programs")));
  problems.push(await problemsOfImage(join(destination, "image")));
  for (const problem of problems.flat()) console.error(problem);
  console.log(`packed: ${all.length} packages, ${problems.flat().length} problems`);
  process.exitCode = problems.flat().length === 0 ? 0 : 1;
} finally {
  rmSync(destination, { recursive: true, force: true });
}
