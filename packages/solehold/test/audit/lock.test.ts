import { readdir, readFile, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { FileAuditTrail } from "../../src/audit/index.ts";
import { lockFolder } from "../../src/audit/lock.ts";
import { realEnv } from "../../src/env/index.ts";
import { Writer } from "./process.ts";
import { eventOf, temporaryFolder } from "./support.ts";

const open = (folder: string) => FileAuditTrail.open({ folder, durability: "before-reply" });
const locksIn = async (folder: string) =>
  (await readdir(folder)).filter((name) => /^(lock|owner|takeover)/.test(name)).sort();

describe("one writer per folder", () => {
  test("a second opening is refused with who holds the folder and what to do, and works after close", async () => {
    const folder = await temporaryFolder();
    const first = await open(folder);
    await expect(open(folder)).rejects.toMatchObject({
      code: "AUDIT_LOCKED",
      message: expect.stringMatching(new RegExp(`written by process ${process.pid} on .*remove .*/lock`)),
    });
    await first.append(eventOf());
    await first.close();
    const second = await open(folder);
    expect(second.head().sequence).toBe(1);
    await second.close();
    expect(await locksIn(folder)).toEqual([]);
  });

  test("another living process keeps the folder; once it was killed, the folder is taken over", async () => {
    const folder = await temporaryFolder();
    const other = new Writer(folder, "other", "hold");
    await other.printed(1);
    expect(other.lines).toEqual(["open"]);
    await expect(open(folder)).rejects.toMatchObject({ code: "AUDIT_LOCKED" });
    await other.kill();
    const trail = await open(folder);
    await trail.close();
  });

  test("of several processes that find a dead one's lock at the same time, one gets it", async () => {
    const folder = await temporaryFolder();
    const dead = new Writer(folder, "dead", "hold");
    await dead.printed(1);
    await dead.kill();
    const rivals = Array.from({ length: 4 }, (_, index) => new Writer(folder, `rival${index}`, "hold"));
    await Promise.all(rivals.map((rival) => rival.printed(1)));
    const answers = rivals.flatMap((rival) => rival.lines).sort();
    expect(answers).toEqual(["AUDIT_LOCKED", "AUDIT_LOCKED", "AUDIT_LOCKED", "open"]);
  });

  test("however many try at once, over and over, never more than one is in", async () => {
    const folder = await temporaryFolder();
    let inside = 0;
    let entries = 0;
    const contend = async () => {
      for (let attempt = 0; attempt < 15; attempt++) {
        const lock = await lockFolder(folder, realEnv).catch((error: unknown) => {
          expect(error).toMatchObject({ code: "AUDIT_LOCKED" });
          return null;
        });
        if (lock === null) continue;
        inside += 1;
        entries += 1;
        expect(inside).toBe(1);
        await readFile(join(folder, (await locksIn(folder))[0]!)).catch(() => undefined);
        inside -= 1;
        await lock.release();
      }
    };
    await Promise.all(Array.from({ length: 8 }, contend));
    expect(entries).toBeGreaterThan(1);
    expect(await locksIn(folder)).toEqual([]);
  });

  /** Changes the lock of a living holder (this process) to describe another one. */
  async function lockOf(changes: Record<string, unknown>): Promise<string> {
    const folder = await temporaryFolder();
    await lockFolder(folder, realEnv);
    const path = join(folder, "lock");
    await writeFile(path, JSON.stringify({ ...JSON.parse(await readFile(path, "utf8")), ...changes }));
    return folder;
  }

  test.each([
    ["a process id that was given to a later process", { startTicks: "1" }],
    ["a machine that was booted since", { bootId: "another boot" }],
    ["a process id that nobody has", { pid: 2 ** 22 + 1, startTicks: "" }],
  ])("a lock with %s is taken over", async (_, changes) => {
    const folder = await lockOf(changes);
    const lock = await lockFolder(folder, realEnv);
    expect(await locksIn(folder)).toEqual(["lock"]);
    expect(JSON.parse(await readFile(join(folder, "lock"), "utf8"))).toMatchObject({ pid: process.pid });
    await lock.release();
  });

  test.each([
    ["of another machine", { host: "elsewhere", bootId: "id:another boot", startTicks: "1" }],
    ["of a living process on a system that tells no start times", { startTicks: "" }],
  ])("a lock %s is respected, until a person removes it", async (_, changes) => {
    const folder = await lockOf(changes);
    await expect(lockFolder(folder, realEnv)).rejects.toMatchObject({ code: "AUDIT_LOCKED" });
    await unlink(join(folder, "lock"));
    await (await lockFolder(folder, realEnv)).release();
  });

  test("a lock that cannot be read is not guessed about", async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, "lock"), "");
    await expect(lockFolder(folder, realEnv)).rejects.toThrow(
      /is not a lock: remove it if no process writes/,
    );
    await expect(lockFolder(join(folder, "absent"), realEnv)).rejects.toThrow(/cannot lock the audit folder/);
  });
});
