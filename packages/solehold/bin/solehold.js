#!/usr/bin/env node
// The command line is @solehold/cli. The library does not depend on it: it would bring a server to every program that
// only holds leases. This command runs the one that is installed in the current folder or beside this package, in this
// process. Without one, npm fetches the one of this version and runs it.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { constants } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const args = process.argv.slice(2);
const path = installed(join(process.cwd(), "package.json")) ?? installed(import.meta.url);
if (path === null) runByNpm();
else process.exit(await (await import(pathToFileURL(path).href)).main(args));

function installed(from) {
  try {
    return createRequire(from).resolve("@solehold/cli");
  } catch (error) {
    if (error.code === "MODULE_NOT_FOUND") return null;
    throw error;
  }
}

function runByNpm() {
  const { version } = createRequire(import.meta.url)("../package.json");
  const wanted = `@solehold/cli@${version}`;
  const fix = `to install it: npm install ${wanted}`;
  console.error(`solehold: ${wanted} is not installed here, npm runs it (${fix})`);
  const words = ["exec", "--yes", `--package=${wanted}`, "--", "solehold", ...args];
  const npm = spawn("npm", words, { stdio: "inherit" });
  npm.on("error", ({ message }) => {
    console.error(`solehold: npm cannot be run (${message}): install ${wanted}`);
    process.exit(1);
  });
  npm.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
  // A terminal sends its interrupt to npm as well: wait for the end. Other signals come to this process alone.
  process.on("SIGINT", () => {});
  for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => npm.kill(signal));
}
