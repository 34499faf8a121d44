/** The gate for steps of a work order: one executor, resumption after a takeover, and no step on a late permission. */
import { describe, expect, it } from "vitest";
import { MemoryAuditTrail } from "../../src/audit/index.ts";
import { ManualEnv } from "../../src/env/index.ts";
import { MemoryExecutor } from "../../src/executor/index.ts";
import { LeaseGate } from "../../src/facades/lease-gate.ts";
import { LeaseService } from "../../src/layers/index.ts";
import { KEY, SECOND_MS, serviceWorld } from "../layers/world.ts";

describe("the gate for steps of a work order", () => {
  function gateWorld() {
    const world = serviceWorld();
    const gate = new LeaseGate({ service: world.service, env: world.env });
    const permit = (token: string, holder = "holder") => ({
      key: KEY,
      holder,
      token,
      purpose: "Operation" as const,
    });
    return { ...world, gate, permit };
  }

  it("AT-LEASE-01: one executor per work order: the other's step does not run", async () => {
    const { gate, grant, permit } = gateWorld();
    const lease = await grant("Operation", 60);
    const steps: string[] = [];
    expect(await gate.runStep(permit(lease.token), () => steps.push("mine"))).toMatchObject({
      ran: true,
      fence: 1n,
    });
    const other = await gate.runStep(permit("no-such-token", "another"), () => steps.push("theirs"));
    expect(other).toMatchObject({ ran: false, code: "LS_STALE_USE" });
    expect(steps).toEqual(["mine"]);
  });

  it("AT-LEASE-02: after a takeover no step runs until the new executor has resumed from persisted state", async () => {
    const { env, gate, grant, permit } = gateWorld();
    await grant("Operation", 60);
    await env.advance(60 * SECOND_MS);
    const lease = await grant("Operation", 60, KEY.name, "successor");
    const steps: string[] = [];
    const step = () => gate.runStep(permit(lease.token, "successor"), () => steps.push("step"));
    expect(await step()).toMatchObject({ ran: false, reason: "LEASE_RESUME_REQUIRED" });
    expect(await gate.resumed(permit(lease.token, "successor"))).toBe("LS_OK");
    expect(await step()).toMatchObject({ ran: true, fence: 2n });
    expect(steps).toEqual(["step"]);
  });

  it("AT-LEASE-02: a takeover that was given back without resuming still has to be resumed by the next", async () => {
    const { env, service, gate, grant, permit } = gateWorld();
    await grant("Operation", 60);
    await env.advance(60 * SECOND_MS);
    const second = await grant("Operation", 60, KEY.name, "second");
    await service.execute({ op: "release", key: KEY, holder: "second", token: second.token });
    const third = await grant("Operation", 60, KEY.name, "third");
    expect(await gate.runStep(permit(third.token, "third"), () => undefined)).toMatchObject({
      ran: false,
      reason: "LEASE_RESUME_REQUIRED",
    });
  });

  it("AT-LEASE-03: a wrong token runs nothing, renews nothing and releases nothing", async () => {
    const { service, gate, grant, permit } = gateWorld();
    await grant("Operation", 60);
    let ran = 0;
    const attempt = await gate.runStep(permit("guess"), () => {
      ran += 1;
    });
    expect(attempt).toMatchObject({ ran: false, reason: "LEASE_TOKEN_INVALID" });
    const renewed = await service.execute({
      op: "renew",
      key: KEY,
      holder: "holder",
      token: "guess",
      ttlMs: 1_000,
    });
    const released = await service.execute({ op: "release", key: KEY, holder: "holder", token: "guess" });
    expect([ran, renewed.kind, released.kind]).toEqual([0, "refused", "refused"]);
    expect((await service.read(KEY))?.live).toBe(true);
  });

  it("does not start a step whose permission arrived too late", async () => {
    const env = new ManualEnv();
    const executor = new MemoryExecutor({ env, policy: { generations: "count" } });
    const service = new LeaseService({ executor, audit: new MemoryAuditTrail({ capacity: 10 }), env });
    const outcome = await service.execute({ op: "acquire", key: KEY, holder: "holder", ttlMs: 10_000 });
    if (outcome.kind !== "applied") throw new Error("granted");
    const gate = new LeaseGate({ service, env });
    const execute = service.execute.bind(service);
    service.execute = async (request, context) => {
      const late = await execute(request, context);
      await env.advance(10_000);
      return late;
    };
    let ran = 0;
    const permit = { key: KEY, holder: "holder", token: outcome.token, purpose: "Operation" as const };
    const result = await gate.runStep(permit, () => {
      ran += 1;
    });
    expect([result.ran, ran]).toEqual([false, 0]);
  });

  it("passes the step's own error on", async () => {
    const { gate, grant, permit } = gateWorld();
    const lease = await grant("Operation", 60);
    const failing = gate.runStep(permit(lease.token), () => {
      throw new Error("the step failed");
    });
    await expect(failing).rejects.toThrow("the step failed");
  });
});
