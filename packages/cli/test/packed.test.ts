// What strangers get from npm: the tarballs, in folders that know nothing of this checkout.
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Registry, startRegistry } from "./support/offline-registry.ts";
import { temporaryFolder } from "./support/temporary.ts";

const ROOT = join(import.meta.dirname, "../../..");
const SEED_PAGES = join(ROOT, "docs/seeds");
const { version } = JSON.parse(readFileSync(join(ROOT, "packages/solehold/package.json"), "utf8"));

interface Result {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

let scratch: string;
let registry: Registry;
/** By name of the package. */
const tarballs = new Map<string, string>();

beforeAll(async () => {
  scratch = mkdtempSync(join(tmpdir(), "solehold-packed-"));
  const options = ["--workspaces", "--json", "--ignore-scripts", "--loglevel=error"];
  const packed = await run(ROOT, "npm", ["pack", ...options, "--pack-destination", scratch]);
  const releases = (JSON.parse(packed.stdout) as { name: string; filename: string }[]).map(
    ({ name, filename }) => {
      tarballs.set(name, join(scratch, filename));
      const folder = join(ROOT, "packages", name.replace("@solehold/", ""));
      return {
        manifest: JSON.parse(readFileSync(join(folder, "package.json"), "utf8")),
        tarball: async () => readFileSync(join(scratch, filename)),
      };
    },
  );
  registry = await startRegistry(releases);
});

afterAll(async () => {
  await registry?.close();
  rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
});

async function run(cwd: string, command: string, args: readonly string[]): Promise<Result> {
  try {
    const { stdout, stderr } = await promisify(execFile)(command, args, { cwd, env: environment() });
    return { code: 0, stdout, stderr };
  } catch (error) {
    return error as Result;
  }
}

/** npm without the settings, the cache and the global packages of this machine, and without those of `npm test`. */
function environment(): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(npm_|solehold_)/i.test(name));
  return {
    ...Object.fromEntries(inherited),
    NO_PROXY: "127.0.0.1",
    npm_config_registry: registry?.url ?? "http://127.0.0.1:1/",
    npm_config_cache: join(scratch, "cache"),
    npm_config_prefix: join(scratch, "global"),
    npm_config_userconfig: join(scratch, "npmrc"),
    npm_config_ignore_scripts: "true",
    npm_config_update_notifier: "false",
    npm_config_audit: "false",
    npm_config_fund: "false",
  };
}

const npx = (cwd: string, ...args: readonly string[]) => run(cwd, "npx", ["--yes", "solehold", ...args]);

