/** Turns: one writer over all processes, dead ones succeeded by exactly one, stopped ones waited for. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { realEnv } from "../../src/env/index.ts";
import { FolderLock } from "../../src/support/folder-lock.ts";
import {
  isGone,
  type PidScope,
  type ProcessIdentity,
  pidNamespace,
  statOf,
  thisProcess,
} from "../../src/support/process-identity.ts";

const HERE: PidScope = { bootId: "id:this-boot", host: "this-host", pidNamespace: pidNamespace() };
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "solehold-lock-"));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const lockWith = (timeoutMs: number) =>
  new FolderLock({ folder, scope: HERE, timeoutMs, env: realEnv, durable: "no" });

async function deadOwner(nonce: string): Promise<ProcessIdentity> {
  const child = spawn(process.execPath, ["-e", ""]);
  await once(child, "exit");
  return { ...thisProcess(nonce, HERE), pid: child.pid ?? 0, startTicks: "1" };
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
    leave("takeover-first", thisProcess("second", HERE));
    await expect(lockWith(30).hold(async () => "in")).rejects.toMatchObject({ kind: "held" });
    expect(readFileSync(join(folder, "lock"), "utf8")).toContain("first");
  });

  it("of a living owner is waited for, then given up with what to do", async () => {
    leave("lock", thisProcess("alive", HERE));
    await expect(lockWith(30).hold(async () => "in")).rejects.toMatchObject({
      kind: "held",
      owner: { pid: process.pid },
      message: expect.stringMatching(/waited 30 ms for process \d+ on this-host .* delete '.*lock'$/),
    });
    expect(readdirSync(folder)).toEqual(["lock"]);
  });

  it("of another process is left alone by one whose own lock a person deleted", async () => {
    const other = thisProcess("successor", HERE);
    const held = lockWith(30).hold(async () => {
      rmSync(join(folder, "lock"));
      leave("lock", other);
    });
    await expect(held).rejects.toMatchObject({
      kind: "lost",
      message: expect.stringMatching(/lock' was lost: somebody deleted it/),
    });
    expect(readFileSync(join(folder, "lock"), "utf8")).toBe(JSON.stringify(other));
  });

  it("lies in a folder that its holder can rid of what the dead left, and of nothing else", async () => {
    for (const file of ["owner-dead", "takeover-dead"]) leave(file, await deadOwner("dead"));
    leave("owner-alive", thisProcess("alive", HERE));
    writeFileSync(join(folder, "owner-unknown"), "");
    const lock = lockWith(30);
    await lock.hold(() => lock.tidy());
    expect(readdirSync(folder).sort()).toEqual(["owner-alive", "owner-unknown"]);
  });

  it("that is no lock of ours is waited for, too", async () => {
    writeFileSync(join(folder, "lock"), "something else");
    await expect(lockWith(30).hold(async () => "in")).rejects.toMatchObject({ kind: "held" });
  });
});

describe("an owner", () => {
  it("is gone when its process ended, its id was reused or the machine started anew", async () => {
    const self = thisProcess("n", HERE);
    expect(isGone(self, HERE)).toBe(false);
    expect(isGone(await deadOwner("n"), HERE)).toBe(true);
    expect(isGone({ ...self, startTicks: "1" }, HERE)).toBe(true);
    expect(isGone(self, { ...HERE, bootId: "id:another-boot" })).toBe(true);
  });

  it("is gone when it ended and nobody has collected it yet", async () => {
    // The shell starts a child, says its id and becomes a program that never collects it.
    const parent = spawn("sh", ["-c", "sleep 0.01 & echo $!; exec sleep 60"], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    onTestFinished(() => void parent.kill("SIGKILL"));
    const [said] = (await once(parent.stdout, "data")) as [Buffer];
    const pid = Number(said.toString());
    while (statOf(pid)?.state !== "Z") await new Promise((resolve) => setImmediate(resolve));
    const startTicks = statOf(pid)?.startTicks ?? "";
    expect(isGone({ ...thisProcess("n", HERE), pid, startTicks }, HERE)).toBe(true);
  });

  it("on another machine or in another container is never called gone", async () => {
    const dead = await deadOwner("n");
    expect(isGone({ ...dead, host: "elsewhere" }, HERE)).toBe(false);
    expect(isGone({ ...dead, host: "elsewhere", bootId: "id:another-boot" }, HERE)).toBe(false);
    expect(isGone({ ...dead, pidNamespace: "pid:[1]" }, HERE)).toBe(false);
  });

  it("whose scope is only the boot is judged by that: a disk of one machine, a container that started again", async () => {
    const { bootId, host = "" } = HERE;
    const dead = await deadOwner("n");
    const without = ({ nonce, pid, startTicks }: ProcessIdentity) => ({ nonce, pid, startTicks, bootId });
    expect(isGone(without(dead), { bootId })).toBe(true);
    expect(isGone({ ...without(dead), host }, { bootId, host })).toBe(true);
    expect(isGone(without(thisProcess("n", HERE)), { bootId })).toBe(false);
  });
});
