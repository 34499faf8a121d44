/** The reason code of each decision: the vectors of the lease service and its invariants, at their exact instants. */
import { describe, expect, it } from "vitest";
import type { Purpose } from "../../src/core/index.ts";
import { KEY, SECOND_MS, seen, serviceWorld } from "./world.ts";

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
    const before = await service.read(KEY);
    expect(await lease.renew()).toBe("LS_EXPIRED");
    expect(await service.read(KEY)).toEqual(before);
  });

  it("renewing sets the expiry to now + ttl and keeps when it was granted", async () => {
    const { env, service, grant } = serviceWorld();
    const lease = await grant("Operation", 60);
    const granted = await service.read(KEY);
    await env.advance(50 * SECOND_MS);
    await lease.renew();
    const renewed = await service.read(KEY);
    expect(renewed?.grantedAtMs).toBe(granted?.grantedAtMs);
    expect(renewed?.expiresAtMs).toBe((granted?.grantedAtMs ?? 0) + 110 * SECOND_MS);
  });

  it("of what is not there is LS_NOT_FOUND, of what is revoked LS_ALREADY_REVOKED even when expired", async () => {
    const { env, service, grant } = serviceWorld();
    const nowhere = { tenant: "default", name: "nowhere" };
    const missing = await service.execute({
      op: "renew",
      key: nowhere,
      holder: "h",
      token: "t",
      ttlMs: 1_000,
    });
    expect(seen(missing, "renew").code).toBe("LS_NOT_FOUND");
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
    const unknown = await service.execute({
      op: "use",
      key: nowhere,
      holder: "h",
      token: "t",
      purpose: "Operation",
    });
    expect(seen(unknown, "use").code).toBe("LS_STALE_USE");
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
      expect((await service.read({ tenant: "default", name: `of-${purpose}` }))?.purpose).toBe(purpose);
      expect(await lease.use(purpose)).toBe("LS_OK");
    }
  });

  it("refuses a purpose that is none, naming the field", async () => {
    const { service } = serviceWorld();
    const outcome = await service.execute({
      op: "acquire",
      key: KEY,
      holder: "h",
      purpose: "Party" as Purpose,
      ttlMs: 1_000,
    });
    expect(outcome).toMatchObject({ kind: "refused", decision: { kind: "refused", field: "purpose" } });
  });
});