async function install(...names: readonly string[]): Promise<string> {
  const folder = temporaryFolder();
  const files = names.map((name) => tarballs.get(name) ?? name);
  const { code, stderr } = await run(folder, "npm", ["install", "--prefix", folder, ...files]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return folder;
}

const NOTICE = `solehold: @solehold/cli@${version} is not installed here, npm runs it (to install it: npm install @solehold/cli@${version})\n`;
/** What `solehold version` says when nothing had to be fetched. */
const INSTALLED = {
  code: 0,
  stdout: expect.stringMatching(new RegExp(`^solehold ${version} \\(node .*\\)\\n$`)),
  stderr: "",
};
/** A command under a lease: what it prints and its exit code come through. */
const RUN = [
  "run",
  "job",
  "--store",
  "embedded:./data",
  "--",
  "sh",
  "-c",
  'echo "fence $SOLEHOLD_FENCE"; exit 7',
];

describe("all packages in one folder", () => {
  it("share the command solehold, which runs the one that is installed", async () => {
    const folder = await install(...tarballs.keys());
    expect(await npx(folder, "version")).toEqual(INSTALLED);
    const help = await npx(folder, "--help");
    expect(help).toEqual({ code: 0, stdout: expect.stringContaining("Usage: solehold"), stderr: "" });
    const ran = await npx(folder, ...RUN);
    expect(ran).toMatchObject({ code: 7, stdout: expect.stringMatching(/^fence \d+\n$/), stderr: "" });
    expect(readdirSync(folder)).toContain("data");
    const agents = await npx(folder, "mcp");
    expect(agents).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining("sdk is missing: run 'npm install"),
    });
    // npm links one of the two; whichever it is, the other one does the same.
    for (const owner of ["solehold", "@solehold/cli"]) {
      const program = join(folder, "node_modules", owner, "bin/solehold.js");
      expect([owner, await run(tmpdir(), process.execPath, [program, "version"])]).toEqual([
        owner,
        INSTALLED,
      ]);
    }
    // The server finds the pages that it shows.
    const pages = `
      import { createLog, resolveConfig, startServer } from "@solehold/server";
      const flags = { port: "0", store: "memory:", audit: "memory", dataDir: "./server" };
      const server = await startServer(resolveConfig({ flags }), { log: createLog("silent") });
      const get = async (path) => await (await fetch(server.url + path, { headers: { accept: "text/html" } })).text();
      const [index, playground] = [await get("/"), await get("/playground")];
      const [, script] = /src="\\.(\\/assets\\/[^"]+)"/.exec(index) ?? [];
      const { status } = await fetch(server.url + script);
      console.log(/<title>.*<\\/title>/.exec(index)[0], /<title>.*<\\/title>/.exec(playground)[0], status);
      await server.close();`;
    expect(await run(folder, process.execPath, ["--input-type=module", "-e", pages])).toMatchObject({
      code: 0,
      stdout: "<title>Solehold</title> <title>Solehold playground</title> 200\n",
    });
    // The code in their READMEs runs as it stands there.
    for (const owner of ["solehold", "@solehold/simulator"]) {
      const readme = readFileSync(join(folder, "node_modules", owner, "README.md"), "utf8");
      const [, code = ""] = /```js(?: run)?\n([\s\S]+?)```/.exec(readme) ?? [];
      const { stdout } = await run(folder, process.execPath, ["--input-type=module", "-e", code]);
      expect([owner, stdout]).toEqual([
        owner,
        expect.stringMatching(/^working with fence|no promise broken$/m),
      ]);
    }
  });

  it("run the program of each seed's page as it stands there, beside the library alone", async () => {
    const folder = await install("solehold");
    const pages = readdirSync(SEED_PAGES).filter((name) => /^00\d-/.test(name));
    expect(pages).toHaveLength(5);
    for (const name of pages) {
      const page = readFileSync(join(SEED_PAGES, name), "utf8");
      const [, code = "", printed] = /```js\n([\s\S]+?)```\n+```text\n([\s\S]+?)```/.exec(page) ?? [];
      writeFileSync(join(folder, "program.mjs"), code);
      const { stdout, stderr } = await run(folder, process.execPath, ["program.mjs"]);
      expect([name, stdout, stderr]).toEqual([name, printed, ""]);
    }
  });
});

describe("npx solehold without the command line installed", () => {
  it("fetches it, says so, and passes arguments, output and exit code on", async () => {
    const folder = temporaryFolder();
    const ran = await npx(folder, ...RUN);
    expect(ran).toMatchObject({ code: 7, stdout: expect.stringMatching(/^fence \d+\n$/), stderr: NOTICE });
    expect(readdirSync(folder)).toEqual(["data"]);
  });

  it("works beside the library, which brings no other package", async () => {
    const folder = await install("solehold");
    const installed = readdirSync(join(folder, "node_modules")).filter((name) => !name.startsWith("."));
    expect(installed).toEqual(["solehold"]);
    expect(await npx(folder, "version")).toEqual({ ...INSTALLED, stderr: NOTICE });
    // In a folder that has the command line, here this checkout, it runs that one.
    const program = join(folder, "node_modules/solehold/bin/solehold.js");
    expect(await run(ROOT, process.execPath, [program, "version"])).toEqual(INSTALLED);
  });
});
