/** How many leases a tenant has: counted to the millisecond, limited, announced when they run out, and kept apart by tenant. */
import { describe, expect, it } from "vitest";
import { MemoryAuditTrail } from "../../src/audit/index.ts";
import { ManualEnv } from "../../src/env/index.ts";
import { StoreExecutor } from "../../src/executor/index.ts";
import { LeaseService } from "../../src/layers/index.ts";
import { MemoryStore } from "../../src/store/index.ts";
import { KEY, SECOND_MS, seen, serviceWorld } from "./world.ts";

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
        executor: new StoreExecutor({ store, env, policy: { generations: "count" } }),
        audit: new MemoryAuditTrail({ capacity: 100 }),
        env,
      });
    const first = make();
    await first.execute({ op: "acquire", key: { tenant: "default", name: "a" }, holder: "h", ttlMs: 60_000 });
    const second = make();
    expect(await second.activeCount("default")).toBe(1);
    await first.execute({ op: "acquire", key: { tenant: "default", name: "b" }, holder: "h", ttlMs: 60_000 });
    await env.advance(1);
    expect(await second.activeCount("default")).toBe(2);
  });

  it("beyond the tenant's limit are denied, a burst included, and another tenant is not affected", async () => {
    const { service } = serviceWorld({ maxLiveLeases: 3 });
    const burst = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        service.execute({
          op: "acquire",
          key: { tenant: "default", name: `job-${index}` },
          holder: "h",
          ttlMs: 60_000,
        }),
      ),
    );
    expect(burst.filter((outcome) => seen(outcome).allowed)).toHaveLength(3);
    expect(burst.filter((outcome) => seen(outcome).code === "LS_CAPACITY_EXCEEDED")).toHaveLength(7);
    const other = await service.execute({
      op: "acquire",
      key: { tenant: "other", name: "job" },
      holder: "h",
      ttlMs: 60_000,
    });
    expect(seen(other).code).toBe("LS_OK");
  });

  it("are granted while those of before are still being counted, if that takes long", async () => {
    const env = new ManualEnv();
    const store = new MemoryStore({ env });
    store.list = () => new Promise(() => undefined);
    const executor = new StoreExecutor({ store, env, policy: { generations: "count" } });
    const service = new LeaseService({ executor, audit: new MemoryAuditTrail({ capacity: 10 }), env });
    const granted = service.execute({ op: "acquire", key: KEY, holder: "h", ttlMs: 60_000 });
    await env.advance(SECOND_MS);
    expect(seen(await granted).code).toBe("LS_OK");
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

  it("that run out in a crowd are announced in portions, even if somebody asks for a grant or a count meanwhile", async () => {
    const { env, service } = serviceWorld({ maxLiveLeases: 20_000 });
    const tell = (index: number): Promise<unknown> =>
      service.execute({
        op: "acquire",
        key: { tenant: "default", name: `job-${index}` },
        holder: "h",
        ttlMs: 5_000,
      });
    await Promise.all(Array.from({ length: 5_000 }, (_, index) => tell(index)));
    let announced = 0;
    service.onExpired(() => {
      announced += 1;
    });
    env.pause(5_000);
    await tell(5_000);
    expect(announced).toBe(0);
    expect(service.liveLeases()).toBe(5_001);
    await service.activeCount("default");
    expect(announced).toBeLessThanOrEqual(2_000);
    await env.advance(100);
    expect(announced).toBe(5_000);
    expect(await service.activeCount("default")).toBe(1);
  });

  it("that have just ended do not stand in the way of the tenant's limit", async () => {
    const { env, service } = serviceWorld({ maxLiveLeases: 3 });
    const take = async (name: string): Promise<string> => {
      const outcome = await service.execute({
        op: "acquire",
        key: { tenant: "default", name },
        holder: "h",
        ttlMs: 5_000,
      });
      return seen(outcome).code;
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
      const outcome = await service.execute({
        op: "acquire",
        key: { tenant, name },
        holder: "h",
        ttlMs: 60_000,
      });
      return seen(outcome).code;
    };
    await take("mine", "a");
    await take("mine", "b");
    for (let index = 0; index < 100; index += 1) await service.activeCount(`tenant-${index}`);
    expect(await service.activeCount("mine")).toBe(2);
    expect(await take("mine", "c")).toBe("LS_CAPACITY_EXCEEDED");
  });

  it("are remembered up to their number: of more, the first to come is forgotten", async () => {
    const { service } = serviceWorld({ rememberedTenants: 3 });
    for (const tenant of ["a", "b", "c", "a", "d"]) await service.activeCount(tenant);
    expect(service.tenants()).toEqual(["b", "c", "d"]);
  });

  it("never see or touch each other's leases of the same name", async () => {
    const { service } = serviceWorld();
    const mine = await service.execute({
      op: "acquire",
      key: { tenant: "mine", name: "job" },
      holder: "h",
      ttlMs: 60_000,
    });
    const theirs = await service.execute({
      op: "acquire",
      key: { tenant: "theirs", name: "job" },
      holder: "h",
      ttlMs: 60_000,
    });
    expect([seen(mine).code, seen(theirs).code]).toEqual(["LS_OK", "LS_OK"]);
    await service.execute({ op: "revoke", key: { tenant: "theirs", name: "job" } });
    expect((await service.read({ tenant: "mine", name: "job" }))?.live).toBe(true);
    const listed = await service.list({ tenant: "mine", prefix: "", limit: 10 });
    expect(listed.leases.map(({ key }) => key.tenant)).toEqual(["mine"]);
  });
});
