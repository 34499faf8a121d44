// A dangerous operation that needs three signatures. Two are not enough, three are, and once used they are used up.
//   node examples/three-approvers.mjs
//
// Prints:
//   two signatures: QUORUM_NOT_MET
//   three signatures: granted
//   the same three again: QUORUM_NOT_MET
import { Leases, MemoryStore, StoreExecutor } from "solehold";
import { ApprovalPolicy, generateSigningKey, signApproval } from "solehold/approvals";
import { MemoryAuditTrail } from "solehold/audit";
import { realEnv } from "solehold/env";
import { approvalRequestFor, LeaseService } from "solehold/layers";

const keys = new Map(["alice", "bob", "carol"].map((signer) => [signer, generateSigningKey()]));
const { policy: approvalPolicy } = ApprovalPolicy.define({
  signers: [...keys].map(([signerId, { publicKey }]) => ({ signerId, keys: [{ publicKey }] })),
  rules: [{ pattern: "db/*", tier: "Dangerous" }],
});
// What a server does, within this process: audit and approvals around a store.
const executor = new LeaseService({
  executor: new StoreExecutor({ store: new MemoryStore() }),
  audit: new MemoryAuditTrail({ capacity: 100 }),
  env: realEnv,
  approvalPolicy,
});
const leases = new Leases({ executor, holder: "operator" });

const key = { tenant: "default", name: "db/drop" };
const command = { action: "acquire", key, holder: "operator", purpose: "Operation", ttlMs: 60_000 };
const request = approvalRequestFor(command, "Dangerous", "ticket-4711-drop-orders");
const nowMs = Date.now();
const approvals = [...keys].map(([signer, { privateKey }]) =>
  signApproval(privateKey, { ...request, notBeforeMs: nowMs - 1_000, notAfterMs: nowMs + 600_000 }, signer),
);
const ask = async (what, signed) => {
  const approval = { nonce: "ticket-4711-drop-orders", approvals: signed };
  const attempt = await leases.tryAcquire("db/drop", { ttl: "1m", approval }).catch((error) => error);
  console.log(`${what}: ${attempt.ok ? "granted" : attempt.reason}`);
  await attempt.lease?.release();
};

await ask("two signatures", approvals.slice(0, 2));
await ask("three signatures", approvals);
await ask("the same three again", approvals);
await leases.close();
