/** SHA-256 (FIPS 180-4), synchronous. */

const ROOTS = primeRoots();
const START = ROOTS.start;
const K = ROOTS.constants;

export function sha256(message: Uint8Array): Uint8Array {
  const state = new Int32Array(START);
  const padded = pad(message);
  const view = new DataView(padded.buffer);
  const words = new Int32Array(64);
  for (let block = 0; block < padded.length; block += 64) {
    for (let index = 0; index < 16; index += 1) words[index] = view.getInt32(block + index * 4);
    compress(state, words);
  }
  const digest = new DataView(new ArrayBuffer(32));
  state.forEach((word, index) => {
    digest.setInt32(index * 4, word);
  });
  return new Uint8Array(digest.buffer);
}

function pad(message: Uint8Array): Uint8Array<ArrayBuffer> {
  const padded = new Uint8Array(Math.ceil((message.length + 9) / 64) * 64);
  padded.set(message);
  padded[message.length] = 0x80;
  const bits = message.length * 8;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(bits / 2 ** 32));
  view.setUint32(padded.length - 4, bits >>> 0);
  return padded;
}

function compress(state: Int32Array, words: Int32Array): void {
  const at = (index: number): number => words[index] ?? 0;
  for (let index = 16; index < 64; index += 1) {
    const [w15, w2] = [at(index - 15), at(index - 2)];
    const small0 = turn(w15, 7) ^ turn(w15, 18) ^ (w15 >>> 3);
    const small1 = turn(w2, 17) ^ turn(w2, 19) ^ (w2 >>> 10);
    words[index] = (at(index - 16) + small0 + at(index - 7) + small1) | 0;
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state;
  for (let index = 0; index < 64; index += 1) {
    const big1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
    const first = (h + big1 + ((e & f) ^ (~e & g)) + (K[index] ?? 0) + at(index)) | 0;
    const big0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22);
    const second = (big0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, index) => {
    state[index] = ((state[index] ?? 0) + word) | 0;
  });
}

function turn(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by));
}

/** The first 32 bits of the fractions of the square and cube roots of primes. */
function primeRoots(): { readonly start: Int32Array; readonly constants: Int32Array } {
  const primes: number[] = [];
  for (let number = 2; primes.length < 64; number += 1)
    if (primes.every((prime) => number % prime !== 0)) primes.push(number);
  const fraction = (value: number): number => ((value - Math.floor(value)) * 2 ** 32) | 0;
  return {
    start: Int32Array.from(primes.slice(0, 8), (prime) => fraction(Math.sqrt(prime))),
    constants: Int32Array.from(primes, (prime) => fraction(Math.cbrt(prime))),
  };
}
