/** Fixed signers and one request, for the tests of this folder. The seeds are public: test keys only. */
import { createHash } from "node:crypto";
import {
  type Approval,
  type ApprovalPayload,
  type ApprovalRequest,
  Quorum,
  type QuorumConfig,
  type QuorumVerification,
  type SigningKeyPair,
  signApproval,
  signingKeyFromSeed,
  verifyQuorum,
} from "../../src/approvals/index.ts";

export const NOW_MS = 1_800_000_000_000;
export const NOT_BEFORE_MS = NOW_MS - 60_000;
export const NOT_AFTER_MS = NOW_MS + 60_000;

export const REQUEST: ApprovalRequest = {
  tenant: "acme",
  key: "db/main",
  holder: "writer-a",
  purpose: "MigrationHandoff",
  tier: "Dangerous",
  action: "acquire",
  ttlMs: 15_000,
  nonce: "bm9uY2Utb2YtcmVxdWVzdA",
};

export function testKey(name: string): SigningKeyPair {
  return signingKeyFromSeed(createHash("sha256").update(`solehold test signer ${name}`).digest());
}

export function payloadFor(request: ApprovalRequest, window: Partial<ApprovalPayload> = {}): ApprovalPayload {
  return { ...request, notBeforeMs: NOT_BEFORE_MS, notAfterMs: NOT_AFTER_MS, ...window };
}

/** The approval of `signerId`, signed with its test key unless another key is named. */
export function approve(
  signerId: string,
  request: ApprovalRequest = REQUEST,
  window: Partial<ApprovalPayload> = {},
  keyName: string = signerId,
): Approval {
  return signApproval(testKey(keyName).privateKey, payloadFor(request, window), signerId);
}

export function signerOf(signerId: string) {
  return { signerId, keys: [{ publicKey: testKey(signerId).publicKey }] };
}

export function quorumOf(signerIds: readonly string[], more: Partial<QuorumConfig> = {}): Quorum {
  return defined({ signers: signerIds.map(signerOf), ...more });
}

export function defined(config: QuorumConfig): Quorum {
  const definition = Quorum.define(config);
  if (!definition.ok) throw new Error(definition.problems.map((p) => `${p.field} ${p.message}`).join("; "));
  return definition.quorum;
}

export function verify(
  quorum: Quorum,
  approvals: readonly Approval[],
  more: { request?: ApprovalRequest; nowMs?: number; consumedIds?: ReadonlySet<string> } = {},
): QuorumVerification {
  return verifyQuorum({
    quorum,
    approvals,
    leaseId: "acme/db/main",
    traceId: "trace-1",
    request: REQUEST,
    nowMs: NOW_MS,
    ...more,
  });
}

export function codesOf({ failures }: QuorumVerification): readonly string[] {
  return failures.map(({ code }) => code);
}
