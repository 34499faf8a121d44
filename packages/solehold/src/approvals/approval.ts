/**
 * One signer's consent to one request: an Ed25519 signature (RFC 8032) over the canonical bytes, and the
 * window that the signer chose. Whether the signer is known, the key in force and the window open is for
 * the quorum to say.
 */
import { type KeyObject, sign, verify } from "node:crypto";
import { CoordinatorError } from "../placement/codes.ts";
import { idProblem } from "../placement/names.ts";
import { type ApprovalPayload, type ApprovalRequest, encodeApproval } from "./approval-payload.ts";
import { decodeBase64Url } from "./base64url.ts";
import { ed25519Private } from "./signing-key.ts";

const SIGNATURE_BYTES = 64;

export interface Approval {
  readonly signerId: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** 64 bytes in unpadded base64url: 86 characters, in the one canonical spelling. */
  readonly signature: string;
}

/** What a caller presents for a key under an approval rule: its request's nonce and signatures over it. */
export interface PresentedApprovals {
  readonly nonce: string;
  readonly approvals: readonly Approval[];
}

export function signApproval(privateKey: KeyObject, payload: ApprovalPayload, signerId: string): Approval {
  const problem = idProblem(signerId);
  if (problem !== null)
    throw new CoordinatorError("LC_INVALID_REQUEST", { field: "signerId", message: problem });
  const signature = sign(null, encodeApproval(payload), ed25519Private(privateKey)).toString("base64url");
  const { notBeforeMs, notAfterMs } = payload;
  return Object.freeze({ signerId, notBeforeMs, notAfterMs, signature });
}

/** What the signer must have signed: the service's own request with the approval's window. */
export function payloadOf(request: ApprovalRequest, approval: Approval): ApprovalPayload {
  const { tenant, key, holder, purpose, tier, action, ttlMs, nonce } = request;
  const { notBeforeMs, notAfterMs } = approval;
  return { tenant, key, holder, purpose, tier, action, ttlMs, nonce, notBeforeMs, notAfterMs };
}

/** The 64 bytes of a signature, or null when the text is not their one canonical spelling. */
export function decodeSignature(signature: unknown): Buffer | null {
  return decodeBase64Url(signature, SIGNATURE_BYTES);
}

/** Never throws: a signature that cannot be checked does not verify. */
export function signatureVerifies(
  publicKey: KeyObject,
  signedBytes: Uint8Array,
  signature: Uint8Array,
): boolean {
  try {
    return verify(null, signedBytes, publicKey, signature);
  } catch {
    return false;
  }
}
