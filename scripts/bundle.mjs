// Bundles the library: one file for each entry of its package.json, and shared chunks, so that a class or a
// symbol exists once however many entries a program imports. Forty small modules take twice as long to
// import as a handful of larger ones. The compiler checks the sources and writes the types; this writes the code.
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { rolldown } from "rolldown";

const LIBRARY = resolve(dirname(new URL(import.meta.url).pathname), "../packages/solehold");
const OUTPUT = join(LIBRARY, "dist");
const CHUNKS = "chunks";

const THREAD_URL = /new URL\("(\.\/[\w-]+-thread\.js)", import\.meta\.url\)/;

/**
 * A thread is a file of its own, named by `new URL("./x-thread.js", import.meta.url)`: it is bundled too, and the URL leads
 * there from wherever the code that starts it ends up.
 */
const threads = {
  name: "threads",
  transform(code, id) {
    if (!THREAD_URL.test(code)) return null;
    const replaced = code.replace(THREAD_URL, (_url, path) => {
      const file = this.emitFile({ type: "chunk", id: resolve(dirname(id), path) });
      return `new URL(import.meta.ROLLUP_FILE_URL_${file})`;
    });
    // Lines stay where they are, so the map of the file does, too.
    return { code: replaced, map: null };
  },
};

/** @returns {Record<string, string>} The source of each file that package.json promises. */
function entries() {
  const { exports } = JSON.parse(readFileSync(join(LIBRARY, "package.json"), "utf8"));
  return Object.fromEntries(
    Object.values(exports).map((entry) => [
      entry.default.replace(/^\.\/dist\//, "").replace(/\.js$/, ""),
      join(LIBRARY, entry["solehold-source"]),
    ]),
  );
}

const bundle = await rolldown({
  input: entries(),
  plugins: [threads],
  platform: "node",
  external: /^[^./]/,
  onLog: (_level, log) => {
    throw new Error(log.message);
  },
});
const { output } = await bundle.write({
  dir: OUTPUT,
  format: "esm",
  sourcemap: true,
  sourcemapExcludeSources: true, // src is published: maps only point there
  entryFileNames: "[name].js",
  chunkFileNames: `${CHUNKS}/[name].js`,
});
await bundle.close();

// Programs may be running from the files of the last build: what is gone goes last.
const written = new Set(output.map(({ fileName }) => fileName));
for (const folder of ["", "adapters", CHUNKS]) {
  for (const { name } of readdirSync(join(OUTPUT, folder), { withFileTypes: true }).filter((e) =>
    e.isFile(),
  )) {
    const stale = /\.js(\.map)?$/.test(name) && !written.has(folder === "" ? name : `${folder}/${name}`);
    if (stale) rmSync(join(OUTPUT, folder, name));
  }
}
