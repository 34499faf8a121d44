// How long a fresh process takes to import modules; its own start does not count.
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

export function importMs(modules) {
  const { resolve } = createRequire(import.meta.url);
  const urls = modules.map((name) => JSON.stringify(pathToFileURL(resolve(name)).href));
  const script = `const t = performance.now(); ${urls.map((url) => `await import(${url});`).join(" ")} console.log(performance.now() - t);`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
  });
  const ms = Number.parseFloat(stdout);
  if (Number.isNaN(ms)) throw new Error(`importing ${modules.join(", ")} failed: ${stderr}`);
  return ms;
}
