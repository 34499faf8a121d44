/**
 * Where things are in Redis. With the prefix "solehold:"
 *
 *   {solehold:}$identity              a hash: whose data this is, and how often it was written; see data.ts
 *   {solehold:}$index                 a sorted set of tenant/name, for listings in order of name
 *   {solehold:}{tenant}/{name}        one record: its version, a line break, and the text of core's codec
 *   {solehold:}changed                the channel of changes: tenant/name, a line break, and the new value
 *
 * The braces are Redis Cluster's: all keys of a prefix lie in one slot, so one call can serve a whole batch, on one
 * clock. Tenants begin with a letter or digit, so no record can pose as a key with a "$".
 *
 * A version is 72 random bits of the client that wrote, drawn when its store was opened, and the number of its write. It
 * depends on nothing that Redis keeps. So it never comes back, also not after a DEL, a FLUSHALL or a restored dump.
 */
import { encodeRecord, keyId, type LeaseKey, type LeaseRecord } from "../../core/index.ts";
import { ABSENT, type StoredRecord, type StoreEvent, storedFromText } from "../../store/index.ts";

/** How a version of damage begins. No version of a record does. */
const DAMAGE = "!";

export type RedisLayout = ReturnType<typeof redisLayout>;

export function redisLayout(prefix: string) {
  const base = `{${prefix}}`;
  return {
    identityKey: `${base}$identity`,
    indexKey: `${base}$index`,
    changedChannel: `${base}changed`,
    recordKey: (key: LeaseKey): string => base + keyId(key),
  };
}

/** What a value must begin with to have this version. Empty for a key without a value. */
export function expectedStart(version: string | null): string {
  if (version === null) return "";
  return version.startsWith(DAMAGE) ? version : `${version}\n`;
}

/** Empty to delete. */
export function encodeValue(next: LeaseRecord | null, version: string | null): string {
  return next === null ? "" : `${version}\n${encodeRecord(next)}`;
}

/** From what a script showed: a value, the version of damage, or empty for nothing. */
export function storedFrom(key: LeaseKey, shown: unknown): StoredRecord {
  if (typeof shown !== "string") throw new Error(`a script showed '${typeof shown}' instead of a text`);
  if (shown === "") return ABSENT;
  if (shown.startsWith(DAMAGE)) {
    return { kind: "corrupt", version: shown, detail: "its key holds something other than a record" };
  }
  const lineEnd = shown.indexOf("\n");
  return storedFromText(key, shown.slice(lineEnd + 1), shown.slice(0, lineEnd));
}

/** tenant/name, as the index and messages have it; null for anything else. */
export function keyOfMember(member: string): LeaseKey | null {
  const slash = member.indexOf("/");
  return slash < 1 ? null : { tenant: member.slice(0, slash), name: member.slice(slash + 1) };
}

/** From a message of the scripts: tenant/name, a line break, and the new value, empty after a delete. */
export function eventOf(message: string): StoreEvent | null {
  const lineEnd = message.indexOf("\n");
  const key = lineEnd < 0 ? null : keyOfMember(message.slice(0, lineEnd));
  if (key === null) return null;
  const stored = storedFrom(key, message.slice(lineEnd + 1));
  // What arrives damaged says nothing about what is stored.
  return { kind: "changed", key, stored: stored.kind === "corrupt" ? null : stored };
}
