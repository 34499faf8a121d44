/** How often the disk is asked for its room, and how much a commit has to find. */
import { describe, expect, it } from "vitest";
import { ManualEnv } from "../../../src/env/index.ts";
import { Space, spaceLeft } from "../../../src/stores/embedded/space.ts";
import { temporaryFolder } from "./fixtures.ts";

describe("the room on the disk", () => {
  it("is looked at for every commit, unless there was plenty a moment ago", async () => {
    const env = new ManualEnv();
    let left = 2 ** 29;
    let looks = 0;
    const space = new Space("folder", env, () => {
      looks += 1;
      return left;
    });
    space.assertFor(1);
    space.assertFor(1);
    expect(looks).toBe(2);
    left = 2 ** 40;
    space.assertFor(1);
    left = 0;
    await env.advance(99);
    space.assertFor(1);
    expect(looks).toBe(3);
    await env.advance(1);
    expect(() => space.assertFor(1)).toThrow("no space left for the embedded store in 'folder'");
  });

  it("must be more for many records than for one", () => {
    const space = new Space("folder", new ManualEnv(), () => 2 ** 20 + 2 ** 13);
    space.assertFor(1);
    expect(() => space.assertFor(2)).toThrow("no space left");
  });

  it("counts as endless where it cannot be told", () => {
    const folder = temporaryFolder();
    expect(spaceLeft(folder)).toBeGreaterThan(0);
    expect(spaceLeft(`${folder}/not-there`)).toBe(Number.POSITIVE_INFINITY);
  });
});
