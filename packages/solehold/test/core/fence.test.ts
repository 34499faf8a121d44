/** Fences: ordered by term, then generation; exact beyond doubles; strings sort as they do. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  BASE_TERM,
  compareFences,
  FENCE_DIGITS,
  fenceGeneration,
  fenceOf,
  fenceTerm,
  formatFence,
  MAX_U64,
  parseFence,
} from "../../src/core/index.ts";
import { u64s } from "./arbitraries.ts";

const BEYOND_DOUBLES = 2n ** 53n + 1n;
/** Every term under which a lease is published. */
const terms = u64s.map((term) => (term === 0n ? BASE_TERM : term));

describe("a fence", () => {
  it("of the base term is simply the generation", () => {
    expect(fenceOf(BASE_TERM, 1n)).toBe(1n);
    expect(fenceOf(BASE_TERM, BEYOND_DOUBLES)).toBe(BEYOND_DOUBLES);
    expect(fenceOf(0n, 7n)).toBe(fenceOf(BASE_TERM, 7n));
  });

  it("orders by term first, then by generation", () => {
    fc.assert(
      fc.property(terms, u64s, terms, u64s, (termA, generationA, termB, generationB) => {
        const expected = termA !== termB ? termA < termB : generationA < generationB;
        expect(fenceOf(termA, generationA) < fenceOf(termB, generationB)).toBe(expected);
      }),
    );
  });

  it("gives its term and generation back", () => {
    fc.assert(
      fc.property(terms, u64s, (term, generation) => {
        const fence = fenceOf(term, generation);
        expect([fenceTerm(fence), fenceGeneration(fence)]).toEqual([term, generation]);
      }),
    );
  });

  it.each([MAX_U64 + 1n, -1n, 5 as unknown as bigint, "5" as unknown as bigint])(
    "throws on a term or generation of %s instead of wrapping around",
    (value) => {
      expect(() => fenceOf(value, 0n)).toThrow(/term must be a bigint from 0 to 2\^64-1/);
      expect(() => fenceOf(0n, value)).toThrow(/generation must be a bigint from 0 to 2\^64-1/);
    },
  );

  it("compares as a sort function expects", () => {
    expect([3n, 1n, 2n, 1n].sort(compareFences)).toEqual([1n, 1n, 2n, 3n]);
    expect(compareFences(5n, 5n)).toBe(0);
  });
});

describe("a fence on the wire", () => {
  it("keeps 2^53 + 1, which a double cannot", () => {
    expect(parseFence(formatFence(BEYOND_DOUBLES))).toBe(BEYOND_DOUBLES);
    expect(parseFence(BEYOND_DOUBLES.toString())).toBe(BEYOND_DOUBLES);
  });

  it("comes back exactly, and its strings sort as the numbers do", () => {
    const fences = fc.tuple(u64s, u64s).map(([term, generation]) => fenceOf(term, generation));
    fc.assert(
      fc.property(fences, fences, (a, b) => {
        const [textA, textB] = [formatFence(a), formatFence(b)];
        expect(parseFence(textA)).toBe(a);
        expect(textA).toHaveLength(FENCE_DIGITS);
        expect(textA < textB).toBe(a < b);
      }),
    );
  });

  it("has room for exactly the largest fence", () => {
    const largest = fenceOf(MAX_U64, MAX_U64);
    expect(formatFence(largest)).toBe(largest.toString());
    expect(() => formatFence(largest + 1n)).toThrow(/from 0 to 2\^128-1/);
    expect(() => formatFence(-1n)).toThrow(RangeError);
    expect(() => formatFence(1 as unknown as bigint)).toThrow(RangeError);
    expect(parseFence((largest + 1n).toString())).toBeNull();
  });

  it.each(["", " 1", "1 ", "1\n", "-1", "+1", "1.0", "1e3", "0x1", "1n", "٣", "9".repeat(40)])(
    "does not read %j",
    (text) => {
      expect(parseFence(text)).toBeNull();
    },
  );
});
