// A headless Chromium, as Debian packages it: for tests of the dashboard, its pictures and its frame rate. Installed on
// first use, when we are root, like the engines.
import { chromium } from "playwright-core";
import { ensureProgram } from "./engines/install.mjs";

const FLAGS = [
  ...["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
  ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
];

/** @type {import("./browser.mjs").ensureBrowser} */
export const ensureBrowser = (say = console.error) =>
  ensureProgram({ program: "chromium", package: "chromium" }, say);

/** @type {import("./browser.mjs").launchBrowser} */
export async function launchBrowser() {
  return await chromium.launch({ executablePath: await ensureBrowser(), args: FLAGS });
}
