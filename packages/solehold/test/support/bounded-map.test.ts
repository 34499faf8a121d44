import { describe, expect, it } from "vitest";
import { BoundedMap } from "../../src/support/bounded-map.ts";

describe("a bounded map", () => {
  it("never keeps more than its capacity, and keeps what was set last", () => {
    const map = new BoundedMap<number>(10);
    for (let index = 0; index < 1_000; index += 1) {
      map.set(`key-${index}`, index);
      expect(map.size).toBeLessThanOrEqual(10);
      expect(map.get(`key-${index}`)).toBe(index);
    }
    expect(map.get("key-0")).toBeUndefined();
  });

  it("keeps an entry while fewer than half of its capacity of others are set", () => {
    const map = new BoundedMap<string>(10);
    map.set("kept", "yes");
    for (let index = 0; index < 4; index += 1) map.set(`other-${index}`, "yes");
    expect(map.get("kept")).toBe("yes");
  });

  it("forgets what is deleted, also where an older value of it stood", () => {
    const map = new BoundedMap<string>(4);
    for (const id of ["a", "b", "a"]) map.set(id, id);
    map.delete("a");
    expect([map.get("a"), map.get("b")]).toEqual([undefined, "b"]);
  });

  it("shows what was set last, also while an older value of it is kept", () => {
    const map = new BoundedMap<string>(4);
    for (const [id, value] of [
      ["a", "first"],
      ["b", "b"],
      ["a", "second"],
    ] as const)
      map.set(id, value);
    expect(map.get("a")).toBe("second");
  });
});
