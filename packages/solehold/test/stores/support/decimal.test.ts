/** Digits in memory are those that the number has as text. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { writeDecimal, writeDigits } from "../../../src/stores/support/decimal.ts";

const BEFORE = "<";
const AFTER = ">";
/** Around every number of digits, and around what fits 32 bits. */
const edges = Array.from({ length: 16 }, (_, digits) => [10 ** digits - 1, 10 ** digits]).flat();
const anyNumber = fc.oneof(
  fc.maxSafeNat(),
  fc.nat(),
  fc.constantFrom(...edges, 2 ** 31 - 1, 2 ** 31, 2 ** 32, Number.MAX_SAFE_INTEGER),
);

/** What stands in memory after `write`, which begins at the second byte and says where it ended. */
function written(write: (target: Uint8Array, start: number) => number): string {
  const target = Buffer.alloc(20, AFTER);
  target.write(BEFORE);
  const end = write(target, 1);
  return target.toString("latin1", 0, end + 1);
}

it("a number is written as its digits, and nothing beside them", () => {
  fc.assert(
    fc.property(anyNumber, (number) => {
      const text = written((target, start) => writeDecimal(number, target, start));
      expect(text).toBe(`${BEFORE}${number}${AFTER}`);
    }),
    { numRuns: 1_000 },
  );
});

it("a number of a fixed width has zeros in front", () => {
  fc.assert(
    fc.property(anyNumber, fc.nat({ max: 2 }), (number, more) => {
      const width = Math.min(16, String(number).length + more);
      const text = written((target, start) => writeDigits(number, width, target, start));
      expect(text).toBe(`${BEFORE}${String(number).padStart(width, "0")}${AFTER}`);
    }),
    { numRuns: 1_000 },
  );
});
