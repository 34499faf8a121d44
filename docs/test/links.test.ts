/** Every link of every page leads somewhere: to a file of the repository, and to a heading that is there. So does every page that code names. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { describe, expect, it } from "vitest";
import { allPages, ROOT } from "./pages.ts";

const LINK = /\]\(([^)\s]+)\)|<(?:img|source|a)\b[^>]*?(?:src|srcset|href)="([^"]+)"/g;
const FENCED = /^ *```[\s\S]*?^ *```$/gm;
/** A page that code names, in a comment or a message: from the root of the repository, or by a path that leads there. */
const NAMED = /(?<!\w\/)docs\/[\w/-]+\.(?:md|svg)(?:#[\w-]+)?/g;

/** As GitHub makes them: lower case, spaces to hyphens, everything else that is no letter, digit, hyphen or _ is gone. */
function anchorOf(heading: string): string {
  const text = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
  return text
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(/\s/g, "-");
}

function anchorsOf(text: string): ReadonlySet<string> {
  const plain = text.replaceAll(FENCED, "");
  const headings = [...plain.matchAll(/^#+ +(.+)$/gm)].map(([, heading = ""]) => anchorOf(heading));
  const named = [...plain.matchAll(/<a (?:id|name)="([^"]+)"/g)].map(([, name = ""]) => name);
  return new Set([...headings, ...named]);
}

/** Every page that code names, with the file that names it. */
function namedInCode(): readonly (readonly [string, string])[] {
  const args = ["grep", "-I", "-E", "docs/.*\\.(md|svg)", "--", ".", ":!*.md", ":!docs/test"];
  const lines = execFileSync("git", args, { cwd: ROOT, encoding: "utf8", maxBuffer: 2 ** 26 }).split("\n");
  return lines.flatMap((line) => {
    const [file = ""] = line.split(":", 1);
    return [...line.slice(file.length).matchAll(NAMED)].map(([link]) => [file, link] as const);
  });
}

/** What is wrong with a link; null when it leads somewhere. Addresses elsewhere are not asked. */
function problemOf(page: string, link: string): string | null {
  if (/^[a-z]+:/.test(link)) return null;
  const [path = "", anchor] = link.split("#");
  const target = path === "" ? page : normalize(join(dirname(page), path));
  if (!existsSync(join(ROOT, target))) return `${page}: ${link} leads to no file`;
  if (anchor === undefined || !target.endsWith(".md")) return null;
  const anchors = anchorsOf(readFileSync(join(ROOT, target), "utf8"));
  return anchors.has(anchor) ? null : `${page}: ${target} has no heading for #${anchor}`;
}

describe("links", () => {
  const pages = allPages();

  it("lead to files and headings that exist", () => {
    const links = pages.flatMap(({ path, text }) =>
      [...text.replaceAll(FENCED, "").matchAll(LINK)].map(
        ([, inText, inTag]) => [path, inText ?? inTag ?? ""] as const,
      ),
    );
    expect(links.length).toBeGreaterThan(50);
    expect(links.flatMap(([path, link]) => problemOf(path, link) ?? [])).toEqual([]);
  });

  it("lead from code to pages and headings that exist", () => {
    const named = namedInCode();
    expect(named.length).toBeGreaterThan(20);
    expect(
      named.flatMap(([file, link]) => problemOf("README.md", link)?.replace("README.md", file) ?? []),
    ).toEqual([]);
  });

  it("lead from the index to every page of docs, each with a line of its own", () => {
    const lines = pages.find(({ path }) => path === "docs/README.md")?.text.split("\n") ?? [];
    const missing = pages
      .map(({ path }) => path)
      .filter((path) => path.startsWith("docs/") && path !== "docs/README.md")
      .filter(
        (path) =>
          !lines.some((line) => /^- \[[^\]]+\]\((.*?)\)/.exec(line)?.[1] === path.slice("docs/".length)),
      );
    expect(missing).toEqual([]);
  });

  it("lead on from the answer to each of the fifteen questions", () => {
    const text = pages.find(({ path }) => path === "docs/questions.md")?.text ?? "";
    const questions = text.split(/^## /m).slice(1);
    expect(questions).toHaveLength(15);
    const without = questions.filter((question) => [...question.matchAll(LINK)].length === 0);
    expect(without.map((question) => question.split("\n")[0])).toEqual([]);
  });

  it("are noticed when they are broken", () => {
    expect(problemOf("README.md", "docs/nothing.md")).toMatch("no file");
    expect(problemOf("README.md", "docs/protocol.md#nothing")).toMatch("no heading");
    expect(problemOf("docs/protocol.md", "#one-command")).toBeNull();
  });
});
