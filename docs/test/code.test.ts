/** The code of the pages: TypeScript compiles, programs run and print what is shown, commands exist, JSON parses. */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseArguments } from "../../packages/cli/src/parse/arguments.ts";
import { COMMANDS } from "../../packages/cli/src/registry.ts";
import { ADAPTED, ensurePackages } from "../../scripts/own-packages.mjs";
import { allPages, type CodeBlock, ROOT } from "./pages.ts";
import { commandLines, wordsOf } from "./shell.ts";
import { programFor } from "./stores.ts";

const run = promisify(execFile);
const blocks = allPages().flatMap((page) => page.blocks);
const where = ({ page, line }: CodeBlock): string => `${page}:${line}`;
const of = (language: string, mode = ""): readonly CodeBlock[] =>
  blocks.filter((block) => block.language === language && block.mode === mode);

/** In a folder from which the packages of this checkout are found, and those that adapters adapt. */
let folder: string;
beforeAll(async () => {
  await ensurePackages(ADAPTED);
  folder = mkdtempSync(join(ADAPTED, "node_modules/.docs-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** These pages have tests of their own, which run their JavaScript with what it needs around it. */
const RUN_ELSEWHERE = /^docs\/(guards|using-leases|writing-a-store|seeds\/.*)\.md$/;

describe("the code of the pages", () => {
  it("is in a language that is checked, or is plain text", () => {
    // Python runs in clients/python/test; "typescript" are the declarations of docs/reference/api.md.
    const known = new Set(["ts", "js", "sh", "json", "text", "sql", "python", "typescript", ""]);
    expect(blocks.filter(({ language }) => !known.has(language)).map(where)).toEqual([]);
    const unchecked = of("js").filter(({ page }) => !RUN_ELSEWHERE.test(page));
    expect(unchecked.map(where), "JavaScript that no test runs: write ```js run, or ```ts").toEqual([]);
  });

  it("compiles where it is TypeScript", async () => {
    const byFile = new Map<string, CodeBlock>();
    for (const block of of("ts")) {
      const name = `${block.page.replaceAll(/\W/g, "-")}-${block.line}.mts`;
      byFile.set(name, block);
      writeFileSync(join(folder, name), `${block.code}\n${block.given}\nexport {};\n`);
    }
    const compilerOptions = {
      ...{ noEmit: true, strict: true, module: "nodenext", target: "esnext", types: ["node"] },
      ...{ lib: ["esnext", "dom", "dom.asynciterable"], skipLibCheck: true },
      // As Nest asks for.
      ...{ experimentalDecorators: true, emitDecoratorMetadata: true },
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.mts"] }));
    const compiled = await run(join(ROOT, "node_modules/.bin/tsc"), ["-p", folder]).catch((error) => error);
    const problems = String(compiled.stdout)
      .split("\n")
      .filter((line) => /error TS/.test(line))
      .map((line) => {
        const [, file = "", row = "0", message] = /([\w-]+\.mts)\((\d+),\d+\): (.*)/.exec(line) ?? [];
        const block = byFile.get(file);
        return block === undefined ? line : `${block.page}:${block.line + Number(row) - 1} ${message}`;
      });
    expect(problems).toEqual([]);
    expect(byFile.size).toBeGreaterThan(10);
  });

  it.each(of("js", "run").map((block) => [where(block), block] as const))(
    "runs, and prints what is shown: %s",
    async (_, block) => {
      const file = join(folder, `${where(block).replaceAll(/\W/g, "-")}.mjs`);
      const { code, env } = await programFor(block.code, folder);
      writeFileSync(file, code);
      const options = { cwd: folder, timeout: 200_000, env: { ...process.env, ...env } };
      const { stdout, stderr } = await run(process.execPath, [file], options);
      expect(stderr).toBe("");
      if (block.prints !== null) expect(stdout).toMatch(patternOf(block.prints));
    },
  );

  it("names commands and options that exist", async () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    const problems: string[] = [];
    for (const block of [...of("sh"), ...of("")]) {
      for (const words of commandLines(block.code).map(wordsOf)) {
        const problem = problemOf(words, scripts);
        if (problem !== null) problems.push(`${where(block)}: ${words.join(" ")}: ${problem}`);
      }
    }
    expect(problems).toEqual([]);
  });

  it("parses where it is JSON", () => {
    for (const block of of("json")) expect(() => JSON.parse(block.code), where(block)).not.toThrow();
  });
});

/** What is shown, with "…" for anything on its line. */
function patternOf(shown: string): RegExp {
  const escaped = shown.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  return new RegExp(`^${escaped.replaceAll("…", ".*")}$`);
}

/** Only commands of ours can be wrong; null for those of others. */
function problemOf(words: readonly string[], scripts: object): string | null {
  const [first = "", second = "", third = ""] = words;
  if (first === "npm" && second === "run")
    return third in scripts || words.includes("-w") ? null : "no such script";
  const own = first === "npx" ? words.slice(1) : words;
  if (own[0] !== "solehold" || own.length < 2) return null;
  const command = COMMANDS.find(({ name }) => name === own[1]);
  if (command === undefined) return "no such command";
  try {
    parseArguments(command, own.slice(2));
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}
