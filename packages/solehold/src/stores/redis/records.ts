/** From what a script replied to what the contract says: found, absent, or corrupt. */
import { FLOOR_NAME, type LeaseKey, type LeaseRecord } from "../../core/index.ts";
import { ABSENT, type StoredRecord } from "../../store/index.ts";
import { floorOf, impliedRecord, type Lineage, raised, shown } from "../support/lineage.ts";
import { versionOf, versionOfAbsence, versionOfDamage, WRONG_TYPE_HEADER } from "./layout.ts";
import { decodeValue } from "./value.ts";

export const NOT_A_STRING = "its key holds something other than a string";

/** Null when the value is damaged, and must be looked at again together with its SHA-1. */
export function storedFrom(
  key: LeaseKey,
  item: unknown,
  lineage: Lineage,
  storeTimeMs: number,
): StoredRecord | null {
  if (typeof item === "number") return { kind: "corrupt", version: WRONG_TYPE_HEADER, detail: NOT_A_STRING };
  if (typeof item !== "string") return key.name === FLOOR_NAME ? implied(key, floorOf(lineage)) : ABSENT;
  const decoded = decodeValue(item, key);
  return decoded.ok ? found(shown(decoded.record, lineage, storeTimeMs)) : null;
}

/** As `storedFrom`, with the SHA-1 at hand. */
export function inspectedFrom(
  key: LeaseKey,
  item: unknown,
  sha1: string,
  lineage: Lineage,
  storeTimeMs: number,
): StoredRecord {
  const stored = storedFrom(key, item, lineage, storeTimeMs);
  if (stored !== null) return stored;
  const decoded = decodeValue(String(item), key);
  return {
    kind: "corrupt",
    version: versionOfDamage(sha1),
    detail: decoded.ok ? "it could not be read" : decoded.detail,
  };
}

/** What a new grant that is below the raised floor is told to follow instead. */
export function mustFollow(key: LeaseKey, current: StoredRecord, generation: bigint): StoredRecord {
  if (current.kind === "found") return found(raised(current.record, generation));
  return current.kind === "absent" ? implied(key, generation) : current;
}

function found(record: LeaseRecord): StoredRecord {
  return { kind: "found", record, version: versionOf(record) };
}

/** Its version stands for the absence. */
function implied(key: LeaseKey, generation: bigint): StoredRecord {
  const record = impliedRecord(key, generation);
  return { kind: "found", record, version: versionOfAbsence(generation) };
}
