/** What an operator does to the records themselves over HTTP: deleting ended ones, replacing damaged ones. */
import type { LeaseKey } from "solehold";
import { connect as connectLeases } from "solehold";
import { describe, expect, it, onTestFinished } from "vitest";
import { bearer, keyedServer } from "./support/keys.ts";
import { expectProblem } from "./support/problem.ts";
import { type TestServer, testServer } from "./support/server.ts";

const DAMAGED = { kind: "corrupt", version: "1", detail: "not JSON" };

/** The record of "bad" is one that cannot be read, until it is written anew. */
async function damage({ server, lease }: TestServer): Promise<void> {
  await lease("acquire", { name: "bad", holder: "h", token: "t" });
  const { store } = server.service.executor;
  const { read, apply } = store;
  let isDamaged = true;
  const isBad = ({ name }: LeaseKey): boolean => isDamaged && name === "bad";
  Object.assign(store, {
    read: async (keys: readonly LeaseKey[]) => {
      const reply = await read(keys);
      return { ...reply, records: keys.map((key, at) => (isBad(key) ? DAMAGED : reply.records[at])) };
    },
    apply: async (writes: Parameters<typeof apply>[0]) => {
      if (!writes.some(({ key }) => isBad(key))) return await apply(writes);
      const isRepair = writes.every(({ expected }) => expected === DAMAGED.version);
      if (!isRepair)
        return { storeTimeMs: null, results: writes.map(() => ({ kind: "conflict", current: DAMAGED })) };
      isDamaged = false;
      const stored = (await read(writes.map(({ key }) => key))).records;
      return await apply(
        writes.map((write, at) => {
          const found = stored[at];
          return { ...write, expected: found?.kind === "found" ? found.version : null };
        }),
      );
    },
  });
}

describe("POST /v1/maintenance/repair", () => {
  it("replaces a damaged record once, above all fences by the store's time, and is in the audit", async () => {
    const server = await testServer();
    await damage(server);
    expect((await server.get("/v1/lease?name=bad")).body.reason).toBe("RECORD_CORRUPT");
    const { status, body } = await server.post("/v1/maintenance/repair", { name: "bad" });
    expect([status, body.repaired]).toEqual([200, true]);
    expect(BigInt(body.generation)).toBeGreaterThan(BigInt(Date.now() - 60_000) * 1_000n);
    const again = await server.post("/v1/maintenance/repair", { name: "bad" });
    expect(again.body.repaired).toBe(false);
    const granted = await server.lease("acquire", { name: "bad", holder: "next" });
    expect(granted.status).toBe(200);
    expect(BigInt(granted.body.lease.generation)).toBeGreaterThan(BigInt(body.generation));
    const { body: audit } = await server.get("/v1/audit?name=bad&action=repair");
    expect(audit.entries).toEqual([
      expect.objectContaining({
        ...{ allowed: true, outcome: "applied", detail: { generation: body.generation } },
        ...{ caller: "local", address: "127.0.0.1" },
      }),
    ]);
  });

  it("takes a generation, refuses one that is none, and works through the SDK's executor", async () => {
    const server = await testServer();
    await damage(server);
    for (const generation of ["-1", "1e9", "99999999999999999999"]) {
      const refused = await server.post("/v1/maintenance/repair", { name: "bad", generation });
      expect([refused.status, refused.body.field]).toEqual([400, "generation"]);
    }
    const leases = await connectLeases(server.url);
    onTestFinished(async () => await leases.close());
    const executor = leases.executor as unknown as {
      repair(key: LeaseKey, generation?: bigint): Promise<boolean>;
    };
    expect(await executor.repair({ tenant: "default", name: "bad" }, 41n)).toBe(true);
    expect(await executor.repair({ tenant: "default", name: "bad" })).toBe(false);
    expect((await server.lease("acquire", { name: "bad", holder: "next" })).status).toBe(200);
  });

  it("needs a generation where the store has no clock", async () => {
    const server = await testServer();
    const { store } = server.server.service.executor;
    Object.assign(store, { capabilities: { ...store.capabilities, clock: "none" } });
    const refused = await server.post("/v1/maintenance/repair", { name: "bad" });
    expectProblem(refused, 400, "INPUT_SCHEMA_INVALID", "LS_INVALID");
    expect(refused.body.detail).toMatch(/^generation is missing: this store has no clock/);
  });
});

