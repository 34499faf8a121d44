/** docs/writing-a-store.md is run as it stands: its files are written out and its kit must pass. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, expect, it, vi } from "vitest";

/** The whole kit runs in one test. */

const PAGE = new URL("../../../../../docs/writing-a-store.md", import.meta.url);
/** Beside this file, so that `solehold` is found from there. */
const folder = mkdtempSync(join(import.meta.dirname, ".page-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const page = readFileSync(PAGE, "utf8");
const files = [...page.matchAll(/```js\n\/\/ (\S+)\n(.*?)```/gs)].map(([, name = "", code = ""]) => ({
  name,
  code,
}));

interface Checked {
  readonly passed: readonly string[];
  readonly failures: readonly string[];
}

async function run(name: string, change: (code: string) => string): Promise<Checked> {
  const place = join(folder, name);
  mkdirSync(place);
  for (const { name: file, code } of files) writeFileSync(join(place, file), change(code));
  const log = vi.spyOn(console, "log").mockImplementation(() => undefined);
  try {
    return (await import(pathToFileURL(join(place, "check.mjs")).href)) as Checked;
  } finally {
    log.mockRestore();
  }
}

it("the store of the page passes the kit", async () => {
  expect(files.map(({ name }) => name)).toEqual(["server.mjs", "store.mjs", "check.mjs"]);
  const { passed, failures } = await run("as-it-stands", (code) => code);
  expect(failures).toEqual([]);
  expect(passed.length).toBeGreaterThan(40);
});

it("without the comparison the kit says what the page says", async () => {
  const comparison = /^.*return reply\(412\);\n/m;
  expect(page).toMatch(comparison);
  // Much fails, and need not take long to.
  const hasty = (code: string): string =>
    code.replace("const subject = {", "const subject = { patienceMs: 200,");
  const { failures } = await run("broken", (code) => hasty(code.replace(comparison, "")));
  const said = /^> (.*won version null)$/m.exec(page)?.[1];
  expect(failures).toContain(said);
});
