import { describe, expect, it } from "vitest";
import { DEFAULT_DRIFT, type Purpose } from "../../src/core/index.ts";
import { ManualEnv } from "../../src/env/index.ts";
import { MemoryLeaseManager, StoreLeaseManager } from "../../src/manager/index.ts";
import {
  type AuditEntry,
  type AuditEvent,
  LeaseGate,
  LeaseService,
  MemoryAuditTrail,
} from "../../src/service/index.ts";
import { MemoryStore } from "../../src/stores/index.ts";
import { FaultyStore } from "../manager/faulty-store.ts";

const KEY = { tenant: "default", name: "lease-1" };
const SECOND_MS = 1_000;

function serviceWorld(
  options: { readonly maxLiveLeases?: number; readonly rememberedTenants?: number } = {},
) {
  const env = new ManualEnv();
  const manager = new MemoryLeaseManager({ env });
  const audit = new MemoryAuditTrail({ capacity: 10_000 });
  const service = new LeaseService({ manager, audit, env, ...options });
  const grant = async (purpose: Purpose, ttlSeconds: number, name = KEY.name, holder = "holder") => {
    const key = { tenant: "default", name };
    const { outcome } = await service.grant(
      { key, holder, purpose, ttlMs: ttlSeconds * SECOND_MS },
      { traceId: "t-grant" },
    );
    if (outcome.kind !== "applied") throw new Error(`not granted: ${JSON.stringify(outcome)}`);
    const { token } = outcome;
    return {
      use: async (as: Purpose) =>
        (await service.use({ key, holder, token, purpose: as }, { traceId: "t-use" })).entry.code,
      renew: async () =>
        (await service.renew({ key, holder, token, ttlMs: ttlSeconds * SECOND_MS }, { traceId: "t-renew" }))
          .entry.code,
      revoke: async () => (await service.revoke({ key }, { traceId: "t-revoke" })).entry.code,
      token,
    };
  };
  const trail = async (): Promise<readonly AuditEntry[]> => await audit.query({ limit: 10_000 });
  return { env, service, audit, grant, trail };
}

/** A trail that tells when it is held, let go and appended to. */
function heldTrail() {
  const told: string[] = [];
  const audit = new (class extends MemoryAuditTrail {
    hold(): () => void {
      let isHeld = true;
      told.push("held");
      return () => {
        if (isHeld) told.push("let go");
        isHeld = false;
      };
    }

    override append(event: AuditEvent): void {
      told.push(`${event.action} ${event.allowed}`);
      super.append(event);
    }
  })({ capacity: 10 });
  return { audit, told };
}

describe("the vectors of the lease service", () => {
  it("grant-and-use: allowed", async () => {
    const { env, grant } = serviceWorld();
    const lease = await grant("Operation", 60);
    await env.advance(10 * SECOND_MS);
    expect(await lease.use("Operation")).toBe("LS_OK");
  });

  it("expired-use-rejected: LS_STALE_USE", async () => {
    const { env, grant } = serviceWorld();
    const lease = await grant("StateWrite", 60);
    await env.advance(100 * SECOND_MS);
    expect(await lease.use("StateWrite")).toBe("LS_STALE_USE");
  });

  it("renewal-extends-ttl: allowed", async () => {
    const { env, grant } = serviceWorld();
    const lease = await grant("Operation", 60);
    await env.advance(50 * SECOND_MS);
    expect(await lease.renew()).toBe("LS_OK");
    await env.advance(50 * SECOND_MS);
    expect(await lease.use("Operation")).toBe("LS_OK");
  });

  it("revoked-use-rejected: LS_STALE_USE", async () => {
    const { env, grant } = serviceWorld();
    const lease = await grant("MigrationHandoff", 120);
    await env.advance(10 * SECOND_MS);
    expect(await lease.revoke()).toBe("LS_OK");
    await env.advance(10 * SECOND_MS);
    expect(await lease.use("MigrationHandoff")).toBe("LS_STALE_USE");
  });

  it("purpose-mismatch: LS_PURPOSE_MISMATCH", async () => {
    const { env, grant } = serviceWorld();
    const lease = await grant("Operation", 60);
    await env.advance(10 * SECOND_MS);
    expect(await lease.use("MigrationHandoff")).toBe("LS_PURPOSE_MISMATCH");
  });
});

