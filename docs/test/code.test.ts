/** The code of the pages: TypeScript compiles, programs run and print what is shown, commands exist, JSON parses. */
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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

/** These pages have tests of their own, which run their code with what it needs around it. */
const RUN_ELSEWHERE: { readonly [language: string]: RegExp } = {
  js: /^docs\/(guards|using-leases|writing-a-store|seeds\/.*)\.md$/,
  python: /^docs\/python\.md$/,
  sql: /^docs\/stores\/(mysql|postgres)\.md$/,
};

describe("the code of the pages", () => {
  it("is in a language that is checked, or is plain text", () => {
    // "typescript" are the declarations of docs/reference/api.md.
    const known = new Set(["ts", "js", "sh", "json", "text", "sql", "python", "typescript", ""]);
    expect(blocks.filter(({ language }) => !known.has(language)).map(where)).toEqual([]);
    const unchecked = Object.entries(RUN_ELSEWHERE).flatMap(([language, pages]) =>
      of(language).filter(({ page }) => !pages.test(page)),
    );
    expect(unchecked.map(where), "code that no test runs: JavaScript may be ```js run, or ```ts").toEqual([]);
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

  it("names commands and options that exist", () => {
    const named = [...of("sh"), ...of("")].flatMap((block) =>
      commandLines(block.code).map((line) => [where(block), wordsOf(line)] as const),
    );
    expect(problemsOf(named)).toEqual([]);
  });

  it("names commands and options that exist in running text, too", () => {
    const named = allPages().flatMap(({ path, text }) =>
      [...text.replaceAll(/^ *```[\s\S]*?^ *```$/gm, "").matchAll(/`([^`]+)`/g)].flatMap(([, code = ""]) =>
        commandLines(code.replaceAll(/\s+/g, " ")).map((line) => [path, withHelp(wordsOf(line))] as const),
      ),
    );
    expect(named.length).toBeGreaterThan(100);
    // An option may be named without a value.
    expect(problemsOf(named).filter((problem) => !problem.includes(" needs a value: "))).toEqual([]);
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

type Named = readonly [place: string, words: readonly string[]];

function problemsOf(named: readonly Named[]): readonly string[] {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  return named.flatMap(([place, words]) => {
    const problem = problemOf(words, scripts);
    return problem === null ? [] : [`${place}: ${words.join(" ")}: ${problem}`];
  });
}

/** What goes without saying may be left out in running text, as it may where somebody asks for help. */
function withHelp(words: readonly string[]): readonly string[] {
  const end = words.indexOf("solehold") + 2;
  return end > 1 && end <= words.length ? [...words.slice(0, end), "--help", ...words.slice(end)] : words;
}

/** Only commands of ours can be wrong; null for those of others. */
function problemOf(words: readonly string[], scripts: object): string | null {
  const [first = "", second = "", third = ""] = words;
  if (first === "npm" && second === "run")
    return third in scripts || words.includes("-w") ? null : "no such script";
  if (first === "node" || first === "python3")
    // In a folder of this repository, unless the name stands for one: examples/NAME.mjs.
    return !second.includes("/") || /[A-Z]/.test(second) || existsSync(join(ROOT, second))
      ? null
      : "no such file";
  const own = first === "npx" ? words.slice(1) : words;
  if (own[0] !== "solehold" || own.length < 2) return null;
  if (own[1] === "COMMAND") return null;
  const command = COMMANDS.find(({ name }) => name === own[1]);
  if (command === undefined) return "no such command";
  try {
    parseArguments(command, own.slice(2));
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}
