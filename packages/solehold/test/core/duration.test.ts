/** Durations as people write them. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { durationMs, MAX_DURATION_MS, parseDuration } from "../../src/core/index.ts";

describe("parseDuration", () => {
  it.each([
    [0, 0],
    [30_000, 30_000],
    ["250ms", 250],
    ["30s", 30_000],
    ["5m", 300_000],
    ["2h", 7_200_000],
    ["1d", 86_400_000],
    ["1.5s", 1_500],
    ["1.1s", 1_100],
    ["0.001s", 1],
    ["0s", 0],
    ["365d", MAX_DURATION_MS],
    [MAX_DURATION_MS, MAX_DURATION_MS],
  ])("%j is %i ms", (value, expected) => {
    expect(parseDuration(value)).toBe(expected);
  });

  it.each([
    -1,
    0.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    MAX_DURATION_MS + 1,
    2 ** 53,
    "",
    "30",
    "s",
    "-5s",
    "+5s",
    " 5s",
    "5 s",
    "5s ",
    "5S",
    "5sec",
    "1e3s",
    "0x10s",
    ".5s",
    "5.s",
    "1.2.3s",
    "0.5ms",
    "0.0001s",
    "0.00000000001s",
    "366d",
    "٣s",
    `${"9".repeat(400)}ms`,
    null,
    undefined,
    5n,
    [],
    {},
  ])("%s is no duration", (value) => {
    expect(parseDuration(value)).toBeNull();
  });

  it("reads back every whole number of every unit", () => {
    const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
    fc.assert(
      fc.property(fc.nat({ max: 365 }), fc.constantFrom(...Object.entries(units)), (amount, [unit, size]) => {
        expect(parseDuration(`${amount}${unit}`)).toBe(amount * size);
      }),
    );
  });

  it("reads back every thousandth of a second exactly", () => {
    fc.assert(
      fc.property(fc.nat({ max: 10_000_000 }), (ms) => {
        expect(parseDuration(`${(ms / 1_000).toFixed(3)}s`)).toBe(ms);
      }),
    );
  });
});

describe("durationMs", () => {
  it("names the field, the value and the fix", () => {
    expect(() => durationMs("ttl", "5 seconds", 1)).toThrow(
      /^ttl must be at least 1 ms .* \("30s", "5m", "250ms"\); got "5 seconds"$/,
    );
  });

  it.each([
    [Number.NaN, "NaN"],
    [Number.POSITIVE_INFINITY, "Infinity"],
    [Number.NEGATIVE_INFINITY, "-Infinity"],
    [-5, "-5"],
    [null, "null"],
    [{}, "an object"],
    [undefined, "undefined"],
  ])("shows %s as it is", (value, shown) => {
    expect(() => durationMs("ttl", value, 1)).toThrow(`got ${shown}`);
  });

  it.each([
    [9, false],
    [10, true],
    [11, true],
  ])("%i with a minimum of 10 is allowed: %s", (value, allowed) => {
    if (allowed) expect(durationMs("wait", value, 10)).toBe(value);
    else expect(() => durationMs("wait", value, 10)).toThrow(/wait must be at least 10 ms/);
  });
});