describe("INV-LS-EXPIRY", () => {
  it("a lease of 60 s is usable at 59.999 s and not at 60 s", async () => {
    const { env, grant } = serviceWorld();
    const lease = await grant("Operation", 60);
    await env.advance(60 * SECOND_MS - 1);
    expect(await lease.use("Operation")).toBe("LS_OK");
    await env.advance(1);
    expect(await lease.use("Operation")).toBe("LS_STALE_USE");
  });

  it("expired and of the wrong purpose is stale first", async () => {
    const { env, grant } = serviceWorld();
    const lease = await grant("Operation", 60);
    await env.advance(60 * SECOND_MS);
    expect(await lease.use("StateWrite")).toBe("LS_STALE_USE");
  });
});

describe("INV-LS-RENEWAL", () => {
  it("renewing at its end is LS_EXPIRED and changes nothing", async () => {
    const { env, service, grant } = serviceWorld();
    const lease = await grant("Operation", 60);
    await env.advance(60 * SECOND_MS);
    const before = await service.get(KEY);
    expect(await lease.renew()).toBe("LS_EXPIRED");
    expect(await service.get(KEY)).toEqual(before);
  });

  it("renewing sets the expiry to now + ttl and keeps when it was granted", async () => {
    const { env, service, grant } = serviceWorld();
    const lease = await grant("Operation", 60);
    const granted = await service.get(KEY);
    await env.advance(50 * SECOND_MS);
    await lease.renew();
    const renewed = await service.get(KEY);
    expect(renewed?.grantedAtMs).toBe(granted?.grantedAtMs);
    expect(renewed?.expiresAtMs).toBe((granted?.grantedAtMs ?? 0) + 110 * SECOND_MS);
  });

  it("of what is not there is LS_NOT_FOUND, of what is revoked LS_ALREADY_REVOKED even when expired", async () => {
    const { env, service, grant } = serviceWorld();
    const nowhere = { tenant: "default", name: "nowhere" };
    const missing = await service.renew({ key: nowhere, holder: "h", token: "t", ttlMs: 1_000 });
    expect(missing.entry.code).toBe("LS_NOT_FOUND");
    const lease = await grant("Operation", 60);
    await lease.revoke();
    await env.advance(100 * SECOND_MS);
    expect(await lease.renew()).toBe("LS_ALREADY_REVOKED");
  });
});

describe("INV-LS-STALE-REJECT", () => {
  it("rejects the use of an unknown, a revoked, an expired and a taken-over lease alike", async () => {
    const { env, service, grant } = serviceWorld();
    const nowhere = { tenant: "default", name: "nowhere" };
    const unknown = await service.use({ key: nowhere, holder: "h", token: "t", purpose: "Operation" });
    expect(unknown.entry.code).toBe("LS_STALE_USE");
    const first = await grant("Operation", 60);
    await env.advance(60 * SECOND_MS);
    await grant("Operation", 60, KEY.name, "another");
    expect(await first.use("Operation")).toBe("LS_STALE_USE");
    expect(await first.renew()).toBe("LS_EXPIRED");
  });

  it("revokes an expired lease, and says LS_ALREADY_REVOKED the second time", async () => {
    const { env, grant } = serviceWorld();
    const lease = await grant("Operation", 60);
    await env.advance(100 * SECOND_MS);
    expect(await lease.revoke()).toBe("LS_OK");
    expect(await lease.revoke()).toBe("LS_ALREADY_REVOKED");
  });

  it("gives codes that do not depend on unrelated traffic", async () => {
    const codes = async (noise: "quiet" | "busy"): Promise<string[]> => {
      const { env, service, grant } = serviceWorld();
      const lease = await grant("Operation", 60);
      if (noise === "busy")
        for (let index = 0; index < 50; index += 1) await grant("StateWrite", 1, `noise-${index}`);
      await env.advance(100 * SECOND_MS);
      if (noise === "busy") await service.activeCount("default");
      return [await lease.use("Operation"), await lease.renew(), await lease.revoke(), await lease.revoke()];
    };
    expect(await codes("busy")).toEqual(await codes("quiet"));
  });
});

