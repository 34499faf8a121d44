import { describe, expect, it } from "vitest";
import { MemoryAuditTrail } from "../../src/audit/index.ts";
import { ManualEnv } from "../../src/env/index.ts";
import { type CommandOutcome, MemoryExecutor } from "../../src/executor/index.ts";
import { LeaseService } from "../../src/layers/index.ts";

const key = { tenant: "default", name: "job" };
const NEXT_TOKEN = "token-of-the-next";

function reasonOf(outcome: CommandOutcome | undefined): string {
  return outcome?.kind === "refused" ? outcome.decision.reason : String(outcome?.kind);
}

/** A lease that went from the first holder to the next with one write. */
async function handedOver() {
  const env = new ManualEnv();
  const executor = new MemoryExecutor({ env, policy: { generations: "count" } });
  const service = new LeaseService({ executor, audit: new MemoryAuditTrail({ capacity: 100 }), env });
  const outcome = await service.execute({ op: "acquire", key, holder: "first", ttlMs: 5_000 });
  if (outcome.kind !== "applied") throw new Error(`not granted: ${JSON.stringify(outcome)}`);
  const next = { op: "acquire", key, holder: "next", ttlMs: 5_000, token: NEXT_TOKEN } as const;
  const released = await service.execute({
    ...{ op: "release", key, holder: "first", token: outcome.token },
    next: { request: next, context: {} },
  });
  expect(released).toMatchObject({ kind: "applied", next: { kind: "applied", token: NEXT_TOKEN } });
  return { service, firstToken: outcome.token };
}

describe("a lease that went from one holder to the next with one write", () => {
  it("is not opened by the token of the one that released it, whatever holder it names", async () => {
    const { service, firstToken } = await handedOver();
    const renewed = await service.execute({
      op: "renew",
      key,
      holder: "next",
      token: firstToken,
      ttlMs: 5_000,
    });
    expect(reasonOf(renewed)).toBe("LEASE_TOKEN_INVALID");
    const released = await service.execute({ op: "release", key, holder: "next", token: firstToken });
    expect(reasonOf(released)).toBe("LEASE_TOKEN_INVALID");
  });

  it("belongs to the next holder, whose token renews and releases it", async () => {
    const { service } = await handedOver();
    const renewed = await service.execute({
      op: "renew",
      key,
      holder: "next",
      token: NEXT_TOKEN,
      ttlMs: 5_000,
    });
    expect(renewed.kind).toBe("applied");
    const released = await service.execute({ op: "release", key, holder: "next", token: NEXT_TOKEN });
    expect(released.kind).toBe("applied");
  });
});
