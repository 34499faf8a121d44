// Ten-line programs that know only the packed library: as an ES module, by `require`, bundled, and compiled by TypeScript with
// both of its module resolutions. On the Node.js that runs this, and on others (from the npm package `node`).
import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { rolldown } from "rolldown";

const ROOT = join(import.meta.dirname, "..");
const TSC = join(ROOT, "node_modules/.bin/tsc");

/** A lease and a guard from two entries, whose classes must be the same ones. */
const BODY = `
const resource = new FencedResource(0);
(async () => {
  const leases = await connect("memory:", { holder: "program" });
  const written = await leases.run("job", { ttl: "10s" }, async (lease) => resource.write(lease, (n) => n + 1));
  const lease = await leases.acquire("job");
  const held = await leases.acquire("job", { wait: 0 }).catch((error) => error);
  await leases.close({ release: true });
  console.log(written, held instanceof LeaseHeldError, lease.state);
})();
`;
const PRINTS = "1 true released\n";
const ES_MODULE = `import { connect, LeaseHeldError } from "solehold";
import { FencedResource } from "solehold/guards";
${BODY}`;
const COMMON_JS = `const { connect, LeaseHeldError } = require("solehold");
const { FencedResource } = require("solehold/guards");
${BODY}`;
const RESOLUTIONS = {
  bundler: { module: "preserve", moduleResolution: "bundler" },
  nodenext: { module: "nodenext", moduleResolution: "nodenext" },
};

/** Unpacked as npm would, without its other packages: the library needs none. @param {string} folder @param {string} tarball */
function place(folder, tarball) {
  const modules = join(folder, "node_modules/solehold");
  mkdirSync(modules, { recursive: true });
  execFileSync("tar", ["-xzf", tarball, "--strip-components=1", "-C", modules]);
  writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
  for (const [name, text] of Object.entries({
    "esm.mjs": ES_MODULE,
    "required.cjs": COMMON_JS,
    "typed.mts": ES_MODULE,
  }))
    writeFileSync(join(folder, name), text);
}

/** @param {string} folder @param {string} node @param {string} program @returns {Promise<string[]>} */
async function runProblems(folder, node, program) {
  try {
    const { stdout, stderr } = await promisify(execFile)(node, [program], { cwd: folder });
    if (stdout === PRINTS && (stderr === "" || /ExperimentalWarning: .*(require|ES Module)/s.test(stderr)))
      return [];
    return [`${program} on ${node} printed ${JSON.stringify(stdout + stderr)}`];
  } catch (error) {
    return [`${program} on ${node}: ${error.stderr ?? error.message}`];
  }
}

/** The clients of stores: those that a program does not install are left out of its bundle. */
const { peerDependencies } = JSON.parse(readFileSync(join(ROOT, "packages/solehold/package.json"), "utf8"));
const PEERS = Object.keys(peerDependencies);

/** @param {string} folder */
async function bundleWithRolldown(folder) {
  const external = [/^node:/, ...PEERS.map((name) => new RegExp(`^${name}(/|$)`))];
  const bundle = await rolldown({ input: join(folder, "esm.mjs"), cwd: folder, platform: "node", external });
  const names = { entryFileNames: "bundled.mjs", chunkFileNames: "[name].mjs" };
  await bundle.write({ dir: join(folder, "rolldown"), format: "esm", ...names });
  await bundle.close();
}

/** As CommonJS, the way many functions in the cloud are shipped. @param {string} folder @param {string} esbuild */
function bundleWithEsbuild(folder, esbuild) {
  const options = [
    "--bundle",
    "--platform=node",
    "--format=cjs",
    "--outfile=esbuild/bundled.cjs",
    "--log-level=error",
  ];
  execFileSync(esbuild, ["esm.mjs", ...options, ...PEERS.map((name) => `--external:${name}`)], {
    cwd: folder,
  });
}

/** @param {string} folder @param {keyof typeof RESOLUTIONS} name @returns {Promise<string[]>} */
async function typeProblems(folder, name) {
  const compilerOptions = {
    ...RESOLUTIONS[name],
    target: "es2022",
    lib: ["esnext"],
    strict: true,
    noEmit: true,
  };
  const types = { typeRoots: [join(ROOT, "node_modules/@types")], types: ["node"] };
  const config = { compilerOptions: { ...compilerOptions, ...types }, files: ["typed.mts"] };
  writeFileSync(join(folder, `${name}.json`), JSON.stringify(config));
  const failed = (/** @type {any} */ { stdout }) => [`types with moduleResolution ${name}: ${stdout}`];
  return promisify(execFile)(TSC, ["-p", `${name}.json`], { cwd: folder }).then(() => [], failed);
}

/**
 * @param {string} tarball Of the library.
 * @param {string} folder An empty one.
 * @param {readonly string[]} versions Of Node.js, besides this one; with any, also bundled by esbuild.
 * @returns {Promise<string[]>}
 */
export async function programProblems(tarball, folder, versions) {
  place(folder, tarball);
  await bundleWithRolldown(folder);
  const programs = ["esm.mjs", "required.cjs", "rolldown/bundled.mjs"];
  const nodes = [process.execPath];
  if (versions.length > 0) {
    const install = ["install", "--no-save", "--loglevel=error", "--prefix"];
    execFileSync("npm", [...install, join(folder, "tools"), "esbuild@0.25"]);
    bundleWithEsbuild(folder, join(folder, "tools/node_modules/.bin/esbuild"));
    programs.push("esbuild/bundled.cjs");
    for (const version of versions) {
      execFileSync("npm", [...install, join(folder, `node-${version}`), `node@${version}`]);
      nodes.push(join(folder, `node-${version}/node_modules/.bin/node`));
    }
  }
  const found = await Promise.all([
    ...nodes.flatMap((node) => programs.map((program) => runProblems(folder, node, program))),
    typeProblems(folder, "bundler"),
    typeProblems(folder, "nodenext"),
  ]);
  return found.flat();
}
