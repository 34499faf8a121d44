/** Node's SHA-256, which is synchronous as the simulated code needs it; the browser's own is not. No signatures. */
import { Bytes, bytesFrom } from "./buffer.ts";
import { sha256 } from "./sha256.ts";

type Input = string | Uint8Array;
type Output = "hex" | "base64url" | "base64" | "binary";

const toBytes = (input: Input): Uint8Array => (typeof input === "string" ? bytesFrom(input) : input);

export function hash(algorithm: string, input: Input, encoding: Output = "hex"): string {
  return createHash(algorithm).update(input).digest(encoding);
}

export class Hash {
  readonly #parts: Uint8Array[] = [];

  update(input: Input): this {
    this.#parts.push(toBytes(input));
    return this;
  }

  digest(): Bytes;
  digest(encoding: Output): string;
  digest(encoding?: Output): Bytes | string {
    const bytes = new Bytes(sha256(Bytes.concat(this.#parts)));
    return encoding === undefined ? bytes : bytes.toString(encoding);
  }
}

export function createHash(algorithm: string): Hash {
  if (algorithm !== "sha256") throw new RangeError(`the playground has sha256 only, not ${algorithm}`);
  return new Hash();
}

export function randomBytes(length: number): Bytes {
  return crypto.getRandomValues(new Bytes(length));
}

function missing(): never {
  throw new Error("this world has signed approvals, and signatures do not run in the browser");
}

export const createPrivateKey = missing;
export const createPublicKey = missing;
export const generateKeyPairSync = missing;
export const sign = missing;
export const verify = missing;
export const timingSafeEqual = missing;
export const createHmac = missing;
export const randomUUID = missing;
