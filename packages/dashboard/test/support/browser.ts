/** One headless Chromium for a file of tests, pages that keep what they complain about, and axe. */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll } from "vitest";
import { launchBrowser } from "../../../../scripts/browser.mjs";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const HEIGHT = 900;
/** What a page has to show may come late on a busy machine: shorter than the limit of a test, so that it is named. */
const MOST_MS = 120_000;

export interface OpenPage {
  readonly page: Page;
  /** Errors of the console and of scripts, and requests to any other origin. */
  readonly complaints: string[];
}

export interface PageOptions {
  readonly width?: number;
  readonly colorScheme?: "light" | "dark";
}

/** Returns how to open pages. The browser lives as long as the file's tests. */
export function useBrowser(): (url: string, options?: PageOptions) => Promise<OpenPage> {
  let browser: Browser | null = null;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser?.close();
  });
  return async (url, { width = 1_440, colorScheme = "light" } = {}) => {
    if (browser === null) throw new Error("the browser opens before the first test");
    const page = await browser.newPage({ viewport: { width, height: HEIGHT }, colorScheme });
    page.setDefaultTimeout(MOST_MS);
    const complaints: string[] = [];
    const { origin } = new URL(url);
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("request", (request) => {
      if (!request.url().startsWith(origin) && !request.url().startsWith("data:"))
        complaints.push(`asks elsewhere: ${request.url()}`);
    });
    await page.goto(url);
    return { page, complaints };
  };
}

/** What axe objects to, each with the first element. */
export async function axeViolations(page: Page): Promise<readonly string[]> {
  await page.evaluate(await readFile(AXE, "utf8"));
  return await page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
    };
    const { violations } = await axe.run();
    return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
  });
}

/** Whether something is wider than the page, or than the view or dialog that it is in. */
export async function scrollsSideways(page: Page): Promise<boolean> {
  return await page.evaluate(() =>
    [...document.querySelectorAll("html, main, dialog")].some(
      ({ scrollWidth, clientWidth }) => scrollWidth > clientWidth,
    ),
  );
}
