import type { Browser } from "playwright-core";

/** The path of Chromium, installed if it is not there yet. Rejects where that is not possible, with what to do. */
export function ensureBrowser(say?: (message: string) => void): Promise<string>;
export function launchBrowser(): Promise<Browser>;
