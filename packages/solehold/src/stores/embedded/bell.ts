/**
 * A file that is touched after a commit while somebody watches, so that other processes look at once
 * instead of asking all the time. It carries nothing: a ring that gets lost is made up for by polling.
 */
import { closeSync, openSync, watch, writeSync } from "node:fs";
import { join } from "node:path";

export const BELL_FILE = "bell";

export class Bell {
  readonly #path: string;
  readonly #hearing: "hearing" | "deaf";
  #descriptor: number | null = null;

  constructor(folder: string, hearing: "hearing" | "deaf") {
    this.#path = join(folder, BELL_FILE);
    this.#hearing = hearing;
  }

  ring(): void {
    try {
      this.#descriptor ??= openSync(this.#path, "w", 0o600);
      writeSync(this.#descriptor, ".", 0);
    } catch {
      // Watchers poll as well.
    }
  }

  /** The returned function stops it; null where the system cannot watch files, or not one more. */
  listen(heard: () => void, lost: () => void): (() => void) | null {
    if (this.#hearing === "deaf") return null;
    try {
      closeSync(openSync(this.#path, "a", 0o600));
      const watcher = watch(this.#path, { persistent: false }, heard);
      watcher.on("error", () => {
        watcher.close();
        lost();
      });
      return () => watcher.close();
    } catch {
      return null;
    }
  }

  close(): void {
    if (this.#descriptor !== null) closeSync(this.#descriptor);
    this.#descriptor = null;
  }
}
