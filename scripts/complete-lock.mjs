// node scripts/complete-lock.mjs [--check]: names every platform's optional package in each package-lock.json.
//
// Tools with native code (biome, rolldown, esbuild, ...) list one optional package per platform. A registry that
// does not carry all of them makes `npm install` leave the missing ones out of the lock file, and `npm ci` then
// refuses the file as out of sync. Their versions are known (they are pinned by the tool), and npm never fetches a
// package of another platform, so the entries can be written without the registry.
import { readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { ADAPTED, BENCH, EMULATORS } from "./own-packages.mjs";

const FOLDERS = [join(import.meta.dirname, ".."), BENCH, EMULATORS, ADAPTED];
const EXACT = /^\d+\.\d+\.\d+(?:-[\w.]+)?$/;
const OSES = [
  "android",
  "darwin",
  "win32",
  "freebsd",
  "netbsd",
  "openbsd",
  "openharmony",
  "sunos",
  "aix",
  "linux",
];
const CPUS = ["x64", "arm64", "arm", "ia32", "ppc64", "s390x", "riscv64", "loong64", "mips64el", "wasm32"];

/** The platform that a package's name speaks of: `@biomejs/cli-linux-x64-musl`. */
function platformOf(name) {
  const parts = name.split(/[/-]/);
  const os = OSES.find((each) => parts.includes(each));
  const cpu = CPUS.find((each) => parts.includes(each));
  const libc = parts.includes("musl") ? "musl" : parts.includes("gnu") ? "glibc" : undefined;
  if (os === undefined && cpu === undefined) return null;
  return {
    ...(cpu === undefined ? {} : { cpu: [cpu] }),
    ...(libc === undefined ? {} : { libc: [libc] }),
    ...(os === undefined ? {} : { os: [os] }),
  };
}

/** Where npm would look for it: beside its dependent, or further up. */
function isPresent(packages, from, name) {
  const parts = from.split("/node_modules/");
  for (let depth = parts.length; depth >= 0; depth -= 1) {
    const base = parts.slice(0, depth).join("/node_modules/");
    if (packages[base === "" ? `node_modules/${name}` : `${base}/node_modules/${name}`] !== undefined)
      return true;
  }
  return false;
}

/** What the lock file lacks, by the path of its entry. */
function missingFrom(lock) {
  const added = {};
  for (const [path, entry] of Object.entries(lock.packages)) {
    for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
      const platform = platformOf(name);
      if (platform === null || !EXACT.test(version) || isPresent(lock.packages, path, name)) continue;
      const flags = entry.dev === true ? { dev: true, optional: true } : { optional: true };
      added[`node_modules/${name}`] = { version, ...platform, ...flags };
    }
  }
  return added;
}

for (const folder of FOLDERS) {
  const file = join(folder, "package-lock.json");
  const shown = relative(FOLDERS[0], file);
  const lock = JSON.parse(readFileSync(file, "utf8"));
  const added = missingFrom(lock);
  const count = Object.keys(added).length;
  if (!process.argv.includes("--check")) {
    const packages = { ...lock.packages, ...added };
    const sorted = Object.fromEntries(Object.entries(packages).sort(([a], [b]) => (a < b ? -1 : 1)));
    writeFileSync(file, `${JSON.stringify({ ...lock, packages: sorted }, null, 2)}\n`);
    console.log(`${count} optional packages added to ${shown}`);
  } else if (count > 0) {
    console.error(`${shown} lacks ${count} optional packages, so npm ci would refuse it:`);
    console.error("run 'node scripts/complete-lock.mjs' and commit the file");
    process.exitCode = 1;
  }
}
