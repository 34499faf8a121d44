/**
 * From a stored message to what the contract says: found, absent, or corrupt; and what a version is.
 *
 * A version is the sequence of the key's last message, which the server compares; then the generation, with
 * which a write that begins a new grant can be told from one that continues the old; then the nonce, which
 * tells whether a sequence still stands for the same message after the server lost some.
 */
import { decodeRecord, FLOOR_NAME, type LeaseKey, type LeaseRecord } from "../../core/index.ts";
import { ABSENT, type StoredRecord } from "../../store/index.ts";
import { floorOf, impliedRecord, type Lineage, raised, shown } from "../support/lineage.ts";
import type { KeptMessage } from "./replies.ts";

export interface Version {
  /** Zero when the key must be absent. */
  readonly sequence: number;
  /** Null for versions of damaged values, which have none. */
  readonly generation: bigint | null;
  readonly nonce: string;
}

const VERSION = /^(\d{1,15})(?:\.(\d+)\.(.*))?$/;
const NO_RECORD: Version = Object.freeze({ sequence: 0, generation: null, nonce: "" });
/** A version of another store: no message has such a sequence. */
const FOREIGN: Version = Object.freeze({ sequence: Number.MAX_SAFE_INTEGER, generation: null, nonce: "" });

export function versionOf(sequence: number, { generation, nonce }: LeaseRecord): string {
  return `${sequence}.${generation}.${nonce}`;
}

export function parseVersion(version: string | null): Version {
  if (version === null) return NO_RECORD;
  const [, sequence, generation, nonce = ""] = VERSION.exec(version) ?? [];
  if (sequence === undefined) return FOREIGN;
  return {
    sequence: Number(sequence),
    generation: generation === undefined ? null : BigInt(generation),
    nonce,
  };
}

/** Of a version no more than what the server compares. */
export function expectedSequence(version: string | null): number {
  if (version === null) return NO_RECORD.sequence;
  const sequence = VERSION.exec(version)?.[1];
  return sequence === undefined ? FOREIGN.sequence : Number(sequence);
}

export function storedFrom(
  key: LeaseKey,
  kept: KeptMessage | null,
  lineage: Lineage,
  storeTimeMs: number,
): StoredRecord {
  if (kept === null || kept.isMarker)
    return key.name === FLOOR_NAME ? implied(key, floorOf(lineage)) : ABSENT;
  const decoded = decodeRecord(kept.data.toString(), key);
  if (!decoded.ok) return { kind: "corrupt", version: String(kept.sequence), detail: decoded.detail };
  return found(shown(decoded.record, lineage, storeTimeMs), kept.sequence);
}

/** What a new grant that is below the raised floor is told to follow instead. */
export function toFollow(key: LeaseKey, current: StoredRecord, generation: bigint): StoredRecord {
  if (current.kind === "absent") return implied(key, generation);
  if (current.kind === "corrupt") return current;
  return found(raised(current.record, generation), parseVersion(current.version).sequence);
}

function found(record: LeaseRecord, sequence: number): StoredRecord {
  return { kind: "found", record, version: versionOf(sequence, record) };
}

/** Its version stands for the absence. */
function implied(key: LeaseKey, generation: bigint): StoredRecord {
  return found(impliedRecord(key, generation), 0);
}