describe("INV-LS-PURPOSE", () => {
  it("prints the purposes as the seed does, and no renewal changes one", async () => {
    const { service, grant } = serviceWorld();
    for (const purpose of ["Operation", "StateWrite", "MigrationHandoff"] as const) {
      const lease = await grant(purpose, 60, `of-${purpose}`);
      await lease.renew();
      expect((await service.get({ tenant: "default", name: `of-${purpose}` }))?.purpose).toBe(purpose);
      expect(await lease.use(purpose)).toBe("LS_OK");
    }
  });

  it("refuses a purpose that is none, naming the field", async () => {
    const { service } = serviceWorld();
    const { outcome } = await service.grant({
      key: KEY,
      holder: "h",
      purpose: "Party" as Purpose,
      ttlMs: 1_000,
    });
    expect(outcome).toMatchObject({ kind: "refused", decision: { kind: "refused", field: "purpose" } });
  });
});

describe("the audit of the service", () => {
  it("has grant, use and revoke as exactly three decisions in order, each with its trace id and time", async () => {
    const { env, grant, trail } = serviceWorld();
    const lease = await grant("Operation", 60);
    await env.advance(SECOND_MS);
    await lease.use("Operation");
    await env.advance(SECOND_MS);
    await lease.revoke();
    const entries = await trail();
    expect(entries.map(({ action, allowed, traceId }) => [action, allowed, traceId])).toEqual([
      ["grant", true, "t-grant"],
      ["use", true, "t-use"],
      ["revoke", true, "t-revoke"],
    ]);
    const [granted, used, revoked] = entries;
    expect([(used?.at ?? 0) - (granted?.at ?? 0), (revoked?.at ?? 0) - (used?.at ?? 0)]).toEqual([
      SECOND_MS,
      SECOND_MS,
    ]);
    expect(new Set(entries.map(({ leaseId }) => leaseId))).toEqual(new Set(["default/lease-1@1"]));
  });

  it("has every refusal too: unknown keys, double revokes, malformed requests, wrong tokens", async () => {
    const { service, grant, trail } = serviceWorld();
    const lease = await grant("Operation", 60);
    await service.revoke({ key: { tenant: "default", name: "nowhere" } });
    await service.renew({ key: KEY, holder: "holder", token: "guess", ttlMs: 1_000 });
    await service.grant({ key: KEY, holder: "", ttlMs: 1_000 });
    await lease.revoke();
    await lease.revoke();
    expect((await trail()).map(({ action, allowed, reason }) => [action, allowed, reason])).toEqual([
      ["grant", true, "OK_DECISION_COMPUTE"],
      ["revoke", false, "LEASE_NOT_FOUND"],
      ["renew", false, "LEASE_TOKEN_INVALID"],
      ["grant", false, "INPUT_SCHEMA_INVALID"],
      ["revoke", true, "OK_DECISION_COMPUTE"],
      ["revoke", false, "LEASE_ALREADY_REVOKED"],
    ]);
  });

  it("never contains a token", async () => {
    const { grant, trail } = serviceWorld();
    const lease = await grant("Operation", 60);
    await lease.renew();
    await lease.use("Operation");
    expect(JSON.stringify(await trail())).not.toContain(lease.token);
  });

  it("that cannot be written leaves the request unconfirmed instead of unaudited", async () => {
    const env = new ManualEnv();
    const audit = new MemoryAuditTrail({ capacity: 10 });
    audit.append = () => Promise.reject(new Error("disk full"));
    const service = new LeaseService({ manager: new MemoryLeaseManager({ env }), audit, env });
    const { outcome } = await service.grant({ key: KEY, holder: "h", ttlMs: 1_000 });
    expect(outcome).toMatchObject({ kind: "unsettled", outcome: "unknown" });
  });

  it("is held for the next in line from the beginning of its attempt until it is appended, and for no other", async () => {
    const env = new ManualEnv();
    const { audit, told } = heldTrail();
    const service = new LeaseService({ manager: new MemoryLeaseManager({ env }), audit, env });
    await service.grant({ key: KEY, holder: "a", ttlMs: 1_000 });
    expect(told.splice(0)).toEqual(["grant true"]);
    const timers = env.pendingTimers;
    await service.grant({ key: { ...KEY, name: "free" }, holder: "b", ttlMs: 1_000 }, {}, "next in line");
    expect(told.splice(0)).toEqual(["held", "grant true", "let go"]);
    await service.grant({ key: KEY, holder: "b", ttlMs: 1_000 }, {}, "next in line");
    expect(told).toEqual(["held", "grant false", "let go"]);
    expect(env.pendingTimers).toBeLessThanOrEqual(timers);
  });

  it("is let go after moments when the store does not answer", async () => {
    const env = new ManualEnv();
    const store = new MemoryStore({ env });
    const { audit, told } = heldTrail();
    const service = new LeaseService({ manager: new StoreLeaseManager({ store, env }), audit, env });
    await service.grant({ key: { ...KEY, name: "other" }, holder: "a", ttlMs: 1_000 });
    told.length = 0;
    store.apply = () => new Promise(() => undefined);
    const granted = service.grant({ key: KEY, holder: "b", ttlMs: 60_000 }, {}, "next in line");
    await env.advance(4);
    expect(told).toEqual(["held"]);
    await env.advance(1);
    expect(told).toEqual(["held", "let go"]);
    await env.advance(60_000);
    await granted;
    expect(told).toContain("grant false");
  });

  it("tells an unknown outcome from one that certainly did not happen", async () => {
    const env = new ManualEnv();
    const store = new FaultyStore(new MemoryStore({ env }));
    const audit = new MemoryAuditTrail({ capacity: 10 });
    const service = new LeaseService({ manager: new StoreLeaseManager({ store, env }), audit, env });
    await service.get(KEY);
    store.writeFaults = ["failed-before"];
    await service.grant({ key: KEY, holder: "h", ttlMs: 1_000 });
    store.writeFaults = ["delayed", "failed-before"];
    await service.grant({ key: KEY, holder: "h", ttlMs: 1_000 });
    expect((await audit.query()).map(({ outcome, allowed }) => [outcome, allowed])).toEqual([
      ["none", false],
      ["unknown", false],
    ]);
  });
});

