/** Turns: one writer over all processes, dead ones succeeded by exactly one, stopped ones waited for. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { realEnv } from "../../../src/env/index.ts";
import { FolderLock } from "../../../src/stores/support/folder-lock.ts";
import { isGone, type ProcessIdentity, thisProcess } from "../../../src/stores/support/process-identity.ts";

const BOOT = "id:this-boot";
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "solehold-lock-"));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const lockWith = (timeoutMs: number) => new FolderLock({ folder, bootId: BOOT, timeoutMs, env: realEnv });

async function deadOwner(nonce: string): Promise<ProcessIdentity> {
  const child = spawn(process.execPath, ["-e", ""]);
  await once(child, "exit");
  return { ...thisProcess(nonce, BOOT), pid: child.pid ?? 0, startTicks: "1" };
}

function leave(file: string, owner: ProcessIdentity): void {
  writeFileSync(join(folder, file), JSON.stringify(owner));
}

describe("the lock of a folder", () => {
  it("lets one of many in at a time, and leaves nothing behind", async () => {
    let inside = 0;
    let most = 0;
    const work = async () => {
      inside += 1;
      most = Math.max(most, inside);
      await new Promise((resolve) => setImmediate(resolve));
      inside -= 1;
    };
    await Promise.all(Array.from({ length: 20 }, () => lockWith(20_000).hold(work)));
    expect(most).toBe(1);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("is taken over from a dead owner by one of many at a time", async () => {
    leave("lock", await deadOwner("dead"));
    let inside = 0;
    let most = 0;
    const work = async () => {
      inside += 1;
      most = Math.max(most, inside);
      await new Promise((resolve) => setImmediate(resolve));
      inside -= 1;
    };
    await Promise.all(Array.from({ length: 20 }, () => lockWith(20_000).hold(work)));
    expect(most).toBe(1);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("is taken over also when the one who began to take it over died", async () => {
    leave("lock", await deadOwner("first"));
    leave("takeover-first", await deadOwner("second"));
    leave("takeover-second", await deadOwner("third"));
    expect(await lockWith(5_000).hold(async () => "in")).toBe("in");
    expect(readdirSync(folder)).toEqual([]);
  });

  it("is not touched while another that lives is taking it over", async () => {
    leave("lock", await deadOwner("first"));
    leave("takeover-first", thisProcess("second", BOOT));
    await expect(lockWith(30).hold(async () => "in")).rejects.toMatchObject({ kind: "timeout" });
    expect(readFileSync(join(folder, "lock"), "utf8")).toContain("first");
  });

  it("of a living owner is waited for, then given up with what to do", async () => {
    leave("lock", thisProcess("alive", BOOT));
    await expect(lockWith(30).hold(async () => "in")).rejects.toMatchObject({
      kind: "timeout",
      outcome: "not-applied",
      message: expect.stringMatching(/waited 30 ms for process \d+ .* delete '.*lock'$/),
    });
    expect(readdirSync(folder)).toEqual(["lock"]);
  });

  it("of another process is left alone by one whose own lock a person deleted", async () => {
    const other = thisProcess("successor", BOOT);
    const held = lockWith(30).hold(async () => {
      rmSync(join(folder, "lock"));
      leave("lock", other);
    });
    await expect(held).rejects.toMatchObject({
      kind: "internal",
      outcome: "unknown",
      message: expect.stringMatching(/lock' was lost: somebody deleted it/),
    });
    expect(readFileSync(join(folder, "lock"), "utf8")).toBe(JSON.stringify(other));
  });

  it("that is no lock of ours is waited for, too", async () => {
    writeFileSync(join(folder, "lock"), "something else");
    await expect(lockWith(30).hold(async () => "in")).rejects.toMatchObject({ kind: "timeout" });
  });
});

describe("an owner", () => {
  it("is gone when its process ended, its id was reused or the machine started anew", async () => {
    const self = thisProcess("n", BOOT);
    expect(isGone(self, BOOT)).toBe(false);
    expect(isGone(await deadOwner("n"), BOOT)).toBe(true);
    expect(isGone({ ...self, startTicks: "1" }, BOOT)).toBe(true);
    expect(isGone(self, "id:another-boot")).toBe(true);
  });

  it("in another container is never called gone", async () => {
    expect(isGone({ ...(await deadOwner("n")), pidNamespace: "pid:[1]" }, BOOT)).toBe(false);
  });
});
