/**
 * The format of the trail and the arithmetic of its chain. Version 1, complete enough to verify it in
 * another language:
 *
 * - A trail is a sequence of lines, UTF-8, each ended by one LF. A line is a JSON object without spaces:
 *     {"sequence":N,"previousHash":"H", ...the event's fields... ,"hash":"X"}
 *   `sequence` counts 1, 2, 3. Hashes are SHA-256, 64 lower-case hexadecimal digits. The fields between, in
 *   this order, those in brackets only if they have a value: at, tenant, key, leaseId, action, allowed,
 *   reason, reasonCode, [code], [holder], [fence], [purpose], [caller], [address], traceId, outcome, [detail], the
 *   keys of detail sorted. (Entries of before 2026-12 have no code, caller or address; they verify as all others.)
 * - X = SHA-256 of the line's own bytes with the last 75 of them (`,"hash":"X"}`) replaced by `}`. The bytes
 *   are hashed as they stand, so a verifier never has to write JSON, and no two entries share an encoding.
 * - H is the X of the line before. For the first line it is
 *     SHA-256("solehold/audit/1/genesis:" + trail id)
 *   so that entries of one trail cannot begin another.
 *
 * The chain proves order and content relative to a head that somebody trusts. It does not prove who wrote
 * it: an attacker that can rewrite every line and every copy of the head can forge it.
 */
import { isUtf8 } from "node:buffer";
import { hash as digest } from "node:crypto";
import type { AuditEntry, AuditEvent, AuditHead } from "./entry.ts";
import { MAX_LINE_BYTES } from "./entry.ts";
import { AuditError } from "./error.ts";

const GENESIS_DOMAIN = "solehold/audit/1/genesis:";
const TRAIL_ID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;
const HASH_LABEL = ',"hash":"';
const HEX_DIGITS = 64;
const SUFFIX_BYTES = HASH_LABEL.length + HEX_DIGITS + 2;
const PREFIX = /^\{"sequence":([1-9]\d{0,15}),"previousHash":"([0-9a-f]{64})",/;
const PREFIX_BYTES_MAX = 13 + 16 + 17 + HEX_DIGITS + 2;
const HEX = /^[0-9a-f]{64}$/;
const COMMA = 0x2c;
const CLOSING_BRACE = 0x7d;

/** The chain's fields of one line, read without trusting the rest of it. */
export interface Frame extends AuditHead {
  readonly previousHash: string;
  /** Whether the line still has the content that its own hash was made of. */
  readonly intact: boolean;
}

export interface SealedLine {
  /** Without the line feed. */
  readonly line: string;
  readonly hash: string;
}

export function checkTrailId(trailId: string): string {
  if (TRAIL_ID.test(trailId)) return trailId;
  const fix = "must be 1 to 128 letters, digits, '.', '_', ':' or '-' and begin with a letter or digit";
  throw new AuditError("AUDIT_OPTION_INVALID", `trailId ${fix}; got ${JSON.stringify(trailId)}`);
}

/** The head of an empty trail. */
export function genesis(trailId: string): AuditHead {
  return { sequence: 0, hash: digest("sha256", GENESIS_DOMAIN + checkTrailId(trailId), "hex") };
}

/** The event's part of a line, for an event that was accepted: its fields are in their order (validate.ts). */
export function encodeEvent(event: AuditEvent): string {
  return JSON.stringify(event).slice(1, -1);
}

/** Gives an encoded event its place after `previous`. */
export function seal(encodedEvent: string, previous: AuditHead): SealedLine {
  const start = `{"sequence":${previous.sequence + 1},"previousHash":"${previous.hash}",`;
  const hash = digest("sha256", `${start}${encodedEvent}}`, "hex");
  return { line: `${start}${encodedEvent}${HASH_LABEL}${hash}"}`, hash };
}

/** The line of an entry that was read or kept as an object. The hash is taken over, not computed. */
export function encodeEntry(entry: AuditEntry): string {
  const { sequence, previousHash, hash, ...event } = entry;
  return JSON.stringify({ sequence, previousHash, ...event, hash });
}

/** Null when this is not an entry at all. Looks at bytes: decoding first would hide some changes. */
export function readFrame(line: Buffer): Frame | null {
  const hashAt = line.length - SUFFIX_BYTES;
  if (hashAt < 1 || line.length > MAX_LINE_BYTES) return null;
  const prefix = PREFIX.exec(line.toString("latin1", 0, PREFIX_BYTES_MAX));
  const hash = line.toString("latin1", line.length - HEX_DIGITS - 2, line.length - 2);
  const framed =
    line.toString("latin1", hashAt, hashAt + HASH_LABEL.length) === HASH_LABEL &&
    line.toString("latin1", line.length - 2) === '"}' &&
    HEX.test(hash);
  const [, sequence, previousHash] = prefix ?? [];
  if (!framed || sequence === undefined || previousHash === undefined) return null;
  return { sequence: Number(sequence), previousHash, hash, intact: bodyHash(line, hashAt) === hash };
}

/** Hashes in place, the comma swapped for a brace meanwhile: copying every line would double the cost. */
function bodyHash(line: Buffer, hashAt: number): string {
  line[hashAt] = CLOSING_BRACE;
  const hash = digest("sha256", line.subarray(0, hashAt + 1), "hex");
  line[hashAt] = COMMA;
  return hash;
}

/** Null when the line is not JSON, or says something else than its frame (a key given twice). */
export function readEntry(line: Buffer, frame: Frame): AuditEntry | null {
  if (!isUtf8(line)) return null;
  try {
    const entry = JSON.parse(line.toString("utf8")) as AuditEntry;
    const same = entry.sequence === frame.sequence && entry.previousHash === frame.previousHash;
    return same && entry.hash === frame.hash ? entry : null;
  } catch {
    return null;
  }
}
