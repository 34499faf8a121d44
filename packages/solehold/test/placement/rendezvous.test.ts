import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { claimsOn, rendezvousCost } from "../../src/placement/rendezvous.ts";

/** The definition of the documentation, word for word, in unbounded integers. */
function definedCost(hash: bigint): bigint {
  const x = hash | 1n;
  const e = BigInt(x.toString(2).length - 1);
  let m = (x << 51n) >> e;
  let f = 0n;
  for (let digit = 0; digit < 47; digit += 1) {
    m = (m * m) >> 51n;
    f *= 2n;
    if (m >= 1n << 52n) {
      m >>= 1n;
      f += 1n;
    }
  }
  return (64n - e) * (1n << 47n) - f;
}

function cost(hash: bigint): bigint {
  return BigInt(rendezvousCost(Number(hash >> 32n), Number(hash & 0xffff_ffffn)));
}

describe("the integer logarithm", () => {
  it("equals its definition in unbounded integers for random hashes", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (hash) => {
        expect(cost(hash)).toBe(definedCost(hash));
      }),
      { numRuns: 5000 },
    );
  });

  it("equals its definition around every power of two", () => {
    for (let bit = 0n; bit <= 64n; bit += 1n) {
      for (const offset of [-3n, -2n, -1n, 0n, 1n, 2n, 3n]) {
        const hash = 2n ** bit + offset;
        if (hash >= 0n && hash < 2n ** 64n) expect(cost(hash), String(hash)).toBe(definedCost(hash));
      }
    }
  });

  it("is -log2(x / 2^64) scaled by 2^47, to within three units", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 1n, max: 2n ** 53n - 1n }), (hash) => {
        const x = Number(hash | 1n);
        // Math.log2 has 53 bits for a value up to 64, so its own error is up to 2^47 * 64 * 2^-53 = 1 unit.
        expect(Math.abs(Number(cost(hash)) - (64 - Math.log2(x)) * 2 ** 47)).toBeLessThanOrEqual(3);
      }),
      { numRuns: 5000 },
    );
  });

  it("never rises when the hash rises, and stays from 1 to 2^53, so that it is an exact double", () => {
    const hash = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
    fc.assert(
      fc.property(hash, hash, (a, b) => {
        const [low, high] = a < b ? [a, b] : [b, a];
        expect(cost(low)).toBeGreaterThanOrEqual(cost(high));
      }),
      { numRuns: 2000 },
    );
    expect(cost(0n)).toBe(2n ** 53n);
    expect(cost(2n ** 64n - 1n)).toBe(1n);
  });
});

describe("the hash of product-v1", () => {
  it.each([
    ["node-a", 10480924048114728481n],
    ["node-b", 15710578066593749647n],
    ["node-c", 11748230663227234094n],
  ])("has the published value for lease-1 and %s", (nodeId, expected) => {
    expect(claimsOn("lease-1", "product-v1", 256)(nodeId, 1n).claim).toBe(expected);
  });
});

describe("the hashed bytes", () => {
  it.each(["rendezvous-v1", "product-v1"] as const)("of %s keep lease and node apart", (algorithm) => {
    expect(claimsOn("ab", algorithm, 256)("c", 1n).claim).not.toBe(
      claimsOn("a", algorithm, 256)("bc", 1n).claim,
    );
  });

  it("of one node are not touched by the nodes hashed before it", () => {
    const claim = claimsOn("lease-1", "rendezvous-v1", 256);
    const first = claim("b", 1n).claim;
    claim("a-much-longer-name-than-the-other", 1n);
    expect(claim("b", 1n).claim).toBe(first);
  });
});
