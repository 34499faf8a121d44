// What the README tells a newcomer to type, with its own lines: the commands run.
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { COMMANDS } from "../src/registry.ts";
import { type Pausable, startServer } from "./support/server-process.ts";
import { temporaryFolder, until } from "./support/temporary.ts";

const ROOT = join(import.meta.dirname, "../../..");
const SOLEHOLD = `"${process.execPath}" "${join(ROOT, "packages/cli/bin/solehold.js")}"`;
const README = readFileSync(join(ROOT, "README.md"), "utf8").replace(/\\\n\s*/g, " ");
const SERVER = "http://127.0.0.1:7077";

/** The first line of the README that begins with these words, from a code block or from running text. */
function lineOf(words: string): string {
  const found = README.match(new RegExp(`${words}[^\`\\n]*`))?.[0];
  if (found === undefined) throw new Error(`the README has no '${words}'`);
  return found.trim();
}

/** The README's command on this build, and on a server of the test. */
function command(name: string, server: Pausable): string {
  return lineOf(`npx solehold ${name}`).replace("npx solehold", SOLEHOLD).replaceAll(SERVER, server.url);
}

async function shell(line: string): Promise<string> {
  return (await promisify(execFile)("sh", ["-c", line])).stdout;
}

async function server(): Promise<Pausable> {
  const started = await startServer([]);
  onTestFinished(async () => await started.stop());
  return started;
}

const SLEEP = /sleep (\d+)/;

describe("the README's two minutes", () => {
  it("lead from a running server to a fenced worker, and show who has what", async () => {
    expect(README).toContain("npm ci && npm start");
    const running = await server();
    // While the worker runs it looks at the list, instead of sleeping.
    const shown = await shell(command("run", running).replace(SLEEP, command("ls", running)));
    expect(shown).toMatch(/^working with fence \d+\n/);
    expect(shown).toMatch(/orders\/worker .* \d+ +held/);
  });

  it("let a second worker wait for longer than the first one works", () => {
    const line = lineOf("npx solehold run");
    const [, sleepSeconds] = SLEEP.exec(line) ?? [];
    const [, waitMinutes] = / --wait (\d+)m /.exec(line) ?? [];
    expect(Number(waitMinutes) * 60).toBeGreaterThan(Number(sleepSeconds));
  });

  it("have it start when the first is done, and one with less patience give up with exit code 3", async () => {
    const running = await server();
    const run = command("run", running);
    const done = join(temporaryFolder(), "done");
    const waiting = async (): Promise<unknown> =>
      (await (await fetch(`${running.url}/v1/queue?name=orders/worker`)).json()) as unknown;
    const first = shell(run.replace(SLEEP, `until [ -e "${done}" ]; do sleep 0.1; done`));
    await until("the first works", async () => (await shell(command("ls", running))).includes("held"));
    const second = shell(run.replace(SLEEP, "true"));
    await until("the second waits", async () => JSON.stringify(await waiting()).includes('"waiting":1'));
    const impatient = run.replace(/--wait \w+/, lineOf("--wait 2s"));
    await expect(shell(impatient)).rejects.toMatchObject({ code: 3 });
    writeFileSync(done, "");
    const [before, after] = (await Promise.all([first, second])).map((said) => BigInt(said.match(/\d+/)![0]));
    expect(after).toBeGreaterThan(before!);
  });
});

describe("the rest of the README", () => {
  it("names commands and scripts that exist", async () => {
    const commands = new Set(COMMANDS.map(({ name }) => name.split(" ")[0]));
    const named = [...README.matchAll(/`(?:npx )?solehold ([a-z]+)/g)].map(([, name]) => name);
    expect(named.filter((name) => !commands.has(name))).toEqual([]);
    const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    const wanted = [...README.matchAll(/npm (?:run )?(start|test|(?<=run )[\w-]+)/g)].map(([, name]) => name);
    expect(wanted.filter((name) => !(name! in scripts))).toEqual([]);
  });

  it("has a simulation that finds no broken promise", async () => {
    const simulate = lineOf("npx solehold sim").replace("npx solehold", SOLEHOLD);
    expect(await shell(simulate.replace(/--seeds \d+/, "--seeds 5"))).toContain("5 seeds, 0 violations");
  });
});

describe("npm ci", () => {
  const read = (path: string) => JSON.parse(readFileSync(join(ROOT, path), "utf8"));
  const installed = Object.entries<{ readonly engines?: { readonly node?: string } }>(
    read("package-lock.json").packages,
  );

  it("warns of no package on the oldest Node that the project supports", () => {
    const oldest = /^>=(\d+\.\d+)$/.exec(read("package.json").engines.node)?.[1];
    const unfit = installed.flatMap(([path, { engines }]) =>
      runsOn(engines?.node ?? "*", `${oldest}.0`) ? [] : [`${path} wants ${engines?.node}`],
    );
    expect(unfit).toEqual([]);
  });

  it("leaves out what only benchmarks need", () => {
    const workspaces = installed.map(([path]) => path).filter((path) => !path.includes("node_modules"));
    const asked = new Set(
      workspaces.flatMap((path) => {
        const { dependencies, devDependencies, peerDependencies } = read(join(path, "package.json"));
        return Object.keys({ ...dependencies, ...devDependencies, ...peerDependencies });
      }),
    );
    const benchOnly = Object.keys(read("bench/package.json").dependencies).filter((name) => !asked.has(name));
    expect(benchOnly).toContain("redlock");
    const names = installed.map(([path]) => path.slice(path.lastIndexOf("node_modules/") + 13));
    expect(names.filter((name) => benchOnly.includes(name))).toEqual([]);
  });
});

/** Of semver's ranges what packages say about Node: `>=18`, `^20.19.0 || >=22.12.0`, `10.*`, `20`. */
function runsOn(range: string, version: string): boolean {
  const compared = (other: readonly number[]): number => {
    const own = version.split(".").map(Number);
    const index = other.findIndex((part, at) => part !== own[at]);
    return index < 0 ? 0 : (own[index] ?? 0) - (other[index] ?? 0);
  };
  return range.split("||").some((alternative) =>
    [...alternative.matchAll(/(>=|<|\^)?\s*([\d.]+)/g)].every(([, operator, text = ""]) => {
      const parts = text.split(".").filter(Boolean).map(Number);
      if (operator === "<") return compared(parts) < 0;
      const isNew = compared(parts) >= 0;
      if (operator === ">=") return isNew;
      return isNew && compared(parts.slice(0, operator === "^" ? 1 : parts.length)) === 0;
    }),
  );
}
