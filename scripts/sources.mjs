// What a page of results speaks of: the commit, and a hash of the sources, which tells whether they have changed since.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..");
const git = (...args) => execFileSync("git", args, { cwd: ROOT, encoding: "utf8" }).trim();

export const commit = () => git("rev-parse", "HEAD");

/** Of every file that git knows, or would know. @param {readonly string[]} paths Files and folders of the repository. */
export function sourceHash(paths) {
  const hash = createHash("sha256");
  const files = git("ls-files", "--cached", "--others", "--exclude-standard", "--", ...paths).split("\n");
  for (const file of [...new Set(files)].sort())
    hash.update(`${file}\n`).update(readFileSync(join(ROOT, file)));
  return hash.digest("hex");
}