describe("active leases", () => {
  it("are counted at their ends exactly: two of 60 s, then none", async () => {
    const { env, service, grant } = serviceWorld();
    await grant("Operation", 60, "one");
    await grant("Operation", 60, "two");
    await env.advance(10 * SECOND_MS);
    expect(await service.activeCount("default")).toBe(2);
    await env.advance(50 * SECOND_MS - 1);
    expect(await service.activeCount("default")).toBe(2);
    await env.advance(1);
    expect(await service.activeCount("default")).toBe(0);
  });

  it("follow renewals, releases and revokes", async () => {
    const { env, service, grant } = serviceWorld();
    const renewed = await grant("Operation", 60, "renewed");
    const revoked = await grant("Operation", 60, "revoked");
    await env.advance(50 * SECOND_MS);
    await renewed.renew();
    await revoked.revoke();
    expect(await service.activeCount("default")).toBe(1);
    await env.advance(30 * SECOND_MS);
    expect(await service.activeCount("default")).toBe(1);
  });

  it("include those of other processes on the same store, before and after this one started", async () => {
    const env = new ManualEnv();
    const store = new MemoryStore({ env });
    const make = (): LeaseService =>
      new LeaseService({
        manager: new StoreLeaseManager({ store, env }),
        audit: new MemoryAuditTrail({ capacity: 100 }),
        env,
      });
    const first = make();
    await first.grant({ key: { tenant: "default", name: "a" }, holder: "h", ttlMs: 60_000 });
    const second = make();
    expect(await second.activeCount("default")).toBe(1);
    await first.grant({ key: { tenant: "default", name: "b" }, holder: "h", ttlMs: 60_000 });
    await env.advance(1);
    expect(await second.activeCount("default")).toBe(2);
  });

  it("beyond the tenant's limit are denied, a burst included, and another tenant is not affected", async () => {
    const { service } = serviceWorld({ maxLiveLeases: 3 });
    const burst = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        service.grant({ key: { tenant: "default", name: `job-${index}` }, holder: "h", ttlMs: 60_000 }),
      ),
    );
    expect(burst.filter(({ entry }) => entry.allowed)).toHaveLength(3);
    expect(burst.filter(({ entry }) => entry.code === "LS_CAPACITY_EXCEEDED")).toHaveLength(7);
    const other = await service.grant({ key: { tenant: "other", name: "job" }, holder: "h", ttlMs: 60_000 });
    expect(other.entry.code).toBe("LS_OK");
  });

  it("are granted while those of before are still being counted, if that takes long", async () => {
    const env = new ManualEnv();
    const store = new MemoryStore({ env });
    store.list = () => new Promise(() => undefined);
    const manager = new StoreLeaseManager({ store, env });
    const service = new LeaseService({ manager, audit: new MemoryAuditTrail({ capacity: 10 }), env });
    const granted = service.grant({ key: KEY, holder: "h", ttlMs: 60_000 });
    await env.advance(SECOND_MS);
    expect((await granted).entry.code).toBe("LS_OK");
  });

  it("tells the end of a lease that somebody took over before a timer could", async () => {
    const { env, service, grant, trail } = serviceWorld();
    const ended: bigint[] = [];
    service.onExpired((record) => ended.push(record.generation));
    await grant("Operation", 10);
    env.pause(10 * SECOND_MS);
    await grant("Operation", 10, KEY.name, "heir");
    await env.advance(SECOND_MS);
    expect(ended).toEqual([1n]);
    expect((await trail()).map(({ action, holder }) => `${action} ${holder}`).sort()).toEqual([
      "expire holder",
      "grant heir",
      "grant holder",
    ]);
  });

  it("that run out are announced and audited, each once, without anybody asking", async () => {
    const { env, service, grant, trail } = serviceWorld();
    const expired: string[] = [];
    service.onExpired((record) => expired.push(record.key.name));
    for (let index = 0; index < 100; index += 1) await grant("Operation", 5, `job-${index}`);
    const kept = await grant("Operation", 5, "kept");
    await env.advance(4 * SECOND_MS);
    await kept.renew();
    await env.advance(2 * SECOND_MS);
    expect(expired).toHaveLength(100);
    expect((await trail()).filter(({ action }) => action === "expire")).toHaveLength(100);
    await env.advance(10 * SECOND_MS);
    expect(expired).toHaveLength(101);
  });

  it("that run out in a crowd are told in portions, even if somebody asks for a grant or a count meanwhile", async () => {
    const { env, service } = serviceWorld({ maxLiveLeases: 20_000 });
    const tell = (index: number): Promise<unknown> =>
      service.grant({ key: { tenant: "default", name: `job-${index}` }, holder: "h", ttlMs: 5_000 });
    await Promise.all(Array.from({ length: 5_000 }, (_, index) => tell(index)));
    let told = 0;
    service.onExpired(() => {
      told += 1;
    });
    env.pause(5_000);
    await tell(5_000);
    expect(told).toBe(0);
    expect(service.liveLeases()).toBe(5_001);
    await service.activeCount("default");
    expect(told).toBeLessThanOrEqual(2_000);
    await env.advance(100);
    expect(told).toBe(5_000);
    expect(await service.activeCount("default")).toBe(1);
  });

  it("that have just ended do not stand in the way of the tenant's limit", async () => {
    const { env, service } = serviceWorld({ maxLiveLeases: 3 });
    const take = async (name: string): Promise<string> => {
      const { entry } = await service.grant({ key: { tenant: "default", name }, holder: "h", ttlMs: 5_000 });
      return entry.code;
    };
    for (const name of ["a", "b", "c"]) expect(await take(name)).toBe("LS_OK");
    expect(await take("d")).toBe("LS_CAPACITY_EXCEEDED");
    env.pause(5_000);
    expect(await take("d")).toBe("LS_OK");
  });
});

