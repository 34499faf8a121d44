/** Document 000, the generic lease service, in its own words: `LeaseService` of `solehold/seeds`. */
import { describe, expect, it } from "vitest";
import { LeaseService, LeaseServiceError, PURPOSES } from "../../../src/facades/seeds.ts";
import { MemoryStore } from "../../../src/store/index.ts";
import { isIsoInstant, ManualEnv, SECOND_MS, service, settled } from "./world.ts";

describe("000: Lease", () => {
  it("has lease_id, holder, purpose, ttl_secs, granted_at, renewed_at and revoked, in epoch seconds", async () => {
    const { leases, env, nowSecs } = service();
    const grantedAt = nowSecs();
    const lease = await leases.grant("worker-1", "StateWrite", 60, { name: "orders" });
    await env.advance(50 * SECOND_MS);
    const renewed = await leases.renew(lease);
    expect(JSON.parse(JSON.stringify(renewed))).toEqual({
      lease_id: "default/orders@1",
      holder: "worker-1",
      purpose: "StateWrite",
      ttl_secs: 60,
      granted_at: grantedAt,
      renewed_at: grantedAt + 50,
      revoked: false,
    });
    await leases.revoke(lease);
    expect(await leases.get(lease.leaseId)).toMatchObject({ revoked: true, grantedAt, ttlSecs: 60 });
  });

  it("is granted for Operation, StateWrite and MigrationHandoff, and keeps its purpose for good", async () => {
    expect(PURPOSES).toEqual(["Operation", "StateWrite", "MigrationHandoff"]);
    const { leases } = service();
    for (const purpose of PURPOSES) {
      const lease = await leases.grant("worker-1", purpose, 60);
      expect((await leases.renew(lease)).purpose).toBe(purpose);
      expect((await leases.useLease(lease, purpose)).purpose).toBe(purpose);
      expect((await leases.get(lease.leaseId))?.purpose).toBe(purpose);
    }
  });

  it("does not print its token", async () => {
    const { leases } = service();
    const lease = await leases.grant("worker-1", "Operation", 60);
    expect(JSON.stringify(lease)).not.toContain(lease.token);
    expect(lease.token).toHaveLength(22);
  });
});

