/**
 * Fences: the numbers that a protected resource compares to refuse a writer whose lease is gone.
 *
 * A fence is one bigint that orders grants by (term, generation), in that order: the term in the high
 * 64 bits, the generation in the low 64. The base term adds nothing, so the fence of a lease that does not use terms is
 * simply its generation, which fits into 64 bits. A fence never goes through a double, which loses integers above 2^53.
 */

/** The term of a grant for which nobody named one. Every lease is published under this term or a later one. */
export const BASE_TERM = 1n;

/** The largest term and the largest generation: both are unsigned 64-bit integers. */
export const MAX_U64 = 2n ** 64n - 1n;

/** Digits of the largest fence. Strings padded to this length sort as the fences do. */
export const FENCE_DIGITS = 39;

const MAX_FENCE = (MAX_U64 << 64n) | MAX_U64;
const DECIMAL = /^\d{1,39}$/;

function assertU64(name: string, value: bigint): void {
  if (typeof value !== "bigint" || value < 0n || value > MAX_U64) {
    throw new RangeError(`${name} must be a bigint from 0 to 2^64-1, got ${String(value)}`);
  }
}

/**
 * The fence of a grant. Throws on a term or generation outside 64 bits: a wrapped fence would go back. Term 0 and the base
 * term share their fences: a grant under term 1 has a higher generation than the one under term 0 before it.
 */
export function fenceOf(term: bigint, generation: bigint): bigint {
  assertU64("term", term);
  assertU64("generation", generation);
  return term <= BASE_TERM ? generation : (term << 64n) | generation;
}

/** The replication term inside a fence. */
export function fenceTerm(fence: bigint): bigint {
  const term = fence >> 64n;
  return term < BASE_TERM ? BASE_TERM : term;
}

/** The generation inside a fence. */
export function fenceGeneration(fence: bigint): bigint {
  return fence & MAX_U64;
}

/** Negative when `a` is older, zero when equal, positive when `a` is newer. */
export function compareFences(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The wire form: decimal, zero-padded, so that strings sort exactly as fences do. */
export function formatFence(fence: bigint): string {
  if (typeof fence !== "bigint" || fence < 0n || fence > MAX_FENCE) {
    throw new RangeError(`fence must be a bigint from 0 to 2^128-1, got ${String(fence)}`);
  }
  return fence.toString().padStart(FENCE_DIGITS, "0");
}

/** Reads a decimal fence, padded or not. Anything else is null: the caller names its own field. */
export function parseFence(text: string): bigint | null {
  if (!DECIMAL.test(text)) return null;
  const fence = BigInt(text);
  return fence <= MAX_FENCE ? fence : null;
}
