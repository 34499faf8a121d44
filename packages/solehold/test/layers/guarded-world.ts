/** A key that needs the approval of two signers, a service whose store fails on demand, and another without faults. */
import {
  type Approval,
  ApprovalPolicy,
  type SigningKeyPair,
  signApproval,
  signingKeyFromSeed,
} from "../../src/approvals/index.ts";
import { MemoryAuditTrail } from "../../src/audit/index.ts";
import { ManualEnv } from "../../src/env/index.ts";
import { StoreExecutor } from "../../src/executor/index.ts";
import { approvalRequestFor, type GuardedCommand, LeaseService } from "../../src/layers/index.ts";
import { type LeaseStore, MemoryStore } from "../../src/store/index.ts";
import { FaultyStore } from "../executor/faulty-store.ts";

const NONCE = "nonce-of-this-request";
export const MINUTE_MS = 60_000;
export const GUARDED = { tenant: "default", name: "migrations/orders" };
export const REQUEST = { key: GUARDED, holder: "deployer", ttlMs: MINUTE_MS } as const;
export const ACQUIRE = { op: "acquire", ...REQUEST, token: "chosen-by-the-caller" } as const;
export const RELEASE = { op: "release", key: GUARDED, holder: "deployer", token: ACQUIRE.token } as const;

/** A service whose store fails on demand; `rival` is another server on the same store without faults. */
export function guardedWorld(release: "keep" | "delete" = "keep") {
  const env = new ManualEnv();
  const memory = new MemoryStore({ env });
  const faults = new FaultyStore(memory);
  const keys = new Map(
    ["alice", "bob"].map((name, index) => [name, signingKeyFromSeed(Buffer.alloc(32, index + 1))]),
  );
  const defined = ApprovalPolicy.define({
    signers: [...keys].map(([signerId, { publicKey }]) => ({ signerId, keys: [{ publicKey }] })),
    thresholds: { standard: 1, risky: 2, dangerous: 2 },
    rules: [{ pattern: "migrations/*", tier: "Risky", maxTtlMs: 5 * MINUTE_MS }],
  });
  if (!defined.ok) throw new Error(JSON.stringify(defined.problems));
  const policy = release === "delete" ? ({ generations: "count", release: "delete" } as const) : {};
  const serviceOver = (store: LeaseStore): LeaseService =>
    new LeaseService({
      executor: new StoreExecutor({ store, env, policy }),
      audit: new MemoryAuditTrail({ capacity: 1_000 }),
      env,
      approvalPolicy: defined.policy,
    });
  const signedFor = (command: GuardedCommand, nonce: string) => {
    const window = { notBeforeMs: memory.now() - 1_000, notAfterMs: memory.now() + 48 * 60 * MINUTE_MS };
    const payload = { ...approvalRequestFor(command, "Risky", nonce), ...window };
    const approvals: Approval[] = [...keys].map(([name, { privateKey }]: [string, SigningKeyPair]) =>
      signApproval(privateKey, payload, name),
    );
    return { nonce, approvals };
  };
  const signed = (request: { readonly holder: string; readonly ttlMs: number } = REQUEST, nonce = NONCE) =>
    signedFor({ action: "acquire", key: GUARDED, ...request }, nonce);
  return {
    env,
    memory,
    faults,
    serviceOver,
    service: serviceOver(faults),
    rival: serviceOver(memory),
    signed,
    signedFor,
  };
}

export type World = ReturnType<typeof guardedWorld>;
