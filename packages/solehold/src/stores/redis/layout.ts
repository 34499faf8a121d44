/**
 * Where things are in Redis, and how a record looks there. With the prefix "solehold:"
 *
 *   {solehold:}$state           a hash: the identity of the data, see lineage.ts
 *   {solehold:}$sequence:{id}   counts the calls that wrote, see lineage.ts
 *   {solehold:}$index           a sorted set of tenant/name, for listings in order of name
 *   {solehold:}{tenant}/{name}  one record
 *   {solehold:}$line:{tenant}/{name}  a sorted set of the clients that wait for a key, see lines.ts
 *   {solehold:}news             the channel on which changed keys are announced
 *   {solehold:}turn:{client}    the channel on which a client hears that it is its turn
 *   {solehold:}freed            the channel on which all who stand in line hear of keys that were freed together
 *
 * The braces are Redis Cluster's: all keys of a prefix lie in one slot, so one call can serve a whole
 * batch, on one clock. Tenants begin with a letter or digit, so no record can pose as a key with a "$".
 */
import { keyId, type LeaseKey, type LeaseRecord } from "../../core/index.ts";
import { type Extent, HEADER_LENGTH, headerOf } from "./value.ts";

/** What a write that must find no record expects. No nonce contains a space. */
export const ABSENT_HEADER = " ".repeat(HEADER_LENGTH);
/** The header of a key that holds something other than a string. No nonce contains a "!". */
export const WRONG_TYPE_HEADER = "!wrong-type".padEnd(HEADER_LENGTH);

/** Versions that begin with a space or a "!" are those of absence and damage. */
const LAST_OF_NO_NONCE = "!".charCodeAt(0);

export class RedisLayout {
  /** What every key begins with. */
  readonly base: string;
  readonly stateKey: string;
  readonly indexKey: string;
  readonly channel: string;
  readonly freedChannel: string;
  readonly #turns: string;
  /** The last tenant, and what the keys of its records begin with: most clients have but one. */
  #tenant = "";
  #tenantBase = "";

  constructor(prefix: string) {
    this.base = `{${prefix}}`;
    this.stateKey = `${this.base}$state`;
    this.indexKey = `${this.base}$index`;
    this.channel = `${this.base}news`;
    this.freedChannel = `${this.base}freed`;
    this.#turns = `${this.base}turn:`;
  }

  sequenceKey(id: string): string {
    return `${this.base}$sequence:${id}`;
  }

  lineKey(key: LeaseKey): string {
    return `${this.base}$line:${keyId(key)}`;
  }

  /** Of one client; without an id, what all of them begin with. */
  turnChannel(id: string): string {
    return this.#turns + id;
  }

  recordKey({ tenant, name }: LeaseKey): string {
    if (tenant !== this.#tenant) {
      this.#tenant = tenant;
      this.#tenantBase = `${this.base}${tenant}/`;
    }
    return this.#tenantBase + name;
  }

  /** The lease key of a record's Redis key; null for any other key. */
  keyOf(redisKey: string): LeaseKey | null {
    return redisKey.startsWith(this.base) ? keyOfMember(redisKey.slice(this.base.length)) : null;
  }
}

/** A member of the index: tenant/name. */
export function keyOfMember(member: string): LeaseKey | null {
  const slash = member.indexOf("/");
  return slash < 1 ? null : { tenant: member.slice(0, slash), name: member.slice(slash + 1) };
}

/**
 * Versions are the header, then the record's generation: with it a write that begins a new generation
 * can be told from one that continues the old.
 */
export function versionOf(record: LeaseRecord): string {
  return headerOf(record.nonce) + record.generation;
}

/** The generation of what replaces `expected`, as text: where no more is sent than a state it is that of before. */
export function generationAfter(expected: string | null, next: LeaseRecord, extent: Extent): string {
  return extent === "state" && expected !== null ? expected.slice(HEADER_LENGTH) : String(next.generation);
}

export function versionOfAbsence(generation: bigint): string {
  return ABSENT_HEADER + generation;
}

export function headerOfVersion(version: string | null): string {
  if (version === null) return ABSENT_HEADER;
  const header = version.slice(0, HEADER_LENGTH);
  return header.length === HEADER_LENGTH ? header : header.padEnd(HEADER_LENGTH, "!");
}

/** Whether it names a record that could be read, and neither an absence nor damage. */
export function isVersionOfRecord(version: string | null): version is string {
  return version !== null && version.charCodeAt(0) > LAST_OF_NO_NONCE;
}

/** Null for versions of damaged values, which have none. */
export function generationOfVersion(version: string): bigint | null {
  const digits = version.slice(HEADER_LENGTH);
  return /^\d+$/.test(digits) ? BigInt(digits) : null;
}

/** The version of a damaged value, from the SHA-1 that the server computed of it. */
export function versionOfDamage(sha1: string): string {
  return `!${sha1.slice(0, HEADER_LENGTH - 1)}`;
}