describe("000: LeaseService", () => {
  it("grant: one holder may have many leases, each with an id of its own", async () => {
    const { leases } = service();
    const ids = await Promise.all(
      [1, 2, 3].map(async () => (await leases.grant("worker-1", "Operation", 60)).leaseId),
    );
    expect(new Set(ids).size).toBe(3);
    expect(await leases.activeCount()).toBe(3);
  });

  it("grant: under one name only one is alive, and the other gets LS_HELD", async () => {
    const { leases } = service();
    await leases.grant("worker-1", "Operation", 60, { name: "orders" });
    await expect(leases.grant("worker-2", "Operation", 60, { name: "orders" })).rejects.toMatchObject({
      code: "LS_HELD",
      kind: "Refused",
    });
  });

  it("renew: sets the expiry to now + the lease's own ttl and keeps granted_at", async () => {
    const { leases, env } = service();
    const lease = await leases.grant("worker-1", "Operation", 600);
    await env.advance(599 * SECOND_MS);
    expect((await leases.renew(lease)).grantedAt).toBe(lease.grantedAt);
    await env.advance(599 * SECOND_MS);
    await leases.useLease(lease, "Operation");
    await env.advance(SECOND_MS);
    expect(await settled(leases.useLease(lease, "Operation"))).toBe("LS_STALE_USE");
  });

  it("INV-LS-RENEWAL: renewing an expired lease is forbidden and changes nothing", async () => {
    const { leases, env } = service();
    const lease = await leases.grant("worker-1", "Operation", 60);
    await env.advance(60 * SECOND_MS);
    const before = await leases.get(lease.leaseId);
    const refused = await leases.renew(lease).catch((error: unknown) => error);
    expect(refused).toMatchObject({ kind: "Expired", code: "LS_EXPIRED", leaseId: lease.leaseId });
    expect(await leases.get(lease.leaseId)).toEqual(before);
  });

  it("INV-LS-EXPIRY: a lease of 60 s is usable at 59.999 s and stale at 60 s, every time", async () => {
    for (let run = 0; run < 3; run += 1) {
      const { leases, env } = service();
      const lease = await leases.grant("worker-1", "Operation", 60);
      await env.advance(60 * SECOND_MS - 1);
      await leases.useLease(lease, "Operation");
      await env.advance(1);
      expect(await settled(leases.useLease(lease, "Operation"))).toBe("LS_STALE_USE");
    }
  });

  it("INV-LS-STALE-REJECT: expired, revoked and unknown leases are stale, whatever the purpose", async () => {
    const { leases, env } = service();
    const expired = await leases.grant("worker-1", "Operation", 1);
    const revoked = await leases.grant("worker-1", "Operation", 60);
    await leases.revoke(revoked);
    await env.advance(SECOND_MS);
    for (const lease of [expired, revoked, "default/nowhere@1", "not an id"]) {
      expect(await settled(leases.useLease(lease, "StateWrite"))).toBe("LS_STALE_USE");
    }
    await expect(leases.useLease(expired, "Operation")).rejects.toMatchObject({
      kind: "StaleUse",
      leaseId: expired.leaseId,
    });
  });

  it("INV-LS-PURPOSE: PurposeMismatch carries lease_id, expected and actual", async () => {
    const { leases } = service();
    const lease = await leases.grant("worker-1", "Operation", 60);
    const error = await leases.useLease(lease, "MigrationHandoff").catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LeaseServiceError);
    expect(error).toMatchObject({
      kind: "PurposeMismatch",
      code: "LS_PURPOSE_MISMATCH",
      leaseId: lease.leaseId,
      expected: "MigrationHandoff",
      actual: "Operation",
    });
    await leases.useLease(lease, "Operation");
  });

  it("revoke: works on an expired lease, and a second one is AlreadyRevoked with its lease_id", async () => {
    const { leases, env } = service();
    const lease = await leases.grant("worker-1", "Operation", 60);
    await env.advance(100 * SECOND_MS);
    await leases.revoke(lease);
    await expect(leases.revoke(lease)).rejects.toMatchObject({
      kind: "AlreadyRevoked",
      code: "LS_ALREADY_REVOKED",
      leaseId: lease.leaseId,
    });
    expect(await settled(leases.renew(lease))).toBe("LS_ALREADY_REVOKED");
  });

  it("get: the lease by its id, and null for an id that was never granted or was replaced", async () => {
    const { leases, env } = service();
    const first = await leases.grant("worker-1", "Operation", 1, { name: "orders" });
    expect(await leases.get(first.leaseId)).toMatchObject({ holder: "worker-1" });
    expect(await leases.get("default/nowhere@1")).toBeNull();
    await env.advance(SECOND_MS);
    const second = await leases.grant("worker-2", "Operation", 1, { name: "orders" });
    expect(second.leaseId).not.toBe(first.leaseId);
    expect(await leases.get(first.leaseId)).toBeNull();
    expect(await leases.get(second.leaseId)).toMatchObject({ holder: "worker-2" });
  });

  it("active_count: two leases of 60 s granted at 100 s count 2 at 110 s and 0 at 200 s", async () => {
    const { leases, env } = service();
    await leases.grant("worker-1", "Operation", 60);
    await leases.grant("worker-2", "StateWrite", 60);
    await env.advance(10 * SECOND_MS);
    expect(await leases.activeCount()).toBe(2);
    await env.advance(90 * SECOND_MS);
    expect(await leases.activeCount()).toBe(0);
  });

  it("capacity: one more than max is LS_CAPACITY_EXCEEDED", async () => {
    const { leases } = service({ maxLeases: 1 });
    await leases.grant("worker-1", "Operation", 60);
    expect(await settled(leases.grant("worker-2", "Operation", 60))).toBe("LS_CAPACITY_EXCEEDED");
  });

  it("unknown ids: renew and revoke are LS_NOT_FOUND", async () => {
    const { leases } = service();
    expect(await settled(leases.renew("default/nowhere@1"))).toBe("LS_NOT_FOUND");
    expect(await settled(leases.revoke("default/nowhere@1"))).toBe("LS_NOT_FOUND");
  });

  it("a code does not depend on unrelated traffic", async () => {
    const { leases } = service();
    const lease = await leases.grant("worker-1", "Operation", 60);
    await leases.revoke(lease);
    for (let other = 0; other < 50; other += 1) await leases.grant(`worker-${other}`, "Operation", 1);
    expect(await settled(leases.revoke(lease))).toBe("LS_ALREADY_REVOKED");
    expect(await settled(leases.useLease(lease, "Operation"))).toBe("LS_STALE_USE");
  });

  it("a ttl that overflows is refused and nothing is granted", async () => {
    const { leases } = service();
    for (const ttlSecs of [Number.MAX_SAFE_INTEGER, 2 ** 64, 0, -1, 1.0001, Number.NaN]) {
      expect(await settled(leases.grant("worker-1", "Operation", ttlSecs))).toBe("LS_INVALID");
    }
    expect(await leases.activeCount()).toBe(0);
  });

  it("a lease can be renewed and used by another service on the same store, with the lease and not with its id", async () => {
    const env = new ManualEnv();
    const store = new MemoryStore({ env });
    const lease = await new LeaseService({ store, env }).grant("worker-1", "Operation", 60);
    const other = new LeaseService({ store, env });
    await other.useLease(lease, "Operation");
    await other.renew(lease);
    expect(await settled(other.useLease(lease.leaseId, "Operation"))).toBe("LS_STALE_USE");
  });
});

