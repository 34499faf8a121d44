/**
 * Starts and ends the writer of appender.mjs, or another that prints lines, as a process of its own. It runs the build,
 * not the sources.
 */
import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

const APPENDER = fileURLToPath(new URL("./appender.mjs", import.meta.url));

export class Writer {
  readonly #child: ChildProcess;
  readonly lines: string[] = [];
  readonly #exited: Promise<unknown>;
  #closed = false;
  #changed: () => void = () => {};

  constructor(folder: string, name: string, mode: "append" | "hold", script = APPENDER) {
    this.#child = spawn(process.execPath, [script, folder, name, mode], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    // Not "exit": what was printed last may still be on its way then.
    this.#exited = once(this.#child, "close").then(() => {
      this.#closed = true;
      this.#changed();
    });
    createInterface({ input: this.#child.stdout! }).on("line", (line) => {
      this.lines.push(line);
      this.#changed();
    });
    onTestFinished(() => this.kill());
  }

  /** Resolves once so many lines were printed, or the process has ended. */
  async printed(count: number): Promise<void> {
    while (this.lines.length < count && !this.#closed) {
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
  }

  /** As by the out-of-memory killer: no handler runs. All that was printed has been read afterwards. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#exited;
  }
}
