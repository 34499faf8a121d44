/** What users get: the built package has every entry, each exports what its source does, and classes exist once. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import manifest from "../package.json" with { type: "json" };

const BUILD = join(import.meta.dirname, "../dist");

const entries = Object.entries(manifest.exports).map(([path, entry]) => ({
  specifier: path.replace(/^\./, "solehold"),
  source: entry["solehold-source"],
}));

/** Runs in a plain Node process, which knows only the build. */
function inNode(script: string): unknown {
  const args = ["--input-type=module", "-e", script];
  return JSON.parse(execFileSync(process.execPath, args, { cwd: import.meta.dirname, encoding: "utf8" }));
}

describe("the built package", () => {
  const built = inNode(`
    const names = {};
    for (const specifier of ${JSON.stringify(entries.map(({ specifier }) => specifier))}) {
      names[specifier] = Object.keys(await import(specifier)).sort();
    }
    console.log(JSON.stringify(names));
  `) as { readonly [specifier: string]: readonly string[] };

  it.each(entries)("exports from $specifier what $source does", async ({ specifier, source }) => {
    const module: object = await import(`../${source}`);
    expect(built[specifier]).toEqual(Object.keys(module).sort());
    expect(built[specifier]).not.toEqual([]);
  });

  it("has one class of store error, whichever entry throws it", () => {
    const caught = inNode(`
      import { StoreError } from "solehold";
      import { openRedisStore } from "solehold/redis";
      const error = await openRedisStore({ url: "redis://127.0.0.1:1" }).catch((reason) => reason);
      console.log(JSON.stringify({ name: error.name, same: error instanceof StoreError }));
    `);
    expect(caught).toEqual({ name: "StoreError", same: true });
  });

  it("needs nothing but Node for its main entry", () => {
    expect(packagesBehind("index.js").filter((specifier) => !specifier.startsWith("node:"))).toEqual([]);
  });
});

/** What a file of the build imports at once, through all files that it imports. */
function packagesBehind(file: string, seen = new Set<string>()): string[] {
  if (seen.has(file)) return [];
  seen.add(file);
  const code = readFileSync(join(BUILD, file), "utf8");
  const specifiers = [...code.matchAll(/^(?:import|export)\b[^"';]*["']([^"']+)["']/gm)].map(
    ([, name = ""]) => name,
  );
  return specifiers.flatMap((name) =>
    name.startsWith(".") ? packagesBehind(join(dirname(file), name), seen) : [name],
  );
}
