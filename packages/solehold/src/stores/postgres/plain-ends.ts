/**
 * The usual end of a lease: it is released or revoked, and nothing else of its record changes. Who knows the row that it
 * replaces needs no more than what is different. So such an end is a shorter statement than other updates are; and it
 * can be told to those who wait, who have seen that row: they need not look again before they try.
 *
 * Every role may listen to every channel, and announce what it likes. What is told holds no name. And it is signed with
 * the version that it replaced, which is random and stands in the table alone: only who may read the row can tell of its
 * end, and only who has seen it believes it. Whoever has not (it was renewed since) reads, as without.
 *
 * What is understood of it is what was to be written. Whether it was is for the store to say: it is a hint, as all news.
 */
import { hash } from "node:crypto";
import { keyId, type LeaseKey, type LeaseRecord, type LeaseState } from "../../core/index.ts";
import type { StoredRecord } from "../../store/index.ts";

const MOST_KNOWN = 10_000;
/** 128 bits. The rest is not told, so that nobody can sign a longer text with it. */
const SIGNATURE_LENGTH = 22;
const PLAIN = /^[\w-]+$/;

interface KnownRow {
  readonly version: string;
  readonly record: LeaseRecord;
}

/**
 * The leases that were read or written last, by the ids of their keys, while somebody here listens. A version never comes
 * back with another record.
 */
export class KnownRows {
  readonly #rows = new Map<string, KnownRow>();
  #listening = 0;

  /** From now on somebody listens here; `forget` when no more. */
  listen(): void {
    this.#listening += 1;
  }

  forget(): void {
    this.#listening -= 1;
    if (this.#listening === 0) this.#rows.clear();
  }

  /** The version of an ended lease has been told to everybody, so that what is signed with it means nothing. */
  note(key: LeaseKey, version: string, record: LeaseRecord): void {
    if (this.#listening === 0) return;
    const id = keyId(key);
    if (record.state === "held") this.#rows.set(id, { version, record });
    else this.#rows.delete(id);
    if (this.#rows.size > MOST_KNOWN) this.#rows.delete(this.#rows.keys().next().value ?? "");
  }

  /** What was written over the row that was seen last; null when it was written over another one. */
  storedFrom(key: LeaseKey, told: string): StoredRecord | null {
    const id = keyId(key);
    const row = this.#rows.get(id);
    const end = row === undefined ? null : endFrom(told, row.version, id);
    if (row === undefined || end === null) return null;
    const { version, ...changes } = end;
    return { kind: "found", record: { ...row.record, ...changes }, version };
  }
}

export function isPlainEnd(before: LeaseRecord, next: LeaseRecord): boolean {
  return (
    before.state === "held" &&
    next.state !== "held" &&
    before.holder === next.holder &&
    before.tokenHash === next.tokenHash &&
    before.term === next.term &&
    before.generation === next.generation &&
    before.ttlMs === next.ttlMs &&
    before.grantedAtMs === next.grantedAtMs &&
    before.renewedAtMs === next.renewedAtMs &&
    before.expiresAtMs === next.expiresAtMs &&
    before.renewals === next.renewals &&
    before.purpose === next.purpose &&
    before.resumeRequired === next.resumeRequired &&
    before.breakAtMs === next.breakAtMs &&
    before.handoff === next.handoff &&
    before.idempotency === next.idempotency &&
    before.note === next.note
  );
}

/** What is different after a plain end. */
type Difference = Pick<LeaseRecord, "state" | "endedAtMs" | "nonce">;

/** The end as news, without slashes, commas and line breaks; null for a nonce that is not plain. */
export function toldEnd(
  { state, endedAtMs, nonce }: Difference,
  version: string,
  before: string,
  id: string,
): string | null {
  if (!PLAIN.test(nonce)) return null;
  const body = `${version}:${state}:${endedAtMs ?? ""}:${nonce}`;
  return `${body}:${signature(body, before, id)}`;
}

/** Null for what was not told by somebody who knew the version before. */
function endFrom(
  told: string,
  before: string,
  id: string,
): (Difference & { readonly version: string }) | null {
  const cut = told.lastIndexOf(":");
  const body = told.slice(0, cut);
  if (cut < 0 || told.slice(cut + 1) !== signature(body, before, id)) return null;
  const [version = "", state, endedAtMs = "", nonce = ""] = body.split(":");
  return {
    version,
    state: state as LeaseState,
    endedAtMs: endedAtMs === "" ? null : Number(endedAtMs),
    nonce,
  };
}

function signature(body: string, before: string, id: string): string {
  return hash("sha256", `solehold-end:${before}\n${id}\n${body}`, "base64url").slice(0, SIGNATURE_LENGTH);
}
