// Folders that vanish with the test, and waiting for a condition instead of for a time.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** Shorter than the limit of a test, so that this says what was waited for. Nothing is measured here. */
const PATIENCE_MS = 120_000;
const LOOK_EVERY_MS = 10;

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "solehold-cli-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** Resolves as soon as the condition gives something true, and fails the test when it never does. */
export async function until<Value>(
  what: string,
  condition: () => Value | null | undefined | false | Promise<Value | null | undefined | false>,
): Promise<Value> {
  const endMs = performance.now() + PATIENCE_MS;
  for (;;) {
    const value = await condition();
    if (value !== null && value !== undefined && value !== false) return value;
    if (performance.now() > endMs) throw new Error(`waited ${PATIENCE_MS} ms in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}
