/**
 * Idempotency marks: which commands with an idempotency key a record remembers. Of the current grant these are two: the
 * acquire that it came from, and the last command after it.
 */
import type { LeaseCommand } from "./command.ts";
import { equalInConstantTime } from "./identifiers.ts";
import type { IdempotencyMark, LeaseRecord } from "./record.ts";

/** The mark of a command; null for one without an idempotency key. */
export function markOf({ op, idempotency }: LeaseCommand): IdempotencyMark | null {
  if (idempotency === undefined) return null;
  const { keyHash, fingerprint, sealedToken } = idempotency;
  return { op, keyHash, fingerprint, sealedToken };
}

/** What the record remembers once this command has changed the grant. */
export function markAfter(command: LeaseCommand, { idempotency: last }: LeaseRecord): IdempotencyMark | null {
  const mark = markOf(command);
  if (mark === null || last === null) return mark ?? last;
  const grant = last.op === "acquire" ? last : last.grant;
  if (grant === undefined) return mark;
  const { keyHash, fingerprint, sealedToken } = grant;
  return { ...mark, grant: { keyHash, fingerprint, sealedToken } };
}

/** The mark of this idempotency key, if the record has one. */
export function findMark({ idempotency: last }: LeaseRecord, keyHash: string): IdempotencyMark | null {
  if (last === null) return null;
  if (equalInConstantTime(last.keyHash, keyHash)) return last;
  const { grant } = last;
  return grant !== undefined && equalInConstantTime(grant.keyHash, keyHash)
    ? { op: "acquire", ...grant }
    : null;
}
