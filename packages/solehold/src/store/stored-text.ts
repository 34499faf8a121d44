/** The value of a record in stores that keep text, in both directions. */
import {
  type DecodedRecord,
  decodeRecord,
  encodeRecord,
  type LeaseKey,
  type LeaseRecord,
} from "../core/index.ts";
import { ABSENT, type StoredRecord } from "./contract.ts";

export interface RecordCodec {
  /** `expected` is the version that the text is to replace; null when there must be none. */
  encode(record: LeaseRecord, expected: string | null): string;
  /** Never throws: what is no record is damage. */
  decode(text: string, key: LeaseKey): DecodedRecord;
}

export const CORE_CODEC: RecordCodec = { encode: encodeRecord, decode: decodeRecord };

/** What a read shows for this value; `null` is a key without one. */
export function storedFromText(
  key: LeaseKey,
  text: string | null,
  version: string,
  { decode }: RecordCodec = CORE_CODEC,
): StoredRecord {
  if (text === null) return ABSENT;
  const decoded = decode(text, key);
  return decoded.ok
    ? { kind: "found", record: decoded.record, version }
    : { kind: "corrupt", version, detail: decoded.detail };
}
