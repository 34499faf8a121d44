/** `solehold serve` as a process of its own, which a test may kill as it likes. */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

const PROGRAM = fileURLToPath(new URL("../../../cli/bin/solehold.js", import.meta.url));

export class ServerProcess {
  readonly url: string;
  readonly #child: ChildProcess;
  readonly #exited: Promise<void>;

  private constructor(child: ChildProcess, url: string, exited: Promise<void>) {
    this.#child = child;
    this.url = url;
    this.#exited = exited;
  }

  static async start(dataDir: string, ...argv: readonly string[]): Promise<ServerProcess> {
    const words = ["serve", "--json", "--port", "0", "--data-dir", dataDir, "--log-level", "error", ...argv];
    const child = spawn(process.execPath, [PROGRAM, ...words], { stdio: ["ignore", "pipe", "pipe"] });
    const exited = new Promise<void>((resolve) => void child.once("close", () => resolve()));
    onTestFinished(async () => {
      child.kill("SIGKILL");
      await exited;
    });
    let said = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    const url = await new Promise<string>((resolve, reject) => {
      child.stdout?.setEncoding("utf8").once("data", (line: string) => resolve(JSON.parse(line).url));
      child.once("close", () => reject(new Error(`the server did not start: ${said}`)));
    });
    return new ServerProcess(child, url, exited);
  }

  /** As a power cut does to a process: nothing of it runs any more. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#exited;
  }

  async stop(): Promise<void> {
    this.#child.kill("SIGTERM");
    await this.#exited;
  }
}
