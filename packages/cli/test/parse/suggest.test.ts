import { describe, expect, it } from "vitest";
import { editDistance, nearest } from "../../src/parse/suggest.ts";

const COMMANDS = ["run", "release", "renew", "revoke", "watch", "doctor"];

describe("suggestions", () => {
  it.each([
    ["rnu", "run"],
    ["relase", "release"],
    ["wacth", "watch"],
    ["docter", "doctor"],
    ["doc", "doctor"],
  ])("turns %s into %s", (typed, meant) => {
    expect(nearest(typed, COMMANDS)).toBe(meant);
  });

  it("keeps quiet when nothing is near", () => {
    expect(nearest("kubernetes", COMMANDS)).toBeNull();
    expect(nearest("", COMMANDS)).toBeNull();
    expect(nearest("x", [])).toBeNull();
  });

  it("counts a swap of neighbours as one mistake", () => {
    expect(editDistance("wacth", "watch")).toBe(1);
    expect(editDistance("", "abc")).toBe(3);
    expect(editDistance("abc", "abc")).toBe(0);
  });
});