describe("tenants", () => {
  it("that were forgotten, because too many were named since, are read again", async () => {
    const { service } = serviceWorld({ maxLiveLeases: 2, rememberedTenants: 10 });
    const take = async (tenant: string, name: string): Promise<string> => {
      const { entry } = await service.grant({ key: { tenant, name }, holder: "h", ttlMs: 60_000 });
      return entry.code;
    };
    await take("mine", "a");
    await take("mine", "b");
    for (let index = 0; index < 100; index += 1) await service.activeCount(`tenant-${index}`);
    expect(await service.activeCount("mine")).toBe(2);
    expect(await take("mine", "c")).toBe("LS_CAPACITY_EXCEEDED");
  });

  it("never see or touch each other's leases of the same name", async () => {
    const { service } = serviceWorld();
    const mine = await service.grant({ key: { tenant: "mine", name: "job" }, holder: "h", ttlMs: 60_000 });
    const theirs = await service.grant({
      key: { tenant: "theirs", name: "job" },
      holder: "h",
      ttlMs: 60_000,
    });
    expect([mine.entry.code, theirs.entry.code]).toEqual(["LS_OK", "LS_OK"]);
    await service.revoke({ key: { tenant: "theirs", name: "job" } });
    expect((await service.get({ tenant: "mine", name: "job" }))?.live).toBe(true);
    const listed = await service.list({ tenant: "mine", prefix: "", limit: 10 });
    expect(listed.leases.map(({ key }) => key.tenant)).toEqual(["mine"]);
  });
});

