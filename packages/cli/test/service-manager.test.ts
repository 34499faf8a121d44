/** What a service manager hears of `solehold serve`: over a real datagram socket, by the real systemd-notify. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const PROGRAM = fileURLToPath(new URL("../bin/solehold.js", import.meta.url));
/** Prints each message. What systemd-notify sends along for synchronisation is closed by not taking it. */
const RECEIVER = `
import socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
print("bound", flush=True)
while True:
    print(receiver.recv(4096).decode().strip(), flush=True)
`;

let folder: string;
let socket: string;
const children: ChildProcess[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "solehold-notify-"));
  socket = join(folder, "notify");
});
afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill("SIGKILL");
    await once(child, "exit");
  }
  rmSync(folder, { recursive: true, force: true });
});

/** Lines as they come. */
function linesOf(child: ChildProcess): { next(wanted: string): Promise<string[]> } {
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  return {
    /** Up to the one that begins so. */
    async next(wanted) {
      const seen: string[] = [];
      for (;;) {
        const { done, value } = await lines.next();
        if (done) throw new Error(`no "${wanted}" among ${JSON.stringify(seen)}`);
        seen.push(value);
        if (value.startsWith(wanted)) return seen;
      }
    },
  };
}

async function receiver(): Promise<ReturnType<typeof linesOf>> {
  const child = spawn("python3", ["-c", RECEIVER, socket], { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  const lines = linesOf(child);
  await lines.next("bound");
  return lines;
}

function serve(variables: Record<string, string>): ChildProcess {
  const argv = ["serve", "--port", "0", "--store", "memory:", "--data-dir", join(folder, "data")];
  const child = spawn(process.execPath, [PROGRAM, ...argv, "--log-level", "warn"], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, NOTIFY_SOCKET: socket, ...variables },
  });
  children.push(child);
  return child;
}

describe("solehold serve under a service manager", () => {
  it("says that it is ready, that its event loop turns, and that it stops", async () => {
    const messages = await receiver();
    const server = serve({ WATCHDOG_USEC: "1000000" });
    await messages.next("READY=1");
    await messages.next("WATCHDOG=1");
    await messages.next("WATCHDOG=1");
    server.kill("SIGSTOP");
    server.kill("SIGCONT");
    await messages.next("WATCHDOG=1");
    const ended = once(server, "exit");
    server.kill("SIGTERM");
    await messages.next("STOPPING=1");
    expect(await ended).toEqual([0, null]);
  });

  it("gives no sign of life where none is asked for, or where it is asked of another process", async () => {
    const messages = await receiver();
    const server = serve({ WATCHDOG_USEC: "20000", WATCHDOG_PID: "1" });
    await linesOf(server).next("solehold is at");
    const ended = once(server, "exit");
    server.kill("SIGTERM");
    await ended;
    const seen = await messages.next("STOPPING=1");
    expect(seen.filter((message) => message.startsWith("WATCHDOG"))).toEqual([]);
  });

  it("says once what to do where the messages cannot be sent, and serves", async () => {
    const server = serve({ PATH: "/nowhere", WATCHDOG_USEC: "100000" });
    let said = "";
    server.stderr!.on("data", (text) => {
      said += text;
    });
    await linesOf(server).next("solehold is at");
    const ended = once(server, "exit");
    server.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
    expect(said.match(/systemd-notify failed/g)).toHaveLength(1);
    expect(said).toContain("use Type=exec without WatchdogSec");
  });
});
