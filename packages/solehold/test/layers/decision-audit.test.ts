/** Every decision is in the audit trail, refusals included, and so are failures. */
import { describe, expect, it } from "vitest";
import { MemoryAuditTrail } from "../../src/audit/index.ts";
import { ManualEnv } from "../../src/env/index.ts";
import { MemoryExecutor, StoreExecutor } from "../../src/executor/index.ts";
import { LeaseService } from "../../src/layers/index.ts";
import { MemoryStore, StoreError } from "../../src/store/index.ts";
import { FaultyStore } from "../executor/faulty-store.ts";
import { KEY, SECOND_MS, serviceWorld } from "./world.ts";

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
    await service.execute({ op: "revoke", key: { tenant: "default", name: "nowhere" } });
    await service.execute({ op: "renew", key: KEY, holder: "holder", token: "guess", ttlMs: 1_000 });
    await service.execute({ op: "acquire", key: KEY, holder: "", ttlMs: 1_000 });
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

  it("says who held what was denied, and until when", async () => {
    const { env, service, grant, trail } = serviceWorld();
    await grant("Operation", 60);
    await service.execute({ op: "acquire", key: KEY, holder: "other", ttlMs: 1_000 });
    const [granted, denied] = await trail();
    expect(granted?.detail).toBeUndefined();
    expect(denied?.detail).toEqual({ heldBy: "holder", heldUntilMs: env.wallMs() + 60 * SECOND_MS });
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
    const service = new LeaseService({
      executor: new MemoryExecutor({ env, policy: { generations: "count" } }),
      audit,
      env,
    });
    const outcome = await service.execute({ op: "acquire", key: KEY, holder: "h", ttlMs: 1_000 });
    expect(outcome).toMatchObject({ kind: "unsettled", outcome: "unknown" });
  });

  it("has a repair that failed, and the caller gets the store's error", async () => {
    const { service, trail } = serviceWorld();
    service.executor.repair = async () => {
      throw new StoreError("unreachable", "down", { outcome: "unknown" });
    };
    await expect(service.repair(KEY, 7n)).rejects.toMatchObject({ kind: "unreachable" });
    expect((await trail()).map(({ action, allowed, outcome }) => [action, allowed, outcome])).toEqual([
      ["repair", false, "unknown"],
    ]);
  });

  it("tells an unknown outcome from one that certainly did not happen", async () => {
    const env = new ManualEnv();
    const store = new FaultyStore(new MemoryStore({ env }));
    const audit = new MemoryAuditTrail({ capacity: 10 });
    const service = new LeaseService({
      executor: new StoreExecutor({ store, env, policy: { generations: "count" } }),
      audit,
      env,
    });
    await service.read(KEY);
    store.writeFaults = ["failed-before"];
    await service.execute({ op: "acquire", key: KEY, holder: "h", ttlMs: 1_000 });
    store.writeFaults = ["delayed", "failed-before"];
    await service.execute({ op: "acquire", key: KEY, holder: "h", ttlMs: 1_000 });
    expect((await audit.query()).map(({ outcome, allowed }) => [outcome, allowed])).toEqual([
      ["none", false],
      ["unknown", false],
    ]);
  });
});
