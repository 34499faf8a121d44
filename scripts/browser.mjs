// A headless Chromium, as Debian packages it: for tests of the dashboard, its pictures and its frame rate. Installed on
// first use, when we are root, like the engines.
import { chromium } from "playwright-core";
import { installPackages } from "./engines/install.mjs";
import { withLock } from "./engines/lock.mjs";
import { findProgram } from "./engines/programs.mjs";

const FLAGS = [
  ...["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
  ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
];

/** @type {import("./browser.mjs").ensureBrowser} */
export async function ensureBrowser(say = console.error) {
  const find = () => findProgram("chromium");
  return find() ?? (await withLock("browser", async () => find() ?? (await installed(say)), say));
}

/** @param {(message: string) => void} say @returns {Promise<string>} */
async function installed(say) {
  await installPackages(["chromium"], say);
  const path = findProgram("chromium");
  if (path === undefined) throw new Error("Debian's package chromium did not bring the program 'chromium'");
  return path;
}

/** @type {import("./browser.mjs").launchBrowser} */
export async function launchBrowser() {
  return await chromium.launch({ executablePath: await ensureBrowser(), args: FLAGS });
}
