/**
 * How much a candidate wants a lease: the arithmetic of both selection algorithms, in integers only.
 *
 * Weighted rendezvous gives each candidate a number u, uniform in (0, 1), from a hash of the lease and the
 * node, and lets the smallest -log(u) / weight win. -log(u) / weight is an exponential waiting time whose
 * rate is the weight, and the first of several such clocks to ring is each one with a probability of
 * exactly its share of the weight. A candidate's time depends on nobody else, so when a node leaves only
 * its own leases move, and when one joins leases move only to it.
 *
 * `Math.log` may differ in the last bit between engines, and two replicas that disagree about one bit send
 * a lease's traffic to two homes. So the logarithm is DEFINED by an integer procedure (`rendezvous-v1`):
 *
 *   x    = the first 8 bytes, little-endian, of
 *          SHA-256("solehold:rendezvous-v1:" || len(lease) || lease || len(node) || node)
 *          with its lowest bit set; lease and node in UTF-8, len = their byte length as 8 bytes little-endian
 *   e    = floor(log2(x))                                        0 .. 63
 *   m    = floor(x * 2^51 / 2^e)                                 2^51 .. 2^52 - 1, the leading 52 bits of x
 *   f    = 0;  47 times: m = floor(m * m / 2^51);  f = 2 * f;  if m >= 2^52: m = floor(m / 2), f = f + 1
 *   cost = (64 - e) * 2^47 - f                                   1 .. 2^53, about -log2(x / 2^64) * 2^47
 *
 * Squaring a mantissa doubles its logarithm, so each round yields the next binary digit. The smallest
 * cost / weight wins, compared as cost_a * weight_b < cost_b * weight_a: no division, no rounding. Equal
 * products go to the smaller node id by UTF-8 bytes. 47 digits are the most for which every cost is an exact
 * double; a share is true to about one part in 2^47 of the whole, far below what any number of leases shows.
 *
 * `product-v1` (published elsewhere; for interoperation) takes the hash times the weight, highest wins. It
 * is not proportional to weight and has its own prefix, "lease_coord_hash_v1:".
 */
import { hash } from "node:crypto";

export const SELECTION_ALGORITHMS = ["rendezvous-v1", "product-v1"] as const;
export type SelectionAlgorithm = (typeof SELECTION_ALGORITHMS)[number];

const FRACTION_DIGITS = 47;
const ONE = 2 ** FRACTION_DIGITS;
const MANTISSA_LIMIT = 2 ** 52;
const HALF_MANTISSA = 2 ** 26;
const LENGTH_BYTES = 8;

/** A candidate's claim on one lease. `claim` is a cost for rendezvous-v1 and the hash for product-v1. */
export interface Claim {
  readonly nodeId: string;
  readonly weight: bigint;
  readonly claim: bigint;
}

interface AlgorithmRules {
  readonly domain: string;
  claim(high: number, low: number): bigint;
  /** Below zero when `a` goes before `b`. Ties are settled by the caller. */
  compare(a: Claim, b: Claim): number;
}

export const ALGORITHM_RULES: { readonly [algorithm in SelectionAlgorithm]: AlgorithmRules } = {
  "rendezvous-v1": {
    domain: "solehold:rendezvous-v1:",
    claim: (high, low) => BigInt(rendezvousCost(high, low)),
    compare: (a, b) => order(a.claim * b.weight, b.claim * a.weight),
  },
  "product-v1": {
    domain: "lease_coord_hash_v1:",
    claim: (high, low) => (BigInt(high) << 32n) | BigInt(low),
    compare: (a, b) => order(b.claim * b.weight, a.claim * a.weight),
  },
};

export function isSelectionAlgorithm(value: unknown): value is SelectionAlgorithm {
  return value === "rendezvous-v1" || value === "product-v1";
}

