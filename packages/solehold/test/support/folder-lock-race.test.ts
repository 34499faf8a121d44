/** A process that is stopped between looking at the lock and acting on what it saw. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { realEnv } from "../../src/env/index.ts";
import { FolderLock } from "../../src/support/folder-lock.ts";
import { thisProcess } from "../../src/support/process-identity.ts";

/** What the next looks at files find, instead of what is there. */
const stale: string[] = [];

vi.mock("node:fs/promises", async (importOriginal) => {
  const original = await importOriginal<typeof import("node:fs/promises")>();
  return { ...original, readFile: async (path: string) => stale.shift() ?? original.readFile(path, "utf8") };
});

const HERE = { bootId: "id:this-boot" };
const DEAD = { ...thisProcess("dead", HERE), startTicks: "1" };
let folder: string;

beforeEach(() => {
  stale.length = 0;
  folder = mkdtempSync(join(tmpdir(), "solehold-race-"));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const slow = () => new FolderLock({ folder, scope: HERE, timeoutMs: 0, env: realEnv, durable: "no" });

describe("a process that was stopped after it saw the lock of a dead owner", () => {
  it("leaves the lock alone that another has taken since", async () => {
    const successor = JSON.stringify(thisProcess("successor", HERE));
    writeFileSync(join(folder, "lock"), successor);
    stale.push(JSON.stringify(DEAD));
    await expect(slow().acquire()).rejects.toMatchObject({ kind: "held", owner: { nonce: "successor" } });
    expect(readFileSync(join(folder, "lock"), "utf8")).toBe(successor);
    expect(readdirSync(folder)).toEqual(["lock"]);
  });

  it("waits while another that lives is taking it over", async () => {
    writeFileSync(join(folder, "lock"), JSON.stringify(DEAD));
    writeFileSync(join(folder, "takeover-dead"), JSON.stringify(thisProcess("quicker", HERE)));
    await expect(slow().acquire()).rejects.toMatchObject({ kind: "held", owner: { nonce: "quicker" } });
    expect(readdirSync(folder).sort()).toEqual(["lock", "takeover-dead"]);
  });
});
