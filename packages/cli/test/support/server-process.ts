// `solehold serve` as a process of its own, in the shape of an engine: it can be paused and resumed.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const PROGRAM = fileURLToPath(new URL("../../bin/solehold.js", import.meta.url));
const AT = /solehold is at (http:\S+)/;

/** What the tests of takeovers ask of a store's server. */
export interface Pausable {
  readonly url: string;
  pause(): Promise<void>;
  resume(): Promise<void>;
  stop(): Promise<void>;
}

/** With more options than those that every test needs. */
export async function startServer(more: readonly string[] = []): Promise<Pausable> {
  const folder = mkdtempSync(join(tmpdir(), "solehold-serve-"));
  const argv = ["serve", "--port", "0", "--data-dir", folder, "--log-level", "warn", ...more];
  const child = spawn(process.execPath, [PROGRAM, ...argv], { stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  return {
    url: await urlOf(child),
    pause: async () => void child.kill("SIGSTOP"),
    resume: async () => void child.kill("SIGCONT"),
    stop: async () => {
      child.kill("SIGCONT");
      child.kill("SIGTERM");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function urlOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = "";
    const onText = (text: Buffer): void => {
      said += text.toString();
      const url = AT.exec(said)?.[1];
      if (url !== undefined) resolve(url);
    };
    child.stdout?.on("data", onText);
    child.stderr?.on("data", onText);
    child.once("close", () => reject(new Error(`the server did not start: ${said}`)));
  });
}
