/** Folders that are made in the same moment by several who need them. */
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { makeFolders } from "../../src/support/files.ts";

const AT_ONCE = 64;
let root: string;

afterEach(async () => await rm(root, { recursive: true, force: true }));

describe("folders that are missing", () => {
  it("are made once, however many make them at the same time, and nobody fails", async () => {
    root = await mkdtemp(join(tmpdir(), "solehold-files-"));
    for (let round = 0; round < 20; round += 1) {
      const path = join(root, String(round), "new", "store");
      const topmost = await Promise.all(Array.from({ length: AT_ONCE }, () => makeFolders(path)));
      expect(topmost).toContain(join(root, String(round)));
      expect((await stat(path)).isDirectory()).toBe(true);
    }
  });
});
