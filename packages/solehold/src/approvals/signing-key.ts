/**
 * Ed25519 keys as people and files hold them: a public key is 43 characters of base64url (32 bytes), a
 * private key is a PKCS#8 PEM block or its 32-byte seed in base64url. In memory a private key is the
 * platform's opaque key object, which prints and serialises as nothing.
 *
 * No message of this file holds key material, not even a part of it.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { CoordinatorError } from "../placement/codes.ts";
import { decodeBase64Url } from "./base64url.ts";
import { publicKeyProblem } from "./edwards.ts";

const KEY_BYTES = 32;

/** The DER headers that make 32 raw bytes an Ed25519 private (PKCS#8) or public (SPKI) key. */
const PRIVATE_HEADER = Buffer.from("302e020100300506032b657004220420", "hex");
const PUBLIC_HEADER = Buffer.from("302a300506032b6570032100", "hex");

export interface SigningKeyPair {
  readonly privateKey: KeyObject;
  /** 43 characters of base64url. */
  readonly publicKey: string;
}

/**
 * A new key from the operating system's randomness. It does not go through the environment port on
 * purpose: a simulated world must never be able to make the keys of a real one.
 */
export function generateSigningKey(): SigningKeyPair {
  return pairOf(generateKeyPairSync("ed25519").privateKey);
}

/** The key of a 32-byte seed; for key files and test vectors. */
export function signingKeyFromSeed(seed: Uint8Array): SigningKeyPair {
  if (!(seed instanceof Uint8Array) || seed.length !== KEY_BYTES) fail("seed", `must be ${KEY_BYTES} bytes`);
  const der = Buffer.concat([PRIVATE_HEADER, seed]);
  return pairOf(createPrivateKey({ key: der, format: "der", type: "pkcs8" }));
}

/** Reads a PKCS#8 PEM block or a seed of 43 base64url characters; white space around it is ignored. */
export function importPrivateKey(text: string): SigningKeyPair {
  const trimmed = typeof text === "string" ? text.trim() : "";
  const seed = decodeBase64Url(trimmed, KEY_BYTES);
  if (seed !== null) return signingKeyFromSeed(seed);
  return pairOf(privateKeyFromPem(trimmed));
}

export function exportPrivateKeyPem(privateKey: KeyObject): string {
  return ed25519Private(privateKey).export({ format: "pem", type: "pkcs8" }).toString();
}

export function exportPrivateKeySeed(privateKey: KeyObject): string {
  const der = ed25519Private(privateKey).export({ format: "der", type: "pkcs8" });
  return der.subarray(PRIVATE_HEADER.length).toString("base64url");
}

/** The public half of a private key or a key pair, or the compact form of a public key; one in that form stays as it is. */
export function exportPublicKey(key: KeyObject | SigningKeyPair | string): string {
  if (typeof key === "string") {
    const problem = publicKeyTextProblem(key);
    return problem === null ? key : fail("key", problem);
  }
  if ("privateKey" in key) return exportPublicKey(key.privateKey);
  if (key.asymmetricKeyType !== "ed25519") fail("key", "must be an Ed25519 key");
  const publicKey = key.type === "private" ? createPublicKey(key) : key;
  return publicKey
    .export({ format: "der", type: "spki" })
    .subarray(PUBLIC_HEADER.length)
    .toString("base64url");
}

/** The key of 43 base64url characters. Throws for anything that could not be a signer's key. */
export function importPublicKey(text: string): KeyObject {
  const problem = publicKeyTextProblem(text);
  const bytes = decodeBase64Url(text, KEY_BYTES);
  if (problem !== null || bytes === null) fail("publicKey", problem ?? "cannot be read");
  return createPublicKey({ key: Buffer.concat([PUBLIC_HEADER, bytes]), format: "der", type: "spki" });
}

/** Null when `text` is a usable public key; otherwise what is wrong, without repeating it. */
export function publicKeyTextProblem(text: unknown): string | null {
  const bytes = decodeBase64Url(text, KEY_BYTES);
  if (bytes !== null) return publicKeyProblem(bytes);
  const got = typeof text === "string" ? `${text.length} characters that are not such a key` : typeof text;
  return `must be 43 characters of unpadded base64url (a raw 32-byte Ed25519 public key), got ${got}`;
}

export function ed25519Private(key: KeyObject): KeyObject {
  if (key.type !== "private" || key.asymmetricKeyType !== "ed25519") {
    fail("privateKey", "must be an Ed25519 private key");
  }
  return key;
}

function privateKeyFromPem(text: string): KeyObject {
  try {
    return ed25519Private(createPrivateKey({ key: text, format: "pem" }));
  } catch (error) {
    if (error instanceof CoordinatorError) throw error;
    // The platform's own error is dropped, not chained: it may quote what it failed to read.
    return fail(
      "privateKey",
      "must be an unencrypted PKCS#8 PEM block or 43 characters of base64url (the seed)",
    );
  }
}

function pairOf(privateKey: KeyObject): SigningKeyPair {
  return Object.freeze({ privateKey, publicKey: exportPublicKey(privateKey) });
}

function fail(field: string, message: string): never {
  throw new CoordinatorError("LC_INVALID_KEY", { field, message });
}
