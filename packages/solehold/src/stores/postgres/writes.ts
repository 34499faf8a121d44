/** Conditional writes on their way into statements: what kind each is, its values and news, the order of a batch. */
import { keyId, type LeaseKey, type LeaseRecord } from "../../core/index.ts";
import type { ConditionalWrite, StoredRecord, WriteResult } from "../../store/index.ts";
import { columnValues, endValues } from "./columns.ts";
import type { Values } from "./driver.ts";
import type { News } from "./payloads.ts";
import { compareBytes } from "./sql-text.ts";
import { knownVersion } from "./versions.ts";

/** A "check" writes nothing: that an absent key be absent. */
export type Operation = "insert" | "update" | "delete" | "check";

/** A write, its key's id, and its place in the call. */
export interface Place {
  readonly index: number;
  readonly id: string;
  readonly write: ConditionalWrite;
}

export function placeOf(write: ConditionalWrite, index: number): Place {
  return { index, id: keyId(write.key), write };
}

export function operationOf({ expected, next }: ConditionalWrite): Operation {
  if (expected === null) return next === null ? "check" : "insert";
  return next === null ? "delete" : "update";
}

export interface Parts {
  /** In the order in which all clients take rows. */
  readonly upserts: Place[];
  readonly deletes: Place[];
  readonly checks: Place[];
}

export function partsOf(writes: readonly ConditionalWrite[]): Parts {
  const parts: Parts = { upserts: [], deletes: [], checks: [] };
  for (const [index, write] of writes.entries()) {
    const place = placeOf(write, index);
    if (write.next !== null) parts.upserts.push(place);
    else if (write.expected !== null) parts.deletes.push(place);
    else parts.checks.push(place);
  }
  parts.upserts.sort((a, b) => inKeyOrder(a.write.key, b.write.key));
  return parts;
}

/** The order of the primary key. */
export function inKeyOrder(a: LeaseKey, b: LeaseKey): number {
  return compareBytes(a.tenant, b.tenant) || compareBytes(a.name, b.name);
}

/** For a lone statement: the columns, or only the key for a delete; the version that is expected, and the new one. */
export function valuesOf({ key, next }: ConditionalWrite, expected: string | null, version: string): Values {
  const values = next === null ? [key.tenant, key.name] : columnValues(next);
  if (expected !== null) values.push(expected);
  if (next !== null) values.push(version);
  return values;
}

/** For the statement of a plain end. */
export function valuesOfEnd(
  { key }: ConditionalWrite,
  next: LeaseRecord,
  expected: string,
  version: string,
): Values {
  const [state = null, endedAtMs = null, nonce = null] = endValues(next);
  return [key.tenant, key.name, expected, state, endedAtMs, nonce, version];
}

/** For a statement of many, in which a creation says that it expects nothing. */
export function rowOf({ key, expected, next }: ConditionalWrite): Values {
  const values = next === null ? [key.tenant, key.name] : columnValues(next);
  values.push(expected === null ? null : knownVersion(expected));
  return values;
}

/** Its holder gives the lease back: somebody may wait for that, and nobody else competes for it. */
export function isGivenBack({ next }: ConditionalWrite): boolean {
  return next === null || next.state === "released";
}

/** What such a write leaves: it may be seen before it is safe. */
export function showsGivenBack(stored: StoredRecord): boolean {
  return stored.kind === "found" && stored.record.state === "released";
}

/** What changed, whether it is held now, and how it ended. */
export function newsOf({ id, write: { next } }: Place, end: string | null): News {
  return { id, held: next?.state === "held" ? "yes" : "no", record: next, end };
}

export function appliedAs({ next }: ConditionalWrite, version: string): WriteResult {
  return { kind: "applied", version: next === null ? null : version };
}
