/**
 * Whether 32 bytes are a public key that only its owner can sign for. The platform's verifier checks
 * signatures but accepts any 32 bytes as a key. Two kinds of bytes must not enter a signer list: the few
 * points of small order, under which anyone can make a signature that verifies for every message, and bytes
 * that are no point at all, for which nobody can ever sign, so the quorum would be smaller than it looks.
 *
 * The curve is edwards25519 (RFC 8032): -x^2 + y^2 = 1 + d x^2 y^2 modulo p = 2^255 - 19. A key is y in 255
 * bits, little-endian, and the sign of x in the highest bit.
 */
const P = 2n ** 255n - 19n;
const D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n;

/** y of two of the four points of order 8; the others have p - y. */
const ORDER_EIGHT_Y = 0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n;
const SMALL_ORDER_Y = new Set([0n, 1n, P - 1n, ORDER_EIGHT_Y, P - ORDER_EIGHT_Y]);

/** Null for the encoding of a usable point; otherwise why it cannot be a signer's key. */
export function publicKeyProblem(bytes: Uint8Array): string | null {
  let y = 0n;
  for (let index = 31; index >= 0; index -= 1) y = (y << 8n) | BigInt(bytes[index] ?? 0);
  y &= 2n ** 255n - 1n;
  if (y >= P) return "is not the canonical encoding of a key";
  if (SMALL_ORDER_Y.has(y)) return "is a point of small order, for which anyone can sign";
  // x^2 = (y^2 - 1) / (d y^2 + 1) has a root exactly when numerator * denominator is a square.
  const square = (y * y) % P;
  const product = ((square - 1n) * (D * square + 1n)) % P;
  return power(product, (P - 1n) / 2n) === 1n ? null : "is not a point of the curve: it was mistyped or cut";
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  for (let factor = base, rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * factor) % P;
    factor = (factor * factor) % P;
  }
  return result;
}
