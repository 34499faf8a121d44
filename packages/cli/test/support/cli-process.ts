// The built command line as a process of its own, as users run it.
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

export const PROGRAM = fileURLToPath(new URL("../../bin/solehold.js", import.meta.url));

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Node catches SIGINT and SIGTERM from the start; that a process catches SIGHUP too is the program's own doing. */
export function catchesSignals(processId: number): boolean {
  const status = readFileSync(`/proc/${processId}/status`, "utf8");
  const caught = /^SigCgt:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? "0";
  return (BigInt(`0x${caught}`) & 1n) !== 0n;
}

export class CliProcess {
  stdout = "";
  stderr = "";
  readonly exit: Promise<Exit>;
  readonly #child: ChildProcess;
  #exited: Exit | null = null;

  constructor(argv: readonly string[], options: { readonly env?: Readonly<Record<string, string>> } = {}) {
    const {
      SOLEHOLD_URL: _url,
      SOLEHOLD_HOLDER: _holder,
      SOLEHOLD_TOKEN: _token,
      ...inherited
    } = process.env;
    this.#child = spawn(process.execPath, [PROGRAM, ...argv], {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...inherited, ...options.env },
    });
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
    });
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
    this.exit = new Promise((resolve) => {
      this.#child.on("close", (code, signal) => {
        this.#exited = { code, signal };
        resolve({ code, signal });
      });
    });
    // Killing it is enough: the supervisor then ends the command, and itself.
    onTestFinished(async () => {
      if (this.#exited === null) this.#child.kill("SIGKILL");
      await this.exit;
    });
  }

  get hasExited(): boolean {
    return this.#exited !== null;
  }

  get pid(): number {
    return this.#child.pid ?? Number.NaN;
  }

  get handlesSignals(): boolean {
    return catchesSignals(this.pid);
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** What the process reads; the end of it when `text` is null. */
  type(text: string | null): void {
    if (text === null) this.#child.stdin?.end();
    else this.#child.stdin?.write(text);
  }
}
