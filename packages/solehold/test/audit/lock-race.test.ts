import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { lockFolder } from "../../src/audit/lock.ts";
import { temporaryFolder } from "./support.ts";

/** What the next look into a folder finds, instead of what is there: a process that was stopped after it looked. */
const stale: string[][] = [];

vi.mock("node:fs/promises", async (importOriginal) => {
  const original = await importOriginal<typeof import("node:fs/promises")>();
  return { ...original, readdir: async (path: string) => stale.shift() ?? original.readdir(path) };
});

const names = async (folder: string) => (await readdir(folder)).sort();

describe("a process that was stopped between looking at the locks and taking one", () => {
  beforeEach(() => {
    stale.length = 0;
  });

  test("withdraws when others have used its number and a higher one since", async () => {
    const folder = await temporaryFolder();
    await lockFolder(folder, "first");
    const held = await readFile(join(folder, "writer-000000000001.lock"));
    await writeFile(join(folder, "writer-000000000003.lock"), held);
    stale.push(["writer-000000000001.free"]);
    await expect(lockFolder(folder, "slow")).rejects.toMatchObject({ code: "AUDIT_LOCKED" });
    expect(await names(folder)).toEqual(["writer-000000000001.lock", "writer-000000000003.lock"]);
  });

  test("takes a new number when its own was used and given back since", async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, "writer-000000000002.free"), "");
    stale.push(["writer-000000000001.free"]);
    await lockFolder(folder, "slow");
    expect(await names(folder)).toEqual(["writer-000000000003.lock"]);
  });

  test("looks again when the lock it saw is gone, and when its number was just taken", async () => {
    const folder = await temporaryFolder();
    stale.push(["writer-000000000007.lock"]);
    const lock = await lockFolder(folder, "slow");
    expect(await names(folder)).toEqual(["writer-000000000001.lock"]);
    stale.push([]);
    await expect(lockFolder(folder, "slower")).rejects.toMatchObject({ code: "AUDIT_LOCKED" });
    await lock.release();
    expect(await names(folder)).toEqual(["writer-000000000001.free"]);
  });
});
