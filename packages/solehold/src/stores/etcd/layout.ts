/**
 * Where records are in etcd: one key each, `{prefix}{tenant}/{name}` in UTF-8, so that a tenant's names lie together in
 * the order of their bytes. The value is core's text of a record, which `etcdctl get` shows. No key is ever attached to
 * an etcd lease: a record must outlive its lease, or a fence could be handed out twice.
 *
 * A version is the revision of the key's last write and the beginning of its value, which holds the record's nonce.
 * Revisions only grow, over deletes too, so the first part alone never comes back while the cluster keeps its data. After
 * a restore the same revision may be given again, even to the same key; the nonce is random and is not. So a version
 * that a client remembers from before a restore fits nothing that was written after it, noticed or not.
 */
import { keyId, type LeaseKey } from "../../core/index.ts";
import {
  ABSENT,
  type ListQuery,
  type StoredRecord,
  storedFromText,
  type WatchScope,
} from "../../store/index.ts";
import { COMPARE, type Compare, type KeyRange, type KeyValue } from "./messages.ts";

/** No byte of UTF-8 is this large: it sorts after every text with the same beginning. */
const AFTER_ALL = Buffer.from([0xff]);
/** The format and the nonce of a record, which is 22 characters long. */
const HEAD_BYTES = 25;
/** A revision that no key has, for versions that this store never gave out. */
const NO_REVISION = String(2n ** 63n - 1n);
const VERSION = /^([1-9]\d{0,17})(?:-([\w-]+))?$/;

export class EtcdLayout {
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  bytesOf(key: LeaseKey): Buffer {
    return Buffer.from(this.#prefix + keyId(key));
  }

  /** Null for what is not a record's key. Tenants have no slash, so the first one ends it. */
  keyOf(bytes: Buffer): LeaseKey | null {
    const text = bytes.toString();
    const slash = text.indexOf("/", this.#prefix.length);
    if (!text.startsWith(this.#prefix) || slash < 0) return null;
    // Somebody else's bytes that are not UTF-8 would read as another key than the one they are.
    if (text.includes("\ufffd") && !Buffer.from(text).equals(bytes)) return null;
    return { tenant: text.slice(this.#prefix.length, slash), name: text.slice(slash + 1) };
  }

  /** All keys of the scope. */
  rangeOf({ tenant, prefix }: WatchScope): KeyRange {
    const key = tenant === null ? Buffer.from(this.#prefix) : this.bytesOf({ tenant, name: prefix });
    return { key, rangeEnd: Buffer.concat([key, AFTER_ALL]) };
  }

  /** What is left of a listing. */
  rangeAfter({ tenant, prefix, after }: ListQuery): KeyRange {
    const range = this.rangeOf({ tenant, prefix });
    return after === undefined ? range : { ...range, key: keyAfter(this.bytesOf({ tenant, name: after })) };
  }
}

/** The smallest key that is larger. */
export function keyAfter(key: Buffer): Buffer {
  return Buffer.concat([key, Buffer.of(0)]);
}

export function storedFrom(key: LeaseKey, kv: KeyValue | undefined): StoredRecord {
  if (kv === undefined) return ABSENT;
  const stored = storedFromText(key, kv.value.toString(), versionOf(kv.modRevision, kv.value));
  // What is no record has no nonce, and may be too short for a comparison.
  return stored.kind === "corrupt" ? { ...stored, version: kv.modRevision } : stored;
}

export function versionOf(modRevision: string, value: Buffer): string {
  return `${modRevision}-${value.toString("base64url", 0, HEAD_BYTES)}`;
}

/** What must hold of a key that still has this version; null where there must be no record. */
export function comparesOf(key: Buffer, version: string | null): readonly Compare[] {
  const { EQUAL, GREATER, LESS, MOD_REVISION, VALUE } = COMPARE;
  const [, revision = NO_REVISION, head] = VERSION.exec(version ?? "") ?? [];
  const modRevision = version === null ? "0" : revision;
  const sameWrite = { key, target: MOD_REVISION, result: EQUAL, modRevision };
  if (head === undefined) return [sameWrite];
  // To begin with a text is to lie between it and what sorts after all that begin with it.
  const value = Buffer.from(head, "base64url");
  const end = Buffer.concat([value, AFTER_ALL]);
  const target = VALUE;
  return [sameWrite, { key, target, result: GREATER, value }, { key, target, result: LESS, value: end }];
}
