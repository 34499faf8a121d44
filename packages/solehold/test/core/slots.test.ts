/** Names of slots: made, recognised, and not to be mistaken for names that people choose. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  askedKey,
  keyNameProblem,
  MAX_SLOTS,
  slotIn,
  slotKey,
  slotKeys,
  slotsProblem,
} from "../../src/core/index.ts";

const aName = fc.string({ minLength: 1, maxLength: 40 }).filter((name) => keyNameProblem(name) === null);

describe("the names of slots", () => {
  it("lead back to the name and the slot that they were made of, and the first is the name itself", () => {
    fc.assert(
      fc.property(aName, fc.integer({ min: 0, max: MAX_SLOTS - 1 }), (name, slot) => {
        fc.pre(slotIn(name).slot === 0);
        const key = { tenant: "default", name };
        const made = slotKey(key, slot);
        expect(slotIn(made.name)).toEqual({ name, slot });
        expect(askedKey(made)).toEqual(key);
        expect(keyNameProblem(made.name)).toBe(null);
        expect(made.name === name).toBe(slot === 0);
      }),
    );
  });

  it.each(["job#7", "gpu#slot/", "gpu#slot/0", "gpu#slot/01", "gpu#slot/256", "#slot/1", "gpu#slot/1/x"])(
    "are not what somebody else may call a thing: %s",
    (name) => {
      expect(slotIn(name)).toEqual({ name, slot: 0 });
      expect(slotsProblem(name, undefined)).toBe(null);
    },
  );

  it.each([
    [0, "0"],
    [257, "257"],
    [Number.NaN, "NaN"],
    ["3", "string"],
    [null, "null"],
  ])("are not so many: %j", (slots, shown) => {
    const problem = { field: "slots", message: `must be a whole number from 1 to 256, got ${shown}` };
    expect(slotsProblem("gpu", slots)).toEqual(problem);
  });

  it("are all different, and as many as there are slots", () => {
    const names = slotKeys({ tenant: "default", name: "gpu" }, MAX_SLOTS).map(({ name }) => name);
    expect(new Set(names).size).toBe(MAX_SLOTS);
  });
});