/** `cost` of the comment above, for x = high * 2^32 + low with its lowest bit set. */
export function rendezvousCost(high: number, low: number): number {
  const lowBits = (low | 1) >>> 0;
  const leadingZeros = high === 0 ? 32 + Math.clz32(lowBits) : Math.clz32(high);
  let mantissa = leadingMantissa(high, lowBits, leadingZeros);
  let fraction = 0;
  for (let digit = 0; digit < FRACTION_DIGITS; digit += 1) {
    mantissa = squared(mantissa);
    fraction *= 2;
    if (mantissa >= MANTISSA_LIMIT) {
      mantissa = Math.floor(mantissa * 0.5);
      fraction += 1;
    }
  }
  return (leadingZeros + 1) * ONE - fraction;
}

/** The leading 52 bits of a 64-bit number given as two halves, from its highest set bit on. */
function leadingMantissa(high: number, low: number, leadingZeros: number): number {
  // Shift counts are taken modulo 32 by the language, so a shift by 32 has to be its own case.
  if (leadingZeros === 0) return high * 2 ** 20 + (low >>> 12);
  if (leadingZeros >= 32) return ((low << (leadingZeros - 32)) >>> 0) * 2 ** 20;
  const top = ((high << leadingZeros) | (low >>> (32 - leadingZeros))) >>> 0;
  return top * 2 ** 20 + ((low << leadingZeros) >>> 12);
}

/**
 * floor(m * m / 2^51) for m < 2^52, in doubles and yet exact: m is split into halves of 26 bits, and every
 * partial result is an integer below 2^53. Multiplying by a power of two never rounds.
 */
function squared(mantissa: number): number {
  const upper = Math.floor(mantissa / HALF_MANTISSA);
  const lower = mantissa - upper * HALF_MANTISSA;
  const middle = 2 * upper * lower + Math.floor((lower * lower) / HALF_MANTISSA);
  return 2 * upper * upper + Math.floor(middle / 2 ** 25);
}

/**
 * Computes claims on one lease. The lease's part of the hashed bytes is laid out once; each node is written
 * behind it. Lengths go in front of the texts, so no two pairs of lease and node share their bytes.
 */
export function claimsOn(leaseId: string, algorithm: SelectionAlgorithm, maxNodeBytes: number) {
  const rules = ALGORITHM_RULES[algorithm];
  const leaseBytes = Buffer.byteLength(leaseId, "utf8");
  const nodeLengthAt = rules.domain.length + LENGTH_BYTES + leaseBytes;
  // Not zeroed, so it comes from a pool; every byte that is hashed is written first.
  const bytes = Buffer.allocUnsafe(nodeLengthAt + LENGTH_BYTES + maxNodeBytes);
  bytes.write(rules.domain, 0, "latin1");
  writeLength(bytes, leaseBytes, rules.domain.length);
  bytes.write(leaseId, rules.domain.length + LENGTH_BYTES, "utf8");
  return (nodeId: string, weight: bigint): Claim => {
    const nodeBytes = bytes.write(nodeId, nodeLengthAt + LENGTH_BYTES, "utf8");
    writeLength(bytes, nodeBytes, nodeLengthAt);
    const digest = hash("sha256", bytes.subarray(0, nodeLengthAt + LENGTH_BYTES + nodeBytes), "binary");
    return { nodeId, weight, claim: rules.claim(wordAt(digest, 4), wordAt(digest, 0)) };
  };
}

function writeLength(bytes: Buffer, length: number, offset: number): void {
  bytes.writeUInt32LE(length, offset);
  bytes.writeUInt32LE(0, offset + 4);
}

/** Four bytes of a binary string as an unsigned little-endian number. */
function wordAt(digest: string, offset: number): number {
  return (
    (digest.charCodeAt(offset) |
      (digest.charCodeAt(offset + 1) << 8) |
      (digest.charCodeAt(offset + 2) << 16) |
      (digest.charCodeAt(offset + 3) << 24)) >>>
    0
  );
}

function order(a: bigint, b: bigint): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
