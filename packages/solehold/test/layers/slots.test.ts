/** Slots behind the service: each counts as a lease, the audit names the slot, and approvals are for one lease. */
import { describe, expect, it } from "vitest";
import { ApprovalPolicy, signingKeyFromSeed } from "../../src/approvals/index.ts";
import { MemoryAuditTrail } from "../../src/audit/index.ts";
import { ManualEnv } from "../../src/env/index.ts";
import { MemoryExecutor } from "../../src/executor/index.ts";
import { LeaseService } from "../../src/layers/index.ts";
import { applied } from "../executor/helpers.ts";
import { serviceWorld } from "./world.ts";

const key = { tenant: "default", name: "gpu" };
const acquire = (holder: string, token?: string) =>
  ({ op: "acquire", key, holder, slots: 3, ...(token === undefined ? {} : { token }) }) as const;

describe("slots behind the service", () => {
  it("count as leases of their own, whichever of them is held already", async () => {
    const { service } = serviceWorld({ maxLiveLeases: 2 });
    const outcomes = [];
    for (const holder of ["a", "b", "c"]) outcomes.push(await service.execute(acquire(holder)));
    expect(outcomes.map(({ kind }) => kind)).toEqual(["applied", "applied", "refused"]);
    expect(outcomes[2]).toMatchObject({ decision: { reason: "CAPACITY_EXCEEDED" } });
  });

  it.each([
    ["even where there is no room for another", 1],
    ["and no other is taken where there is room", 3],
  ])("are found again by who repeats its request, %s", async (_where, maxLiveLeases) => {
    const { service } = serviceWorld({ maxLiveLeases });
    const first = await service.execute(acquire("a", "token-1"));
    const again = await service.execute(acquire("a", "token-1"));
    if (first.kind !== "applied" || again.kind !== "applied") throw new Error("not granted");
    expect(again.decision.lease.key).toEqual(first.decision.lease.key);
    expect(again.decision.lease.generation).toBe(first.decision.lease.generation);
  });

  it("are in the audit as what was granted, and under the name where nothing was", async () => {
    const { service, audit } = serviceWorld();
    for (const holder of ["a", "b", "c", "d"]) await service.execute(acquire(holder));
    const entries = (await audit.query()).map(({ key: name, allowed }) => `${name} ${allowed}`);
    expect(entries.slice(0, 3).sort()).toEqual(["gpu true", "gpu#slot/1 true", "gpu#slot/2 true"]);
    expect(entries[3]).toBe("gpu false");
  });

  it("are refused together with an approval", async () => {
    const { service } = serviceWorld();
    const approval = { nonce: "n", approvals: [] };
    expect(await service.execute({ ...acquire("a"), approval }, { approval: null })).toMatchObject({
      decision: { kind: "refused", field: "slots" },
    });
  });
});

describe("a rule for a name", () => {
  const MINUTE_MS = 60_000;

  /** Revoking needs approvals, acquiring does not; no lease may be longer than five minutes. */
  async function ruledWorld() {
    const env = new ManualEnv();
    const defined = ApprovalPolicy.define({
      signers: [
        { signerId: "alice", keys: [{ publicKey: signingKeyFromSeed(Buffer.alloc(32, 1)).publicKey }] },
      ],
      thresholds: { standard: 1, risky: 1, dangerous: 1 },
      rules: [{ pattern: "gpu", tier: "Standard", actions: ["revoke"], maxTtlMs: 5 * MINUTE_MS }],
    });
    if (!defined.ok) throw new Error(JSON.stringify(defined.problems));
    const audit = new MemoryAuditTrail({ capacity: 100 });
    const approvalPolicy = defined.policy;
    const service = new LeaseService({ executor: new MemoryExecutor({ env }), audit, env, approvalPolicy });
    const granted = async (holder: string) => {
      const { token, decision } = applied(await service.execute({ ...acquire(holder), ttlMs: MINUTE_MS }));
      return { key: decision.lease.key, holder, token };
    };
    const [first, other] = [await granted("a"), await granted("b")];
    return { service, second: first.key.name === key.name ? other : first };
  }

  it("bounds the renewals of all its slots", async () => {
    const { service, second } = await ruledWorld();
    const renewed = await service.execute({ op: "renew", ...second, ttlMs: 10 * MINUTE_MS });
    expect(renewed).toMatchObject({ kind: "refused", decision: { field: "ttlMs" } });
  });

  it("lets the release of no slot serve a waiter whose acquire was not judged by it", async () => {
    const { service, second } = await ruledWorld();
    const waiter = { op: "acquire", key: second.key, holder: "c", token: "token-c" } as const;
    const request = { ...waiter, ttlMs: 10 * MINUTE_MS };
    const released = applied(
      await service.execute({ op: "release", ...second, next: { request, context: {} } }),
    );
    expect(released.next).toBeUndefined();
  });
});
