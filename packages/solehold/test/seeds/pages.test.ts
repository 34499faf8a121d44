/** The pages for the five documents: their programs run, and say what the page says. */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

const PAGES = join(import.meta.dirname, "../../../../docs/seeds");
const pages = readdirSync(PAGES).filter((name) => /^00\d-.*\.md$/.test(name));

function blockOf(page: string, language: string): string {
  return new RegExp(`\`\`\`${language}\\n([\\s\\S]+?)\`\`\``).exec(page)?.[1] ?? "";
}

describe("the pages of the documents", () => {
  it("are five", () => {
    expect(pages.map((name) => name.slice(0, 3))).toEqual(["000", "001", "002", "003", "004"]);
  });

  it.each(pages)("%s: its program runs on the build and prints what the page shows", async (name) => {
    const page = readFileSync(join(PAGES, name), "utf8");
    const args = ["--input-type=module", "-e", blockOf(page, "js")];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: import.meta.dirname });
    expect(stdout).not.toBe("");
    expect(stdout).toBe(blockOf(page, "text"));
  });

  it.each(pages)("%s: names only what solehold/seeds exports", async (name) => {
    const page = readFileSync(join(PAGES, name), "utf8");
    const [, list = ""] = /import \{ ([^}]+) \} from "solehold\/seeds"/.exec(page) ?? [];
    const exported = Object.keys(await import("../../src/facades/seeds.ts"));
    for (const imported of list.split(", ")) expect(exported).toContain(imported);
  });
});
