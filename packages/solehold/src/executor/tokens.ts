/**
 * Tokens prove a grant: 128 random bits, stored only as a hash. An idempotency key may bring a token
 * back after a restart, so the record keeps the token sealed with that key: who does not know the key
 * learns nothing from the record.
 */
import { createHash, hash } from "node:crypto";

export function sha256(...parts: readonly string[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(`${Buffer.byteLength(part)}:`).update(part);
  return hash.digest("base64url");
}

/** What the store keeps of a token. */
export function hashToken(token: string): string {
  return hash("sha256", `solehold-token:${token}`, "base64url");
}

/** What the store keeps of an idempotency key, bound to its tenant. */
export function hashIdempotencyKey(tenant: string, idempotencyKey: string): string {
  return sha256("solehold-idempotency", tenant, idempotencyKey);
}

export function sealToken(token: string, idempotencyKey: string): string {
  const sealed = applyKeystream(Buffer.from(token, "utf8"), idempotencyKey, hashToken(token));
  return sealed.toString("base64url");
}

/** Null when the key does not open it. */
export function unsealToken(sealed: string, idempotencyKey: string, tokenHash: string): string | null {
  const token = applyKeystream(Buffer.from(sealed, "base64url"), idempotencyKey, tokenHash).toString("utf8");
  return hashToken(token) === tokenHash ? token : null;
}

/** The token's own hash is in the key stream, so the same idempotency key never seals two tokens alike. */
function applyKeystream(bytes: Buffer, idempotencyKey: string, tokenHash: string): Buffer {
  const result = Buffer.from(bytes);
  for (let offset = 0; offset < result.length; offset += 32) {
    const block = createHash("sha256")
      .update(sha256("solehold-seal", idempotencyKey, tokenHash, String(offset)))
      .digest();
    for (let index = offset; index < Math.min(offset + 32, result.length); index += 1) {
      result[index] = (result[index] ?? 0) ^ (block[index - offset] ?? 0);
    }
  }
  return result;
}
