// node scripts/check-node.mjs [20 22 24]: what a newcomer does, `npm ci && npm start`, in a clean clone of the last commit
// on each of these versions of Node.js (from the npm package `node`), on a machine without a compiler: programs that
// build native code fail. Then the server has to grant a lease, and to remember it when it is started again.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

const ROOT = join(import.meta.dirname, "..");
const COMPILERS = [
  "cc",
  "gcc",
  "g++",
  "c++",
  "clang",
  "clang++",
  "make",
  "cmake",
  "node-gyp",
  "python",
  "python3",
];
const START_MS = 60_000;

const versions = process.argv.slice(2).length > 0 ? process.argv.slice(2) : ["20", "22", "24"];
const folder = mkdtempSync(join(tmpdir(), "solehold-node-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const noCompiler = join(folder, "no-compiler");
mkdirSync(noCompiler);
for (const name of COMPILERS)
  writeFileSync(join(noCompiler, name), `#!/bin/sh\necho "there is no ${name} here" >&2\nexit 1\n`, {
    mode: 0o755,
  });

/** @param {string} version @returns {Promise<string>} */
async function check(version) {
  const nodes = join(folder, `node-${version}`);
  run("npm", ["install", "--no-save", "--loglevel=error", "--prefix", nodes, `node@${version}`], folder);
  const bin = join(nodes, "node_modules/.bin");
  const env = { ...process.env, PATH: [noCompiler, bin, process.env.PATH].join(delimiter) };
  const found = run("node", ["--version"], folder, env).trim();
  if (!found.startsWith(`v${version}.`)) throw new Error(`node@${version} brought ${found}`);
  const clone = join(folder, `clone-${version}`);
  run("git", ["clone", "--quiet", "--depth=1", `file://${ROOT}`, clone], folder);
  const startedMs = performance.now();
  const said = run("npm", ["ci"], clone, env);
  const installedSeconds = Math.round((performance.now() - startedMs) / 1_000);
  if (said.includes("EBADENGINE")) throw new Error(`npm ci complains of the engine on ${found}: ${said}`);
  const fence = await serve(clone, env, async (url) => {
    const body = JSON.stringify({ name: "job", holder: "newcomer", ttlMs: 600_000 });
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}/v1/leases/acquire`, { method: "POST", headers, body });
    if (answer.status !== 200)
      throw new Error(`acquire was answered ${answer.status}: ${await answer.text()}`);
    return (await leaseAt(url)).fence;
  });
  const later = await serve(clone, env, async (url) => (await leaseAt(url)).fence);
  if (later !== fence) throw new Error(`the fence was ${fence}, and after a restart ${later}`);
  rmSync(clone, { recursive: true, force: true });
  return `node ${found}: npm ci in ${installedSeconds} s, a lease granted, and there after a restart`;
}

/** @param {string} url @returns {Promise<{ fence: string }>} */
async function leaseAt(url) {
  const answer = await fetch(`${url}/v1/lease?name=job`);
  const { lease, ...rest } = await answer.json();
  const found = lease ?? rest;
  if (found.fence === undefined) throw new Error(`no lease: ${JSON.stringify(found)}`);
  return found;
}

/**
 * `npm start`, until it listens; then SIGTERM, and it has to end well.
 * @template Result
 * @param {string} clone @param {NodeJS.ProcessEnv} env @param {(url: string) => Promise<Result>} work
 * @returns {Promise<Result>}
 */
async function serve(clone, env, work) {
  const server = spawn("npm", ["start", "--", "--port", "0"], { cwd: clone, env, detached: true });
  let output = "";
  const ended = new Promise((resolve) => server.once("close", resolve));
  try {
    const url = await new Promise((resolve, reject) => {
      const give = () => reject(new Error(`npm start did not listen: ${output}`));
      const timer = setTimeout(give, START_MS);
      ended.then(give);
      for (const stream of [server.stdout, server.stderr])
        stream.on("data", (chunk) => {
          output += chunk;
          const found = /http:\/\/127\.0\.0\.1:\d+/.exec(output)?.[0];
          if (found === undefined) return;
          clearTimeout(timer);
          resolve(found);
        });
    });
    return await work(url);
  } finally {
    // The group: npm and the server under it.
    if (server.pid !== undefined && server.exitCode === null) process.kill(-server.pid, "SIGTERM");
    await ended;
  }
}

/**
 * What it said, on both channels.
 * @param {string} command @param {string[]} args @param {string} cwd @param {NodeJS.ProcessEnv} [env]
 */
function run(command, args, cwd, env = process.env) {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, env, encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${status}: ${stderr}`);
  return stdout + stderr;
}

for (const version of versions) console.log(await check(version));
