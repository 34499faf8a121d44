/**
 * Where things are in Redis. With the prefix "solehold:"
 *
 *   {solehold:}$identity              a hash: whose data this is, and how often it was written; see data.ts
 *   {solehold:}$index                 a sorted set of tenant/name, for listings in order of name
 *   {solehold:}{tenant}/{name}        one record: its version, a line break, and the text of core's codec
 *   {solehold:}$queue:{tenant}/{name} a sorted set of the clients that wait for a key, see queue.ts
 *   {solehold:}changed                the channel of changes: tenant/name, a line break, and the new value
 *   {solehold:}turn:{client}          the channel on which a waiting client is woken
 *
 * The braces are Redis Cluster's: all keys of a prefix lie in one slot, so one call can serve a whole batch, on one
 * clock. Tenants begin with a letter or digit, so no record can pose as a key with a "$".
 *
 * A version is the number of the write (a counter in $identity) and the record's nonce, 128 random bits that the writer
 * draws for each write. The counter keeps versions apart while the data lives. After a DEL, a FLUSHALL or a restored
 * dump it may count the same numbers again; then the nonce keeps them apart. So no version of a key ever comes back.
 */
import { encodeRecord, keyId, type LeaseKey, type LeaseRecord } from "../../core/index.ts";
import type { StoredRecord } from "../../store/index.ts";
import { storedFromText } from "../support/stored-text.ts";

/** How a version of damage begins; those of records begin with a digit. */
const DAMAGE = "!";

export class RedisLayout {
  /** What every key begins with. */
  readonly base: string;
  readonly identityKey: string;
  readonly indexKey: string;
  readonly changedChannel: string;

  constructor(prefix: string) {
    this.base = `{${prefix}}`;
    this.identityKey = `${this.base}$identity`;
    this.indexKey = `${this.base}$index`;
    this.changedChannel = `${this.base}changed`;
  }

  recordKey(key: LeaseKey): string {
    return this.base + keyId(key);
  }

  queueKey(key: LeaseKey): string {
    return `${this.base}$queue:${keyId(key)}`;
  }

  turnChannel(client: string): string {
    return `${this.base}turn:${client}`;
  }
}

/** tenant/name, as the index and messages have it; null for anything else. */
export function keyOfMember(member: string): LeaseKey | null {
  const slash = member.indexOf("/");
  return slash < 1 ? null : { tenant: member.slice(0, slash), name: member.slice(slash + 1) };
}

/** What a value must begin with to have this version. Empty for a key without a value. */
export function expectedStart(version: string | null): string {
  if (version === null) return "";
  return version.startsWith(DAMAGE) ? version : `${version}\n`;
}

/** The new value without the number of the write, which the script puts in front. Empty to delete. */
export function encodeValue(next: LeaseRecord | null): string {
  return next === null ? "" : `-${next.nonce}\n${encodeRecord(next)}`;
}

export function versionOf(write: string, record: LeaseRecord): string {
  return `${write}-${record.nonce}`;
}

/** From what a script showed: a value, the version of damage, or nothing. */
export function storedFrom(key: LeaseKey, shown: unknown): StoredRecord {
  if (typeof shown !== "string") return storedFromText(key, null, "");
  if (shown.startsWith(DAMAGE)) {
    return { kind: "corrupt", version: shown, detail: "its key holds something other than a record" };
  }
  const lineEnd = shown.indexOf("\n");
  return storedFromText(key, shown.slice(lineEnd + 1), shown.slice(0, lineEnd));
}
