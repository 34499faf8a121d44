/** The walks of CONTRIBUTING.md name files that are there, and functions that are in them. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ROOT } from "./pages.ts";

const page = readFileSync(join(ROOT, "CONTRIBUTING.md"), "utf8");
const [, walks = ""] = /^## A command's way$([\s\S]*?)^## /m.exec(page) ?? [];
const files = execFileSync("git", ["ls-files", "packages"], { cwd: ROOT, encoding: "utf8" }).split("\n");

/** What a step names: a file, or names in the file that was named last. */
function problemsOf(steps: readonly string[]): readonly string[] {
  let file: string | undefined;
  return steps.flatMap((step) => {
    const [, path, names = ""] = /^([\w/-]+\.[jt]s)(?:: (.*))?$/.exec(step) ?? [undefined, undefined, step];
    if (path !== undefined) file = files.find((each) => each.endsWith(`/${path}`));
    if (file === undefined) return [`${step}: there is no such file`];
    const text = readFileSync(join(ROOT, file), "utf8");
    const missing = names.split(/[.,] ?/).filter((name) => /^#?\w+$/.test(name) && !text.includes(name));
    return missing.map((name) => `${name} is not in ${file}`);
  });
}

it("every file and function of the walks is there", () => {
  const steps = [...walks.matchAll(/^\d+\. (.*)$/gm)].flatMap(([, line = ""]) =>
    [...line.matchAll(/`([^`]+)`/g)].map(([, step = ""]) => step),
  );
  expect(steps.length).toBeGreaterThan(40);
  expect(problemsOf(steps)).toEqual([]);
});