describe("000: the audit trail", () => {
  it("has grant, use and revoke as three decisions in order, each with lease_id, reason, trace_id and timestamp", async () => {
    const { leases, env } = service();
    const lease = await leases.grant("worker-1", "Operation", 60, { traceId: "t-1" });
    await env.advance(SECOND_MS);
    await leases.useLease(lease, "Operation", { traceId: "t-2" });
    await leases.revoke(lease, { traceId: "t-3" });
    const decisions = JSON.parse(JSON.stringify(await leases.decisions())) as Record<string, unknown>[];
    expect(decisions.map(({ action, allowed, trace_id: trace }) => [action, allowed, trace])).toEqual([
      ["grant", true, "t-1"],
      ["use", true, "t-2"],
      ["revoke", true, "t-3"],
    ]);
    expect(Object.keys(decisions[0]!)).toEqual([
      "lease_id",
      "action",
      "allowed",
      "reason",
      "trace_id",
      "timestamp",
      "code",
    ]);
    expect(new Set(decisions.map((decision) => decision.lease_id))).toEqual(new Set([lease.leaseId]));
    expect(decisions.every(({ timestamp }) => isIsoInstant(timestamp))).toBe(true);
  });

  it("has a decision with allowed false for every attempt that failed, unknown ids and double revokes included", async () => {
    const { leases } = service();
    const lease = await leases.grant("worker-1", "Operation", 60);
    await leases.revoke(lease);
    await settled(leases.revoke(lease));
    await settled(leases.renew("default/nowhere@1"));
    await settled(leases.useLease("default/nowhere@1", "Operation"));
    const decisions = await leases.decisions();
    expect(decisions.map(({ action, allowed }) => `${action} ${allowed}`)).toEqual([
      "grant true",
      "revoke true",
      "revoke false",
      "renew false",
      "use false",
    ]);
  });
});

describe("000: the document's vectors", () => {
  it.each([
    ["grant-and-use", "Operation", 60, [["use", 10]], "LS_OK"],
    ["expired-use-rejected", "StateWrite", 60, [["use", 100]], "LS_STALE_USE"],
    [
      "renewal-extends-ttl",
      "Operation",
      60,
      [
        ["renew", 50],
        ["use", 100],
      ],
      "LS_OK",
    ],
    [
      "revoked-use-rejected",
      "MigrationHandoff",
      120,
      [
        ["revoke", 10],
        ["use", 20],
      ],
      "LS_STALE_USE",
    ],
    ["purpose-mismatch", "Operation", 60, [["misuse", 10]], "LS_PURPOSE_MISMATCH"],
  ] as const)("%s", async (_name, purpose, ttlSecs, steps, expected) => {
    const { leases, env } = service();
    const lease = await leases.grant("worker-1", purpose, ttlSecs);
    let passed = 0;
    let code = "";
    for (const [step, at] of steps) {
      await env.advance((at - passed) * SECOND_MS);
      passed = at;
      const used = step === "misuse" ? "MigrationHandoff" : purpose;
      if (step === "renew") code = await settled(leases.renew(lease));
      else if (step === "revoke") code = await settled(leases.revoke(lease));
      else code = await settled(leases.useLease(lease, used));
    }
    expect(code).toBe(expected);
  });
});
