// The steps of deploy/Dockerfile, without Docker: what it installs is installed as it says, into a folder in the place of the
// image's root, and its command is started there and judged by its own health check. Left out: the stage that builds (who
// calls this has packed the packages; scripts/check-node.mjs does `npm ci` in a clean clone), and the image's user.
import { execFile, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

const ROOT = join(import.meta.dirname, "..");
const DEFAULT_URL = "http://127.0.0.1:7077";
const run = promisify(execFile);

/** @typedef {{ readonly name: string, readonly rest: string }} Instruction */

/** Of the last stage: that one is the image. @param {string} text @returns {Instruction[]} */
function instructionsOf(text) {
  const lines = text
    .replaceAll(/^#.*\n/gm, "")
    .replaceAll(/\\\n\s*/g, "")
    .split("\n")
    .filter(Boolean)
    .map((line) => ({ name: line.split(" ", 1)[0] ?? "", rest: line.slice(line.indexOf(" ") + 1) }));
  return lines.slice(lines.findLastIndex(({ name }) => name === "FROM") + 1);
}

/**
 * `tarballs` is the folder of the packed packages, and `root` an empty one in the place of the image's root.
 * @param {string} tarballs @param {string} root @returns {Promise<string[]>}
 */
export async function imageProblems(tarballs, root) {
  const instructions = instructionsOf(readFileSync(join(ROOT, "deploy/Dockerfile"), "utf8"));
  const of = (/** @type {string} */ name) =>
    instructions.filter((each) => each.name === name).map(({ rest }) => rest);
  const here = (/** @type {string} */ text) =>
    text.replaceAll(/(?<![\w.:/])\/(data|packages)\b/g, (_, name) =>
      name === "packages" ? tarballs : join(root, name),
    );
  const settings = of("ENV").flatMap((rest) => rest.split(" ").map((pair) => here(pair).split("=")));
  const env = {
    ...process.env,
    ...Object.fromEntries(settings),
    ...{ npm_config_prefix: root, npm_config_loglevel: "error", SOLEHOLD_PORT: "0" },
    // The image's Node.js has SQLite, this one may not.
    SOLEHOLD_STORE: `file:${join(root, "data/leases")}`,
    PATH: [join(root, "bin"), process.env.PATH].join(delimiter),
  };
  try {
    for (const step of of("RUN")) {
      const command = here(step.replace(/^(--\S+ )+/, "")).replace(/ && chown \S+ \S+/, "");
      await run("sh", ["-ec", command], { env, cwd: root });
    }
    const argv = [...of("ENTRYPOINT"), ...of("CMD")].flatMap((words) => JSON.parse(words));
    const [check = ""] = of("HEALTHCHECK");
    return [...missingClients(root), ...(await servingProblems(argv, check, env))];
  } catch (error) {
    return [`a step of deploy/Dockerfile failed: ${error.stderr || error.message}`];
  }
}

/** The stores load their clients when their URL is used. @param {string} root @returns {string[]} */
function missingClients(root) {
  const command = createRequire(join(root, "lib/node_modules/@solehold/cli/package.json"));
  const library = createRequire(command.resolve("solehold"));
  const manifestOf = (/** @type {string} */ name) =>
    JSON.parse(readFileSync(join(ROOT, "packages", name, "package.json"), "utf8"));
  const { peerDependencies } = manifestOf("solehold");
  const { dependencies } = manifestOf("server");
  return Object.keys(peerDependencies).flatMap((name) => {
    // What the server itself needs is with it, and the library does without.
    if (name in dependencies) return [];
    try {
      library.resolve(name);
      return [];
    } catch {
      return [`deploy/Dockerfile does not install ${name}, or not where the library finds it`];
    }
  });
}

/**
 * @param {readonly string[]} argv @param {string} check @param {NodeJS.ProcessEnv} env
 * @returns {Promise<string[]>}
 */
async function servingProblems([program = "", ...args], check, env) {
  const script = /^CMD node -e "(.*)"$/.exec(check)?.[1] ?? "process.exit(2)";
  const isHealthy = (/** @type {string} */ url) =>
    run(process.execPath, ["-e", script.replace(DEFAULT_URL, url)], { env }).then(
      () => true,
      () => false,
    );
  // As the file's last comment says.
  await run(program, ["keys", "add", "admin"], { env });
  const server = spawn(program, [...args, "--behind-proxy", "--json"], { env });
  let said = "";
  for (const stream of [server.stdout, server.stderr])
    stream.on("data", (data) => {
      said += data;
    });
  const ended = new Promise((resolve) => server.once("close", resolve));
  const problems = [];
  try {
    await Promise.race([new Promise((resolve) => server.stdout.once("data", resolve)), ended]);
    const port = /"url":"[^"]*:(\d+)"/.exec(said)?.[1];
    if (port === undefined) return [`the image's command does not serve: ${said}`];
    const url = `http://127.0.0.1:${port}`;
    if (!(await isHealthy(url))) problems.push("the image's health check fails at a server that serves");
    const { status } = await fetch(`${url}/v1/leases`);
    if (status !== 401) problems.push(`the image answers ${status} to somebody without an API key`);
    server.kill("SIGTERM");
    await ended;
    if (await isHealthy(url)) problems.push("the image's health check succeeds where nothing serves");
  } finally {
    server.kill("SIGKILL");
    await ended;
  }
  return problems;
}
