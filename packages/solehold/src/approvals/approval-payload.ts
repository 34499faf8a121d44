/**
 * What a signer approves, and the one byte string that stands for it.
 *
 * An approval binds everything that the service is about to do: who (tenant, holder), what (key, action,
 * purpose, tier, ttl), for which request (nonce) and when (the window). The service rebuilds the payload
 * from its OWN request and takes only the window from the approval, so nothing a caller claims is believed.
 *
 * Canonical encoding: the fields below in this order behind the domain. A text is its length in bytes as 8
 * bytes little-endian, then its UTF-8; a number is 8 bytes little-endian. Lengths in front make it
 * impossible to move a byte from one field to the next; the domain keeps the signature from meaning
 * anything elsewhere.
 *
 *   "solehold:approval-v1:" tenant key holder purpose tier action ttlMs nonce notBeforeMs notAfterMs
 */
import { createHash } from "node:crypto";
import { type FieldProblem, problemOf, type Untrusted } from "../core/field-problem.ts";
import { MAX_INSTANT_MS } from "../core/index.ts";
import { CoordinatorError } from "../placement/codes.ts";
import { idProblem, MAX_ID_BYTES, MAX_LEASE_ID_BYTES, nameProblem, shown } from "../placement/names.ts";

const APPROVAL_DOMAIN = "solehold:approval-v1:";
const APPROVAL_ID_DOMAIN = "solehold:approval-id-v1:";
const NUMBER_BYTES = 8;

/** Bounds what must be remembered against replay: an approval outside its window is refused anyway. */
export const MAX_APPROVAL_WINDOW_MS = 31 * 24 * 60 * 60 * 1000;

const NONCE = /^[A-Za-z0-9_-]{16,128}$/;

/** The operation that asks for approvals. */
export interface ApprovalRequest {
  readonly tenant: string;
  readonly key: string;
  readonly holder: string;
  readonly purpose: string;
  readonly tier: string;
  /** What is done to the lease: acquire, revoke, break, ... */
  readonly action: string;
  /** The ttl that is asked for; for a break its period; 0 where the action has none. */
  readonly ttlMs: number;
  /** 16 to 128 characters of A-Z a-z 0-9 _ -, drawn at random for each request; 128 random bits are 22. */
  readonly nonce: string;
}

export interface ApprovalPayload extends ApprovalRequest {
  /** Valid from here on. */
  readonly notBeforeMs: number;
  /** No longer valid at exactly this instant. */
  readonly notAfterMs: number;
}

/** The first problem of a request, or null. Total: any value may be passed. */
export function approvalRequestProblem(request: unknown): FieldProblem | null {
  if (typeof request !== "object" || request === null) {
    return { field: "request", message: `must be an object, got ${shown(request)}` };
  }
  const { tenant, key, holder, purpose, tier, action, ttlMs, nonce } = request as Untrusted;
  return (
    problemOf("tenant", nameProblem(tenant, MAX_ID_BYTES)) ??
    problemOf("key", nameProblem(key, MAX_LEASE_ID_BYTES)) ??
    problemOf("holder", nameProblem(holder, MAX_ID_BYTES)) ??
    problemOf("purpose", nameProblem(purpose, MAX_ID_BYTES)) ??
    problemOf("tier", nameProblem(tier, MAX_ID_BYTES)) ??
    problemOf("action", nameProblem(action, MAX_ID_BYTES)) ??
    problemOf("ttlMs", millisecondsProblem(ttlMs, Number.MAX_SAFE_INTEGER)) ??
    problemOf("nonce", nonceProblem(nonce))
  );
}

/** The first problem of an approval's window, or null. */
export function approvalWindowProblem(window: {
  readonly notBeforeMs: unknown;
  readonly notAfterMs: unknown;
}): FieldProblem | null {
  const { notBeforeMs, notAfterMs } = window;
  const problem =
    problemOf("notBeforeMs", millisecondsProblem(notBeforeMs, MAX_INSTANT_MS)) ??
    problemOf("notAfterMs", millisecondsProblem(notAfterMs, MAX_INSTANT_MS));
  if (problem !== null) return problem;
  const lengthMs = (notAfterMs as number) - (notBeforeMs as number);
  if (lengthMs <= 0)
    return { field: "notAfterMs", message: `must be later than notBeforeMs, got ${notAfterMs}` };
  if (lengthMs <= MAX_APPROVAL_WINDOW_MS) return null;
  return {
    field: "notAfterMs",
    message: `must be at most ${MAX_APPROVAL_WINDOW_MS} ms after notBeforeMs, got ${lengthMs} ms after it`,
  };
}

export function approvalPayloadProblem(payload: ApprovalPayload): FieldProblem | null {
  return approvalRequestProblem(payload) ?? approvalWindowProblem(payload);
}

/** The bytes that are signed. Throws when the payload breaks a rule, so no signature of such bytes exists. */
export function encodeApproval(payload: ApprovalPayload): Buffer {
  const problem = approvalPayloadProblem(payload);
  if (problem !== null) throw new CoordinatorError("LC_INVALID_REQUEST", problem);
  return Buffer.concat([
    Buffer.from(APPROVAL_DOMAIN, "latin1"),
    textBytes(payload.tenant),
    textBytes(payload.key),
    textBytes(payload.holder),
    textBytes(payload.purpose),
    textBytes(payload.tier),
    textBytes(payload.action),
    numberBytes(payload.ttlMs),
    textBytes(payload.nonce),
    numberBytes(payload.notBeforeMs),
    numberBytes(payload.notAfterMs),
  ]);
}

/**
 * The name under which an approval is used up: SHA-256, in base64url, of "solehold:approval-id-v1:", the
 * signer id with its length, and the signed bytes. The signature is not part of it, so no second signature
 * of the same thing is a second approval.
 */
export function approvalId(payload: ApprovalPayload, signerId: string): string {
  const problem = idProblem(signerId);
  if (problem !== null)
    throw new CoordinatorError("LC_INVALID_REQUEST", { field: "signerId", message: problem });
  const bytes = [Buffer.from(APPROVAL_ID_DOMAIN, "latin1"), textBytes(signerId), encodeApproval(payload)];
  return createHash("sha256").update(Buffer.concat(bytes)).digest("base64url");
}

function textBytes(text: string): Buffer {
  const bytes = Buffer.from(text, "utf8");
  return Buffer.concat([numberBytes(bytes.length), bytes]);
}

function numberBytes(value: number): Buffer {
  const bytes = Buffer.alloc(NUMBER_BYTES);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function millisecondsProblem(value: unknown, max: number): string | null {
  if (Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= max) return null;
  return `must be a whole number of milliseconds from 0 to ${max}, got ${shown(value)}`;
}

function nonceProblem(value: unknown): string | null {
  if (typeof value === "string" && NONCE.test(value)) return null;
  return `must be 16 to 128 characters of A-Z a-z 0-9 _ -, got ${shown(value)}`;
}
