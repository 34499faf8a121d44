// The playground as static files in a real browser: what people see, the same runs as in Node, no violation of axe.
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { drawConfig } from "@solehold/simulator";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RULES, SCENARIOS } from "../src/playground/data/cases.ts";
import { play } from "../src/playground/worker/play.ts";
import { axeViolations, type OpenPage, scrollsSideways, useBrowser } from "./support/browser.ts";

const BUILT = join(import.meta.dirname, "../dist");
const CLI = join(import.meta.dirname, "../../cli/bin/solehold.js");
const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};
/** As strict as a server can be: no inline script, nothing from elsewhere. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; worker-src 'self'; connect-src 'self'";

describe("the playground in a browser", () => {
  const openPage = useBrowser();
  let folder = "";
  let server: Server;
  let base = "";

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "solehold-playground-"));
    server = createServer((request, response) => {
      const path = new URL(request.url ?? "/", "http://host").pathname.replace("/deep/folder", "");
      readFile(join(BUILT, path)).then(
        (bytes) => {
          const type = TYPES[extname(path)] ?? "application/octet-stream";
          response.writeHead(200, { "content-type": type, "content-security-policy": POLICY }).end(bytes);
        },
        () => response.writeHead(404).end(),
      );
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/deep/folder/playground.html`;
  });

  afterAll(async () => {
    server?.close();
    await rm(folder, { recursive: true, force: true });
  });

  const open = (hash: string, width = 1_440): Promise<OpenPage> => openPage(`${base}${hash}`, { width });

  it("shows every scenario with the shipped code and with its bug, as the text says", async () => {
    const { page, complaints } = await open("");
    for (const { id, bug, broken } of SCENARIOS) {
      await page.goto(`${base}#/${id}?code=shipped`);
      await page.locator("h2", { hasText: RULES.find((each) => each.id === id)?.title ?? "" }).waitFor();
      await page.locator(".verdict.held").waitFor();
      await page.getByRole("button", { name: "Take the rule out" }).click();
      await page.locator(".verdict.broken").waitFor();
      expect(broken.violation).not.toBeNull();
      expect(await page.locator(".code-switch select").inputValue()).toBe(bug);
      await page.getByRole("button", { name: "Run the shipped code on the same seed" }).click();
      await page.locator(".verdict.held").waitFor();
    }
    expect(complaints).toEqual([]);
    await page.close();
  });

  it("changes the outcome when a fault is removed, keeps that in the URL, and opens the same from it", async () => {
    const { page } = await open("#/suspended-laptop?code=monotonic-clock-only");
    await page.locator(".verdict.broken").waitFor();
    await page.getByRole("button", { name: "Remove A: asleep" }).click();
    await page.locator(".verdict.held").waitFor();
    await page.waitForURL(/faults=/);
    const { page: again } = await open(new URL(page.url()).hash);
    await again.locator(".verdict.held").waitFor();
    await Promise.all([page.close(), again.close()]);
  });

  it("moves a fault that is dragged", async () => {
    const { page } = await open("#/suspended-laptop?code=shipped");
    const box = await page.locator(".fault .box").boundingBox();
    if (box === null) throw new Error("the fault has no box");
    await page.mouse.move(box.x + 30, box.y + 6);
    await page.mouse.down();
    await page.mouse.move(box.x + 130, box.y + 6, { steps: 4 });
    await page.mouse.up();
    await page.waitForURL(/faults=suspend:A::(?!6000)\d+:14000/);
    await page.close();
  });

  it("opens a link at its time, speed and key, and writes down where one scrubs to", async () => {
    const { page } = await open("#/late-reply?code=stamp-from-reply&t=5.00&speed=4");
    const clock = page.locator(".clock");
    await expect.poll(() => clock.textContent()).toBe("5.00 s");
    expect(await page.getByLabel("Speed").inputValue()).toBe("4");
    const time = page.getByLabel("Time", { exact: true });
    await time.evaluate((range: HTMLInputElement) => {
      range.value = "12000";
      range.dispatchEvent(new Event("input", { bubbles: true }));
    });
    await page.waitForURL(/code=stamp-from-reply&t=12.00&speed=4/);
    await page.locator(".now .alarm", { hasText: "Two believe at once" }).waitFor();
    const { keys } = await play({ kind: "seed", seed: { seed: 41 } }, "", null);
    await page.goto(`${base}#/seed/41?code=shipped&key=${keys[1]}`);
    await expect.poll(() => page.getByRole("combobox", { name: "Key" }).inputValue()).toBe(keys[1]);
    await page.close();
  });

  it("opens a rule of the gallery without the rule, and plays the shipped code on the same seed", async () => {
    const { page } = await open("#/rules");
    expect(await page.locator(".rule").count()).toBe(RULES.length);
    await page.getByRole("link", { name: "A break sets an end" }).click();
    await page.locator(".verdict.broken").waitFor();
    await page.getByRole("button", { name: "Run the shipped code on the same seed" }).click();
    await page.locator(".verdict.held").waitFor();
    await page.close();
  });

  it("steps and plays by the keyboard, and says each step to screen readers", async () => {
    const { page } = await open("#/late-reply?code=shipped");
    await page.locator(".said").waitFor();
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    await expect
      .poll(() => page.locator("[role=status].said").textContent())
      .toContain("A asks for the lease");
    await page.keyboard.press("Space");
    await page.getByRole("button", { name: "Pause" }).waitFor();
    await page.keyboard.press("Space");
    await page.getByRole("button", { name: "Play", exact: true }).waitFor();
    await page.waitForURL(/[?&]t=/);
    expect(await page.title()).toBe("Late reply · Solehold playground");
    await page.close();
  });

  it("plays a seed as the command line does, event for event, and opens its trace", async () => {
    const file = join(folder, "run.json");
    const args = ["sim", "--seed", "41", "--through", "library", "--trace", file];
    await promisify(execFile)(process.execPath, [CLI, ...args]);
    const { page, complaints } = await open("#/file");
    await page.locator("input[type=file]").setInputFiles(file);
    const steps = page.locator(".steps li");
    await steps.first().waitFor();
    const loaded = await steps.allInnerTexts();
    await page.goto(`${base}#/seed/41?code=shipped`);
    await page.locator("h2", { hasText: "Seed 41" }).waitFor();
    await steps.first().waitFor();
    expect(await steps.allInnerTexts()).toEqual(loaded);
    await page.goto(`${base}#/seed/42?code=shipped`);
    await page.locator("h2", { hasText: "Seed 42" }).waitFor();
    expect(await page.getByLabel("Seed").inputValue()).toBe("42");
    expect(complaints).toEqual([]);
    await page.close();
  });

  it("has in the browser all that worlds with slots, priorities and crashes use of Node", async () => {
    const seeds = Array.from({ length: 12 }, (_, index) => 40 + index);
    // Signatures are not part of the playground.
    const shown = seeds.filter((seed) => drawConfig(seed, { entry: "library" }).approvals === "no");
    expect(shown.some((seed) => drawConfig(seed, { entry: "library" }).slots > 0)).toBe(true);
    for (const seed of shown) {
      const { page } = await open(`#/seed/${seed}`);
      const verdict = await page.locator(".verdict strong").textContent();
      expect([seed, verdict]).toEqual([seed, "Every promise held."]);
      await page.close();
    }
    const signed = seeds.find((seed) => !shown.includes(seed));
    const { page } = await open(`#/seed/${signed}`);
    await page.getByRole("alert").getByText("this world has signed approvals").waitFor();
    expect(await page.locator(".command code").textContent()).toContain(
      `sim --seed ${signed} --through library`,
    );
    expect(await axeViolations(page)).toEqual([]);
    await page.close();
  });

  it("shows an audit export, and says what is wrong with a file that is none", async () => {
    const entry = {
      tenant: "default",
      key: "job",
      reason: "OK_DECISION_COMPUTE",
      allowed: true,
      outcome: "applied",
    };
    const lines = [
      { ...entry, at: 1_700_000_000_000, action: "grant", holder: "<b>web-1</b>", fence: "1" },
      { ...entry, at: 1_700_000_004_000, action: "release", holder: "<b>web-1</b>", fence: "1" },
      { ...entry, at: 1_700_000_006_000, action: "grant", holder: "web-2", fence: "2" },
    ];
    const [good, bad] = [join(folder, "audit.jsonl"), join(folder, "bad.jsonl")];
    await writeFile(good, lines.map((line) => JSON.stringify(line)).join("\n"));
    await writeFile(bad, "not an audit");
    const { page } = await open("#/file");
    await page.locator("input[type=file]").setInputFiles(good);
    await page.locator(".verdict.plain").waitFor();
    expect(await page.locator(".names .name").allTextContents()).toEqual(
      expect.arrayContaining(["web-2", "store"]),
    );
    expect(await page.locator(".picture b").count()).toBe(0);
    expect(await page.locator(".belief .bar").count()).toBe(2);
    // A real one has very many keys; the first shown is the one that was held most often.
    const many = Array.from({ length: 12_000 }, (_, index) => ({ ...lines[0], key: `job/${index}` }));
    await writeFile(good, [...many, ...lines].map((line) => JSON.stringify(line)).join("\n"));
    await page.locator("input[type=file]").setInputFiles(good);
    await expect.poll(() => page.locator(".key-picker option").count()).toBe(12_001);
    expect(await page.locator(".belief .bar").count()).toBe(2);
    expect(await page.locator(".steps li").count()).toBe(3);
    await page.locator("input[type=file]").setInputFiles(bad);
    await expect.poll(() => page.getByRole("alert").textContent()).toContain("line 1 is no JSON");
    await page.close();
  });

  it("finds the shortest trace in the explorer, and none with the shipped code", async () => {
    const { page } = await open("#/lost-release?code=shipped");
    await page.getByRole("button", { name: "Find the shortest trace" }).click();
    await page.locator(".exploration ol.trace li").first().waitFor();
    expect(await page.locator(".exploration ol.trace li").count()).toBe(2);
    await page.waitForURL(/explored=broken/);
    await page.getByRole("button", { name: "Visit every state" }).click();
    await page.getByText(/^All [\d,]+ states/).waitFor();
    await page.waitForURL(/explored=shipped/);
    const { page: again } = await open(new URL(page.url()).hash);
    await again.getByText(/^All [\d,]+ states/).waitFor();
    await Promise.all([page.close(), again.close()]);
  });

  it.each([1_440, 375])("has no violation of axe and no sideways scrolling at %i pixels", async (width) => {
    for (const hash of ["#/zombie-writer?code=guard-off", "#/rules", "#/file", "#/seed/40"]) {
      const { page, complaints } = await open(hash, width);
      await page
        .locator(hash === "#/file" ? ".drop" : hash === "#/rules" ? ".rule .picture" : ".verdict")
        .first()
        .waitFor();
      expect([hash, await axeViolations(page)]).toEqual([hash, []]);
      expect(await scrollsSideways(page)).toBe(false);
      expect(complaints).toEqual([]);
      await page.close();
    }
  });

  it("says clearly what is wrong in a link", async () => {
    const { page } = await open("#/late-reply?faults=quake:A::1:2:");
    await expect
      .poll(() => page.getByRole("alert").textContent())
      .toContain("faults[0].kind 'quake' is unknown");
    expect(await page.locator(".verdict").count()).toBe(0);
    await page.close();
  });
});
