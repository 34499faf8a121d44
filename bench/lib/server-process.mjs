// A Solehold server as users start it: the command in a process of its own.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

export const CLI = fileURLToPath(new URL("../../packages/cli/bin/solehold.js", import.meta.url));

/** Resolves when it listens, with how long that took. */
export async function startServer({ dataDir, flags = [] }) {
  const started = performance.now();
  const words = ["serve", "--json", "--port", "0", "--data-dir", dataDir, "--log-level", "error", ...flags];
  const child = spawn(process.execPath, [CLI, ...words], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  // A case that ends badly leaves no server behind.
  const endToo = () => child.kill("SIGTERM");
  process.once("exit", endToo);
  const url = await new Promise((resolve, reject) => {
    child.stdout.once("data", (line) => {
      const said = JSON.parse(String(line));
      if (said.url === undefined) reject(new Error(`the server did not start: ${String(line).trim()}`));
      else resolve(said.url);
    });
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the server ended with code ${code} before it listened`)));
  });
  const readyMs = performance.now() - started;
  return {
    url,
    pid: child.pid,
    readyMs,
    async stop() {
      process.off("exit", endToo);
      child.kill("SIGTERM");
      await ended;
    },
  };
}
