import { createPublicKey, generateKeyPairSync, sign, verify } from "node:crypto";
import { describe, expect, it } from "vitest";
import { publicKeyProblem } from "../../src/approvals/edwards.ts";
import {
  exportPrivateKeyPem,
  exportPrivateKeySeed,
  exportPublicKey,
  generateSigningKey,
  importPrivateKey,
  importPublicKey,
  signingKeyFromSeed,
} from "../../src/approvals/index.ts";

const P = 2n ** 255n - 19n;
const ORDER_EIGHT_Y = 0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n;

function encoded(y: bigint, signBit = 0n): Buffer {
  return Buffer.from((y | (signBit << 255n)).toString(16).padStart(64, "0"), "hex").reverse();
}

describe("a signing key", () => {
  it("of the first test vector of RFC 8032 has its public key and signs its empty message", () => {
    const seed = Buffer.from("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", "hex");
    const { privateKey, publicKey } = signingKeyFromSeed(seed);
    expect(Buffer.from(publicKey, "base64url").toString("hex")).toBe(
      "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
    );
    expect(sign(null, Buffer.alloc(0), privateKey).toString("hex")).toBe(
      "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    );
  });

  it("survives export and import as PEM and as seed, with white space around it", () => {
    const { privateKey, publicKey } = generateSigningKey();
    expect(publicKey).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(exportPrivateKeySeed(privateKey)).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(importPrivateKey(exportPrivateKeyPem(privateKey)).publicKey).toBe(publicKey);
    expect(importPrivateKey(`\n${exportPrivateKeySeed(privateKey)} \n`).publicKey).toBe(publicKey);
    expect(exportPublicKey(importPublicKey(publicKey))).toBe(publicKey);
    expect(exportPublicKey(privateKey)).toBe(publicKey);
  });

  it("is new each time it is generated", () => {
    expect(generateSigningKey().publicKey).not.toBe(generateSigningKey().publicKey);
  });

  it("is refused when it is of another kind, encrypted, cut or no key, and no part of it is repeated", () => {
    const { privateKey } = generateSigningKey();
    const seed = exportPrivateKeySeed(privateKey);
    const rsa = generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey;
    const bad: readonly string[] = [
      "",
      seed.slice(1),
      `${seed}=`,
      exportPrivateKeyPem(privateKey).slice(0, 80),
      privateKey.export({ format: "pem", type: "pkcs8", cipher: "aes-256-cbc", passphrase: "p" }).toString(),
      rsa.export({ format: "pem", type: "pkcs8" }).toString(),
      createPublicKey(privateKey).export({ format: "pem", type: "spki" }).toString(),
    ];
    for (const text of bad) {
      const error = thrown(() => importPrivateKey(text));
      expect(error).toMatchObject({ name: "CoordinatorError", code: "LC_INVALID_KEY", field: "privateKey" });
      expect(String(error)).toContain("must be");
      expect(`${error} ${error.stack} ${error.cause}`).not.toContain(seed.slice(8, 20));
    }
    expect(() => exportPrivateKeySeed(rsa)).toThrow(/must be an Ed25519 private key/);
    expect(() => exportPublicKey(rsa)).toThrow(/must be an Ed25519 key/);
    expect(() => signingKeyFromSeed(Buffer.alloc(31))).toThrow(/seed must be 32 bytes/);
  });
});

describe("a public key", () => {
  const smallOrder = [0n, 1n, P - 1n, ORDER_EIGHT_Y, P - ORDER_EIGHT_Y];

  it("of small order is refused with either sign: the platform lets anyone sign for it", () => {
    // The identity as key and as R, with S = 0, satisfies the equation for every message.
    const identity = encoded(1n);
    const anyMessage = Buffer.from("any message");
    const key = createPublicKey({
      key: Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), identity]),
      format: "der",
      type: "spki",
    });
    expect(verify(null, anyMessage, key, Buffer.concat([identity, Buffer.alloc(32)]))).toBe(true);
    for (const y of smallOrder) {
      for (const signBit of [0n, 1n]) {
        const bytes = encoded(y, signBit);
        expect(publicKeyProblem(bytes)).toContain("small order");
        expect(() => importPublicKey(bytes.toString("base64url"))).toThrow(
          /publicKey is a point of small order/,
        );
      }
    }
  });

  it("list of small order is complete: the multiples of a point of order 8 are all the points there are", () => {
    const generator = pointAt(ORDER_EIGHT_Y);
    if (generator === null) throw new Error("not on the curve");
    const multiples = [generator];
    while (multiples.length < 8) multiples.push(add(multiples.at(-1)!, generator));
    expect(multiples.findIndex(({ x, y }) => x === 0n && y === 1n)).toBe(7);
    expect(new Set(multiples.map(({ y }) => y))).toEqual(new Set(smallOrder));
  });

  it("that is not canonical, or not on the curve, is refused", () => {
    expect(publicKeyProblem(encoded(P + 2n))).toContain("not the canonical encoding");
    expect(publicKeyProblem(encoded(P))).toContain("not the canonical encoding");
    for (let y = 2n; y < 40n; y += 1n) {
      expect(publicKeyProblem(encoded(y)) === null, `y = ${y}`).toBe(pointAt(y) !== null);
    }
  });

  it("in any other spelling is refused without repeating it", () => {
    const { publicKey } = generateSigningKey();
    const bytes = Buffer.from(publicKey, "base64url");
    for (const text of [
      "",
      `${publicKey}=`,
      bytes.toString("hex"),
      publicKey.slice(1),
      `${publicKey}A`,
      ` ${publicKey}`,
    ]) {
      const error = thrown(() => importPublicKey(text));
      expect(error.message).toContain("must be 43 characters of unpadded base64url");
      if (text.length > 20) expect(error.message).not.toContain(text.slice(4, 16));
    }
  });

  it("is accepted for each of 200 new keys", () => {
    for (let round = 0; round < 200; round += 1) {
      const { publicKey } = generateSigningKey();
      expect(publicKeyProblem(Buffer.from(publicKey, "base64url"))).toBeNull();
    }
  });
});

function thrown(action: () => unknown): Error {
  try {
    action();
  } catch (error) {
    if (error instanceof Error) return error;
  }
  throw new Error("nothing was thrown");
}

// A second, slow implementation of the curve, to check the constants of the first.
interface Point {
  readonly x: bigint;
  readonly y: bigint;
}

const D = mod(-121665n * inverse(121666n));

function mod(value: bigint): bigint {
  return ((value % P) + P) % P;
}

function power(base: bigint, exponent: bigint): bigint {
  if (exponent === 0n) return 1n;
  const half = power(mod(base * base), exponent / 2n);
  return exponent % 2n === 1n ? mod(half * base) : half;
}

function inverse(value: bigint): bigint {
  return power(mod(value), P - 2n);
}

function pointAt(y: bigint): Point | null {
  const square = mod((y * y - 1n) * inverse(D * y * y + 1n));
  let x = power(square, (P + 3n) / 8n);
  if (mod(x * x) !== square) x = mod(x * power(2n, (P - 1n) / 4n));
  return mod(x * x) === square ? { x, y } : null;
}

function add(a: Point, b: Point): Point {
  const k = mod(D * a.x * b.x * a.y * b.y);
  return {
    x: mod((a.x * b.y + b.x * a.y) * inverse(1n + k)),
    y: mod((a.y * b.y + a.x * b.x) * inverse(1n - k)),
  };
}
