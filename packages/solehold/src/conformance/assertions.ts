/** What the cases claim about replies. Each throws an AssertionError that says what was expected and why. */
import { deepStrictEqual, fail, ok } from "node:assert/strict";
import { keyId, type LeaseKey, type LeaseRecord } from "../core/index.ts";
import { type LeaseStore, type StoredRecord, StoreError, type WriteResult } from "../store/index.ts";
import { applyOne, type FoundRecord, readOne } from "./store-fixture.ts";

/** The version of the new record. */
export function claimApplied(result: WriteResult, what: string): string {
  if (result.kind !== "applied") fail(`${what}: expected it to be applied, got ${describeResult(result)}`);
  ok(
    typeof result.version === "string" && result.version !== "",
    `${what}: an applied write must name the new version, got ${String(result.version)}`,
  );
  return result.version;
}

export function claimDeleted(result: WriteResult, what: string): void {
  if (result.kind !== "applied") fail(`${what}: expected it to be applied, got ${describeResult(result)}`);
  ok(result.version === null, `${what}: a delete has no version, got ${String(result.version)}`);
}

/** What the conflict says is current. */
export function claimConflict(result: WriteResult, what: string): StoredRecord {
  if (result.kind !== "conflict") fail(`${what}: expected a conflict, got ${describeResult(result)}`);
  return result.current;
}

export function claimAbsent(stored: StoredRecord, what: string): void {
  if (stored.kind !== "absent") fail(`${what}: expected no record, got ${describeStored(stored)}`);
}

/** That exactly this record is there, field by field. */
export function claimFound(stored: StoredRecord, record: LeaseRecord, what: string): FoundRecord {
  if (stored.kind !== "found") fail(`${what}: expected a record, got ${describeStored(stored)}`);
  claimSameRecord(stored.record, record, what);
  ok(stored.version !== "", `${what}: the version must not be empty`);
  return stored;
}

export function claimSameRecord(actual: LeaseRecord, expected: LeaseRecord, what: string): void {
  deepStrictEqual(plain(actual), plain(expected), `${what}: the record came back changed`);
}

/** Creates the record of an absent key; its version. */
export async function claimCreated(store: LeaseStore, record: LeaseRecord): Promise<string> {
  return claimApplied(await applyOne(store, record.key, null, record), `create ${keyId(record.key)}`);
}

export async function claimStored(
  store: LeaseStore,
  record: LeaseRecord,
  what: string,
): Promise<FoundRecord> {
  return claimFound(await readOne(store, record.key), record, what);
}

/** That the call rejects with a StoreError. */
export async function claimStoreError(call: () => Promise<unknown>, what: string): Promise<StoreError> {
  let answer: unknown;
  try {
    answer = await call();
  } catch (error) {
    if (error instanceof StoreError) {
      ok(!error.message.includes("\n"), `${what}: the message must be one line, got '${error.message}'`);
      return error;
    }
    fail(`${what}: expected a StoreError, got ${String(error)}`);
  }
  fail(`${what}: expected a StoreError, got an answer: ${typeof answer}`);
}

/** As a plain object, whatever class or frozen shape the store made it of. */
function plain(record: LeaseRecord): unknown {
  return {
    ...record,
    key: { ...record.key },
    handoff: record.handoff === null ? null : { ...record.handoff },
    idempotency: record.idempotency === null ? null : { ...record.idempotency },
  };
}

export function describeResult(result: WriteResult): string {
  if (result.kind === "conflict") return `a conflict with ${describeStored(result.current)}`;
  if (result.kind === "unknown") return `an unknown outcome (${result.cause.message})`;
  return `applied as version ${String(result.version)}`;
}

export function describeStored(stored: StoredRecord): string {
  if (stored.kind === "absent") return "no record";
  if (stored.kind === "corrupt") return `a corrupt value (${stored.detail})`;
  return `version ${stored.version} of ${describeKey(stored.record.key)} with nonce ${stored.record.nonce}`;
}

export function describeKey(key: LeaseKey): string {
  return JSON.stringify(keyId(key));
}