describe("the gate for steps of a work order", () => {
  function gateWorld() {
    const world = serviceWorld();
    const gate = new LeaseGate({ service: world.service, env: world.env, drift: DEFAULT_DRIFT });
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
    await service.release({ key: KEY, holder: "second", token: second.token });
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
    const renewed = await service.renew({ key: KEY, holder: "holder", token: "guess", ttlMs: 1_000 });
    const released = await service.release({ key: KEY, holder: "holder", token: "guess" });
    expect([ran, renewed.entry.allowed, released.entry.allowed]).toEqual([0, false, false]);
    expect((await service.get(KEY))?.live).toBe(true);
  });

  it("does not start a step whose permission arrived too late", async () => {
    const env = new ManualEnv();
    const manager = new MemoryLeaseManager({ env });
    const service = new LeaseService({ manager, audit: new MemoryAuditTrail({ capacity: 10 }), env });
    const { outcome } = await service.grant({ key: KEY, holder: "holder", ttlMs: 10_000 });
    if (outcome.kind !== "applied") throw new Error("granted");
    const gate = new LeaseGate({ service, env, drift: DEFAULT_DRIFT });
    const use = service.use.bind(service);
    service.use = async (request, context) => {
      const reply = await use(request, context);
      await env.advance(10_000);
      return reply;
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
