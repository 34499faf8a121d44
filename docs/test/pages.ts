/**
 * The Markdown pages of the repository and the code in them. What a block's language says about how it is checked:
 *
 *   ts           compiled; a comment `<!-- given: ... -->` right above it declares what the page leaves out
 *   js run       run as a program of its own; a `text` block right below it is what it prints ("…" stands for anything)
 *   sh           each command of ours in it exists and takes these options
 *   json         parsed
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

export const ROOT = join(import.meta.dirname, "../..");

export interface CodeBlock {
  readonly page: string;
  /** Of its first line of code, counted from 1. */
  readonly line: number;
  readonly language: string;
  /** What follows the language: "run", or nothing. */
  readonly mode: string;
  readonly code: string;
  /** What the page leaves out of it. */
  readonly given: string;
  /** The text that the page shows below it; null without one. */
  readonly prints: string | null;
}

export interface Page {
  readonly path: string;
  readonly text: string;
  readonly blocks: readonly CodeBlock[];
}

const BLOCK = /(?:<!-- given:\s*([\s\S]*?)\s*-->\n)?^( *)```(\w*) *(\w*)\n([\s\S]*?)^\2```$/gm;
const OUTPUT = /^\n+```text\n([\s\S]*?)^```$/m;

function blocksOf(path: string, text: string): readonly CodeBlock[] {
  return [...text.matchAll(BLOCK)].map((match) => {
    const [whole, given = "", indent = "", language = "", mode = "", code = ""] = match;
    const end = match.index + whole.length;
    const output = OUTPUT.exec(text.slice(end));
    return {
      page: path,
      line: text.slice(0, end).split("\n").length - code.split("\n").length + 1,
      language,
      mode,
      code: code.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
      given,
      prints: output?.index === 0 ? (output[1] ?? "") : null,
    };
  });
}

/** Every page that git knows, or would know: a new page is checked before it is committed. */
export function allPages(): readonly Page[] {
  const args = ["ls-files", "--cached", "--others", "--exclude-standard", "*.md"];
  const paths = execFileSync("git", args, { cwd: ROOT, encoding: "utf8" }).split("\n").filter(Boolean);
  return [...new Set(paths)].map((path) => {
    const text = readFileSync(join(ROOT, path), "utf8");
    return { path, text, blocks: blocksOf(path, text) };
  });
}
