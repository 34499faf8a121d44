/** Several processes change the API keys of one data folder. None of their changes is lost. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, readdir, utimes } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { KeyFile } from "@solehold/server";
import { realEnv } from "solehold/internal";
import { describe, expect, it, onTestFinished } from "vitest";
import { tempFolder } from "./support/server.ts";

const SCRIPT = fileURLToPath(new URL("./support/key-maker.mjs", import.meta.url));
const ROUNDS = process.env.SOLEHOLD_EFFORT === "full" ? 30 : 15;
const A_MINUTE_AGO_S = realEnv.wallMs() / 1_000 - 60;

/** A process of its own that adds a key to each folder it is given. */
class KeyMaker {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  private constructor(name: string) {
    this.#child = spawn(process.execPath, [SCRIPT, name], { stdio: ["pipe", "pipe", "inherit"] });
    const { stdout } = this.#child;
    if (stdout === null) throw new Error("no output");
    this.#lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
    onTestFinished(() => void this.#child.kill("SIGKILL"));
  }

  static async start(name: string): Promise<KeyMaker> {
    const maker = new KeyMaker(name);
    await maker.#lines.next();
    return maker;
  }

  /** Resolves once the key was added, or the process has died. */
  async add(dataDir: string): Promise<void> {
    this.#child.stdin?.write(`${dataDir}\n`);
    await this.#lines.next();
  }

  get signal(): NodeJS.Signals | null {
    return this.#child.signalCode;
  }

  async exited(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, "exit");
  }
}

/** What a process leaves that was killed, long ago, while it wrote. */
async function leftByTheDead(): Promise<string> {
  const dataDir = await tempFolder();
  const dying = await KeyMaker.start("dies");
  await dying.add(dataDir);
  await dying.exited();
  expect(dying.signal).toBe("SIGKILL");
  expect(await readdir(dataDir)).not.toEqual([]);
  return dataDir;
}

async function copyOf(folder: string): Promise<string> {
  const copy = await tempFolder();
  await cp(folder, copy, { recursive: true });
  for (const file of await readdir(copy, { recursive: true }))
    await utimes(join(copy, file), A_MINUTE_AGO_S, A_MINUTE_AGO_S);
  return copy;
}

describe("changes of API keys by several processes", () => {
  it("that all find the lock of a dead process are made one after the other, and none is lost", async () => {
    const left = await leftByTheDead();
    const names = ["first", "second", "third"];
    const makers = await Promise.all(names.map((name) => KeyMaker.start(name)));
    for (let round = 0; round < ROUNDS; round += 1) {
      const dataDir = await copyOf(left);
      await Promise.all(makers.map((maker) => maker.add(dataDir)));
      const added = (await new KeyFile(dataDir, realEnv).read()).map(({ name }) => name);
      expect([round, added.sort()]).toEqual([round, names.toSorted()]);
    }
  });
});
