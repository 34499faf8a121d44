// npm run screenshots: the dashboard and the playground as pictures, light and dark, for a phone and a wide screen.
// Those that README.md shows go to docs/pictures; with a folder as argument all of them go there.
//   npm run screenshots -- /tmp/pictures
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { launchBrowser } from "../browser.mjs";
import { startDemo } from "./demo.mjs";

const PICTURES = join(import.meta.dirname, "../../docs/pictures");
const SIZES = [
  { width: 1_440, height: 900 },
  { width: 375, height: 812 },
];
const SCHEMES = /** @type {const} */ (["light", "dark"]);
const LEASE = "#/lease?tenant=default&name=billing%2Fclose-month";

/** Name, address, and what is there when it is complete. @type {readonly (readonly [string, string, string])[]} */
const VIEWS = [
  ["leases", "/", ".row [data-cell=key]"],
  ["lease", `/${LEASE}`, ".tenure"],
  ["activity", "/#/activity", ".chart canvas"],
  ["audit", "/#/audit", ".entries tbody tr"],
  ["server", "/#/server", ".findings li"],
  ["playground", "/playground#/zombie-writer?code=guard-off", ".verdict"],
  ["rules", "/playground#/rules", ".rule .picture"],
];
const SHOWN = ["lease", "playground"];

const [folder] = process.argv.slice(2);
if (folder !== undefined) mkdirSync(folder, { recursive: true });
const demo = await startDemo();
const browser = await launchBrowser();
try {
  for (const viewport of SIZES)
    for (const colorScheme of SCHEMES)
      for (const [name, path, complete] of VIEWS) {
        const isShown = viewport.width === SIZES[0]?.width && SHOWN.includes(name);
        if (folder === undefined && !isShown) continue;
        const page = await browser.newPage({
          viewport,
          colorScheme,
          deviceScaleFactor: folder === undefined ? 1.5 : 1,
        });
        await page.goto(`${demo.url}${path}`);
        await page.locator(complete).first().waitFor();
        // Fonts, charts and the first live events.
        await page.waitForTimeout(1_500);
        const file =
          folder === undefined
            ? join(PICTURES, `${name}-${colorScheme}.png`)
            : join(folder, `${name}-${viewport.width}-${colorScheme}.png`);
        await page.screenshot({ path: file });
        console.log(file);
        await page.close();
      }
} finally {
  await browser.close();
  await demo.close();
}