describe("POST /v1/maintenance/collect", () => {
  it("makes one pass over a tenant", async () => {
    const { post, lease } = await testServer();
    await lease("acquire", { name: "a", holder: "h" });
    const { status, body } = await post("/v1/maintenance/collect", {});
    expect([status, body]).toEqual([200, { tenant: "default", scanned: 1, deleted: 0 }]);
  });

  it("says why nothing is deleted from a store that cannot", async () => {
    const { server, post } = await testServer();
    const { store } = server.service.executor;
    Object.assign(store, { capabilities: { ...store.capabilities, clock: "none" } });
    const refused = await post("/v1/maintenance/collect", {});
    expectProblem(refused, 501, "STORE_CANNOT", "LS_UNAVAILABLE");
    expect(refused.body.detail).toMatch(/^ended records are kept for ever: the memory store has no clock/);
  });

  it("needs a key for the action, the tenant, and all of its names", async () => {
    const server = await keyedServer([
      { actions: ["collect"], tenants: ["mine"] },
      { actions: ["read"] },
      { actions: ["collect"], prefixes: ["a/"] },
    ]);
    const [mine, reader, prefixed] = server.keys.map(bearer);
    const collect = async (tenant: string, headers?: Record<string, string>): Promise<number> =>
      (await server.post("/v1/maintenance/collect", { tenant }, headers)).status;
    expect(await collect("mine", mine)).toBe(200);
    expect(await collect("theirs", mine)).toBe(403);
    expect(await collect("default", reader)).toBe(403);
    expect(await collect("default", prefixed)).toBe(403);
  });
});

describe("POST /v1/maintenance/doctor", () => {
  it("finds what is wrong with the store, on keys that are gone afterwards", async () => {
    const server = await testServer();
    const fine = await server.post("/v1/maintenance/doctor", {});
    expect(fine.body.ok).toBe(true);
    expect(fine.body.checks.map(({ id }: { id: string }) => id)).toEqual([
      ...["store", "durability", "collection", "fences", "compare-and-swap", "exclusion", "listing"],
      ...["notifications", "clock", "damage", "clean-up"],
    ]);
    expect((await server.get("/v1/leases")).body.leases).toEqual([]);
    const { store } = server.server.service.executor;
    const { apply } = store;
    // It takes every write for one on the current version.
    Object.assign(store, {
      apply: async (writes: Parameters<typeof apply>[0]) => {
        const { records } = await store.read(writes.map(({ key }) => key));
        return await apply(
          writes.map((write, at) => {
            const found = records[at];
            return { ...write, expected: found?.kind === "found" ? found.version : null };
          }),
        );
      },
    });
    const { body } = await server.post("/v1/maintenance/doctor", {});
    expect(body.ok).toBe(false);
    expect(body.checks).toContainEqual(
      expect.objectContaining({
        id: "compare-and-swap",
        status: "fail",
        detail: expect.stringContaining("do not use"),
      }),
    );
  });

  it("needs a key for repairs of all names of the tenant", async () => {
    const server = await keyedServer([{ actions: ["read", "metrics"] }, { prefixes: ["a/"] }, {}]);
    const [reader, narrow, all] = server.keys.map(bearer);
    const examine = async (key: Record<string, string> | undefined) =>
      (await server.post("/v1/maintenance/doctor", {}, key)).status;
    expect([await examine(reader), await examine(narrow), await examine(all)]).toEqual([403, 403, 200]);
  });
});
