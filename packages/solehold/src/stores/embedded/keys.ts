/** Keys as the database sees them: "tenant/name" in UTF-8, so a tenant's names lie together, by bytes. */
import { keyId, type LeaseKey } from "../../core/index.ts";
import { StoreError } from "../../store/index.ts";
import { MAX_KEY_BYTES } from "./database.ts";

/** UTF-8 needs no more for a UTF-16 unit. */
const MAX_BYTES_PER_UNIT = 3;
/** Sorts after every character of UTF-8. */
const AFTER_ALL = Buffer.from([0xff]);

/** Throws when it cannot be a key of the database. */
export function databaseKey(key: LeaseKey): LeaseKey {
  if ((key.tenant.length + 1 + key.name.length) * MAX_BYTES_PER_UNIT <= MAX_KEY_BYTES) return key;
  const bytes = Buffer.byteLength(keyId(key));
  if (bytes <= MAX_KEY_BYTES) return key;
  const message = `the key of ${bytes} bytes is too long: at most ${MAX_KEY_BYTES} can be stored`;
  throw new StoreError("internal", message, { outcome: "not-applied" });
}

/** A tenant has no slash, so the first one ends it. */
export function keyFromId(id: string): LeaseKey {
  const slash = id.indexOf("/");
  return { tenant: id.slice(0, slash), name: id.slice(slash + 1) };
}

export function keyFromBytes(bytes: Uint8Array): LeaseKey {
  return keyFromId(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString());
}

/** The end of the range of keys that begin with `bytes`. */
export function afterPrefix(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, AFTER_ALL]);
}
