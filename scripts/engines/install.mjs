// Installs missing servers as Debian packages, when we are root. Their services are not started: the tests run their
// own servers on their own ports, and a service on a well-known port would only be in somebody's way.
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { withLock } from "./lock.mjs";
import {
  EngineUnavailableError,
  findProgram,
  missingPrograms,
  requireAzurite,
  requireDynalite,
  requirements,
  run,
} from "./programs.mjs";

/** @typedef {import("./index.mjs").EngineName} EngineName */

const INSTALL_TIMEOUT_MS = 15 * 60_000;
const SERVICE_POLICY = "/usr/sbin/policy-rc.d";
// Another process may be installing packages right now.
const WAIT_FOR_LOCK = ["-o", "DPkg::Lock::Timeout=300", "-o", "APT::Update::Lock::Timeout=300"];

/** @type {readonly (readonly [EngineName, () => Promise<unknown>])[]} */
const FROM_NPM = [
  ["azurite", requireAzurite],
  ["dynalite", requireDynalite],
];

/**
 * Installs what the engines lack, in one go.
 * @param {readonly EngineName[]} names
 * @param {(message: string) => void} say
 * @returns {Promise<Map<EngineName, string>>} the engines that cannot run here, each with the reason.
 */
export async function ensureInstalled(names, say) {
  const lacking = names.filter((name) => missingPrograms(name).length > 0);
  let failure = "";
  if (lacking.length > 0) {
    try {
      await installPackages([...new Set(lacking.flatMap((name) => requirements[name].packages))], say);
    } catch (error) {
      failure = error instanceof Error ? error.message : String(error);
    }
  }
  /** @type {Map<EngineName, string>} */
  const unavailable = new Map();
  for (const name of lacking) {
    const missing = missingPrograms(name);
    if (missing.length === 0) continue;
    unavailable.set(
      name,
      `no ${missing.join(", ")} on this machine; ${failure || "the packages did not bring it"}`,
    );
  }
  for (const [name, require] of FROM_NPM) {
    if (!names.includes(name)) continue;
    try {
      await require();
    } catch (error) {
      if (!(error instanceof EngineUnavailableError)) throw error;
      unavailable.set(name, error.message);
    }
  }
  return unavailable;
}

/**
 * The path of a program that is no engine, installed on first use if we are root. Rejects where that is not possible.
 * @param {{ readonly program: string, readonly package: string }} wanted Its name, and that of Debian's package.
 * @param {(message: string) => void} say
 * @returns {Promise<string>}
 */
export async function ensureProgram({ program, package: from }, say) {
  const find = () => findProgram(program);
  const install = async () => {
    await installPackages([from], say);
    const path = find();
    if (path === undefined)
      throw new Error(`Debian's package ${from} did not bring the program '${program}'`);
    return path;
  };
  return find() ?? (await withLock(program, async () => find() ?? (await install()), say));
}

/**
 * @param {readonly string[]} packages
 * @param {(message: string) => void} say
 */
async function installPackages(packages, say) {
  const wanted = packages.join(" ");
  if (process.getuid?.() !== 0) throw new Error(`installing ${wanted} needs root`);
  if (!existsSync("/usr/bin/apt-get")) throw new Error(`no apt-get here: install ${wanted} by hand`);
  say(`installing ${wanted}`);
  const options = { env: { DEBIAN_FRONTEND: "noninteractive" }, timeoutMs: INSTALL_TIMEOUT_MS };
  const policyIsOurs = !existsSync(SERVICE_POLICY);
  // Debian asks this file before it starts a service; 101 means "not allowed".
  if (policyIsOurs) writeFileSync(SERVICE_POLICY, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  try {
    await run("apt-get", [...WAIT_FOR_LOCK, "update"], options);
    await run(
      "apt-get",
      [...WAIT_FOR_LOCK, "install", "-y", "--no-install-recommends", ...packages],
      options,
    );
  } finally {
    if (policyIsOurs) rmSync(SERVICE_POLICY, { force: true });
  }
}
