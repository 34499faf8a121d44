/**
 * Where records are in etcd: one key each, `{prefix}{tenant}/{name}` in UTF-8, so that a tenant's names lie
 * together in the order of their bytes. The value is core's text of a record, which `etcdctl get` shows. No key is
 * ever attached to an etcd lease: a record must outlive its lease, or a fence could be handed out twice.
 */
import { decodeRecord, encodeRecord, keyId, type LeaseKey, type LeaseRecord } from "../../core/index.ts";
import { ABSENT, type StoredRecord, type WatchScope } from "../../store/index.ts";
import type { KeyValue } from "./messages.ts";
import { textOf } from "./protobuf.ts";

/** No byte of UTF-8 is this large: it sorts after every name with the same beginning. */
const AFTER_ALL = Buffer.from([0xff]);
/** A revision that no key has, for versions that this store never gave out. */
const NO_REVISION = 2n ** 63n - 1n;
const REVISION = /^[1-9]\d{0,17}$/;

export interface KeyRange {
  readonly key: Buffer;
  /** The first key that is no longer in the range. */
  readonly rangeEnd: Buffer;
}

export class EtcdLayout {
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  bytesOf(key: LeaseKey): Buffer {
    return Buffer.from(this.#prefix + keyId(key));
  }

  /** Null for what is not a record's key. Tenants have no slash, so the first one ends it. */
  keyOf(bytes: Uint8Array): LeaseKey | null {
    const text = textOf(bytes);
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

  /** What of the query's range comes after this name. */
  rangeAfter(query: { readonly tenant: string; readonly prefix: string }, name: string): KeyRange {
    const { key, rangeEnd } = this.rangeOf(query);
    const next = keyAfter(this.bytesOf({ tenant: query.tenant, name }));
    return { key: Buffer.compare(next, key) > 0 ? next : key, rangeEnd };
  }

  valueOf(record: LeaseRecord): string {
    return encodeRecord(record);
  }
}

/** The smallest key that is larger. */
export function keyAfter(key: Uint8Array): Buffer {
  return Buffer.concat([key, Uint8Array.of(0)]);
}

export function storedFrom(key: LeaseKey, pair: KeyValue | undefined): StoredRecord {
  if (pair === undefined) return ABSENT;
  const version = versionOf(key, pair.modRevision);
  const decoded = decodeRecord(textOf(pair.value), key);
  return decoded.ok
    ? { kind: "found", record: decoded.record, version }
    : { kind: "corrupt", version, detail: decoded.detail };
}

/**
 * Revisions only grow, over deletes too, so a version never comes back. But all keys of one batch share theirs:
 * with the key's name beside it, the version of one key is never that of another.
 */
export function versionOf(key: LeaseKey, modRevision: bigint): string {
  return `${modRevision}@${keyId(key)}`;
}

/** What a comparison expects: zero where there must be no record. */
export function revisionOf(key: LeaseKey, version: string | null): bigint {
  if (version === null) return 0n;
  const end = version.indexOf("@");
  const revision = version.slice(0, Math.max(0, end));
  return REVISION.test(revision) && version.slice(end + 1) === keyId(key) ? BigInt(revision) : NO_REVISION;
}
