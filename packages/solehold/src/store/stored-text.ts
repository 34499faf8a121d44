/** The value of a record in stores that keep text: core's codec, in both directions. */
import { decodeRecord, type LeaseKey } from "../core/index.ts";
import { ABSENT, type StoredRecord } from "./contract.ts";

/** What a read shows for this value; `null` is a key without one. */
export function storedFromText(key: LeaseKey, text: string | null, version: string): StoredRecord {
  if (text === null) return ABSENT;
  const decoded = decodeRecord(text, key);
  return decoded.ok
    ? { kind: "found", record: decoded.record, version }
    : { kind: "corrupt", version, detail: decoded.detail };
}
