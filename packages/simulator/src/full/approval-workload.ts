/**
 * A key that needs the consent of two signers. Now and then a process asks for it, with consent that suffices
 * and with consent that does not: one signer, one signer twice, somebody whom nobody knows.
 */
import {
  ApprovalPolicy,
  approvalRequestFor,
  type GuardedCommand,
  type LeaseKey,
  signApproval,
  signingKeyFromSeed,
} from "solehold/internal";
import type { RandomStream } from "../world/random.ts";
import type { Process } from "./process.ts";
import type { SimulatedCluster } from "./simulated-cluster.ts";

export const DANGEROUS: LeaseKey = { tenant: "default", name: "danger" };

const TIER = "Risky";
const NEEDED = 2;
const WINDOW_MS = 3_600_000;
const SIGNERS = ["alice", "bob", "carol"];
const STRANGER = "mallory";
const CHOICES = [
  ["alice", "bob"],
  ["carol", "bob", "alice"],
  ["alice", "alice"],
  ["bob", "bob", "bob"],
  ["carol"],
  ["alice", STRANGER],
] as const;

/** Made when first needed: worlds without approvals, in a browser for one, do without signatures. */
const keys = once(
  () =>
    new Map(
      [...SIGNERS, STRANGER].map((name, index) => [name, signingKeyFromSeed(Buffer.alloc(32, index + 1))]),
    ),
);

export const dangerousPolicy = once(definedPolicy);

function once<Value>(make: () => Value): () => Value {
  let made: Value | null = null;
  return () => {
    made ??= make();
    return made;
  };
}

function definedPolicy(): ApprovalPolicy {
  const defined = ApprovalPolicy.define({
    signers: SIGNERS.map((signerId) => ({
      signerId,
      keys: [{ publicKey: keys().get(signerId)?.publicKey ?? "" }],
    })),
    thresholds: { standard: NEEDED, risky: NEEDED, dangerous: NEEDED },
    rules: [{ pattern: DANGEROUS.name, tier: TIER, actions: ["acquire"] }],
  });
  if (!defined.ok) throw new RangeError(JSON.stringify(defined.problems));
  return defined.policy;
}

export async function askForDangerous(
  cluster: SimulatedCluster,
  process: Process,
  random: RandomStream,
): Promise<void> {
  const { ttlMs } = cluster.config;
  const { holder } = process.leases;
  const names = random.pick<readonly string[]>(CHOICES);
  const nonce = Buffer.from(process.env.randomBytes(16)).toString("base64url");
  const command: GuardedCommand = { action: "acquire", key: DANGEROUS, holder, ttlMs };
  const nowMs = cluster.engine.nowMs();
  const window = { notBeforeMs: nowMs - WINDOW_MS, notAfterMs: nowMs + WINDOW_MS };
  const payload = { ...approvalRequestFor(command, TIER, nonce), ...window };
  const approvals = names.flatMap((name) => {
    const key = keys().get(name);
    return key === undefined ? [] : [signApproval(key.privateKey, payload, name)];
  });
  const known = new Set(names.filter((name) => name !== STRANGER)).size;
  if (known >= NEEDED) cluster.quorum.approved(holder);
  const approval = { nonce, approvals };
  const attempt = await process.leases.tryAcquire(DANGEROUS.name, { ttl: ttlMs, approval, autoRenew: false });
  if (!attempt.ok) return;
  cluster.hold(process, attempt.lease);
  void attempt.lease.release();
}
