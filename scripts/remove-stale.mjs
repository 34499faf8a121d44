// node scripts/remove-stale.mjs: the compiler leaves the output of a source that was renamed or deleted where it is, and
// npm would publish it. This removes it, after a build: a program may be running from the files of the last one.
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join, relative } from "node:path";

const PACKAGES = join(import.meta.dirname, "../packages");
/** What the compiler writes, by package. The library's code comes from bundle.mjs, which cleans up by itself. */
const OUTPUTS = { solehold: "dist/types", simulator: "dist", server: "dist", cli: "dist" };
const EXTENSION = /\.(d\.ts|js|js\.map)$/;

for (const [name, output] of Object.entries(OUTPUTS)) {
  const folder = join(PACKAGES, name, output);
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath ?? entry.path, entry.name);
    if (!entry.isFile() || !EXTENSION.test(file)) continue;
    const source = join(PACKAGES, name, "src", relative(folder, file).replace(EXTENSION, ""));
    if (!existsSync(`${source}.ts`)) rmSync(file);
  }
}
