/** Reading over HTTP: one lease, lists, the audit, coordinators and quorums; damaged records, stores that cannot, or lost data. */

import { connect as connectLeases, type LeaseKey, StoreError } from "solehold";
import type { ConditionalWrite, ListQuery } from "solehold/internal";
import { describe, expect, it, onTestFinished } from "vitest";
import { approval } from "./support/keys.ts";
import { expectProblem, owner } from "./support/problem.ts";
import { type Answer, type Body, testServer } from "./support/server.ts";

describe("reading over HTTP", () => {
  it("shows one lease by its name, whatever characters the name has", async () => {
    const { lease, get } = await testServer();
    for (const name of ["a/b", "a/../b", "..", "100%", "q?x=1&y#z", "ümläut/日本", "a+b c"]) {
      await lease("acquire", { name, holder: "h", token: "t" });
      const { status, body, text } = await get(`/v1/lease?name=${encodeURIComponent(name)}`);
      expect([status, body.name]).toEqual([200, name]);
      expect(text).not.toMatch(/token/i);
    }
    expectProblem(await get("/v1/lease?name=nothing"), 404, "LEASE_NOT_FOUND", "LS_NOT_FOUND");
    expect((await get("/v1/lease")).body.field).toBe("name");
    expect((await get("/v1/lease?name=%24floor")).body.field).toBe("name");
    expect((await get("/v1/lease?name=a&name=b")).body.field).toBe("name");
  });

  it("lists by prefix, holder and state, page by page", async () => {
    const { lease, get } = await testServer();
    for (const name of ["x/1", "x/2", "x/3", "y/1"]) await lease("acquire", { ...owner, name });
    await lease("release", { ...owner, name: "x/2" });
    const names = ({ body }: Answer): readonly string[] => body.leases.map(({ name }: Body) => String(name));
    expect(names(await get("/v1/leases?prefix=x/"))).toEqual(["x/1", "x/2", "x/3"]);
    expect(names(await get("/v1/leases?prefix=x/&state=held"))).toEqual(["x/1", "x/3"]);
    expect(names(await get("/v1/leases?holder=nobody"))).toEqual([]);
    const first = await get("/v1/leases?limit=3");
    expect(names(first)).toEqual(["x/1", "x/2", "x/3"]);
    const second = await get(`/v1/leases?limit=3&cursor=${encodeURIComponent(first.body.next)}`);
    expect([names(second), second.body.next]).toEqual([["y/1"], null]);
    for (const [query, field] of [
      ["limit=0", "limit"],
      ["limit=ten", "limit"],
      ["limit=1001", "limit"],
      ["state=dead", "state"],
      ["colour=red", "colour"],
      ["prefix=%24", "prefix"],
      [`prefix=${"x".repeat(300)}`, "prefix"],
    ]) {
      const answer = await get(`/v1/leases?${query}`);
      expect([query, answer.status, answer.body.field]).toEqual([query, 400, field]);
    }
  });

  it("shows the audit of a tenant, and proves it", async () => {
    const { lease, get } = await testServer();
    await lease("acquire", owner);
    await lease("acquire", { name: "a/b", holder: "you" });
    await lease("acquire", { tenant: "other", name: "z", holder: "you" });
    const { body, text } = await get("/v1/audit");
    expect(body.entries.map(({ action, holder, allowed }: Body) => [action, holder, allowed])).toEqual([
      ["grant", "me", true],
      ["grant", "you", false],
    ]);
    expect(text).not.toContain("token-of-me");
    // The first entry is the server's start.
    expect((await get("/v1/audit?tenant=*")).body.entries.length).toBe(4);
    const newest = await get("/v1/audit?order=newest-first&limit=1&name=a/b&action=grant&after=2");
    expect(newest.body.entries.map(({ sequence }: Body) => sequence)).toEqual([3]);
    const pages = [await get("/v1/audit?tenant=*&limit=3"), await get("/v1/audit?tenant=*&limit=3&after=3")];
    expect(pages.map(({ body: { next, head } }) => [next, head.sequence])).toEqual([
      [3, 4],
      [null, 4],
    ]);
    expect((await get("/v1/audit?limit=0")).body.field).toBe("limit");
    expect((await get("/v1/audit/verify")).body).toMatchObject({ ok: true, entries: 4 });
  });

  it("selects a coordinator and verifies a quorum", async () => {
    const { post } = await testServer();
    const candidates = [
      { nodeId: "node-a", weight: 10 },
      { nodeId: "node-b", weight: 5 },
      { nodeId: "node-c", weight: "8" },
    ];
    const chosen = await post("/v1/coordinator/select", {
      leaseId: "lease-1",
      candidates,
      algorithm: "product-v1",
    });
    expect([chosen.status, chosen.body.selected]).toEqual([200, "node-a"]);
    const nobody = await post("/v1/coordinator/select", { leaseId: "lease-1", candidates: [] });
    expect([nobody.status, nobody.body.coordinatorCode, nobody.body.field]).toEqual([
      400,
      "LC_NO_CANDIDATES",
      "candidates",
    ]);
    const huge = await post("/v1/coordinator/select", {
      leaseId: "x",
      candidates: [{ nodeId: "n", weight: "9".repeat(20) }],
    });
    expect([huge.status, huge.body.field]).toEqual([400, "candidates[0].weight"]);
    const request = { ...approval, tenant: "default", key: "k" };
    const missing = await post("/v1/quorum/verify", { leaseId: "l", request, approvals: [] });
    expect([missing.status, missing.body.field]).toEqual([400, "quorum"]);
    const signers = [{ signerId: "s", keys: [{ publicKey: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" }] }];
    const thresholds = { standard: 1, risky: 1, dangerous: 1 };
    const verified = await post("/v1/quorum/verify", {
      leaseId: "l",
      request,
      approvals: [],
      quorum: { signers, thresholds },
    });
    expect(verified.body).toMatchObject({ passed: false, required: 1, received: 0, quorumFrom: "request" });
    const broken = await post("/v1/quorum/verify", {
      leaseId: "l",
      request,
      approvals: [],
      quorum: { signers: [] },
    });
    expect([broken.status, String(broken.body.field).startsWith("quorum.")]).toEqual([400, true]);
  });
});

describe("a damaged record", () => {
  it("is reported as such to readers and to whoever asks for the lease, and hurts nobody else", async () => {
    const { server, url, lease, get } = await testServer();
    const { store } = server.service.executor;
    const { read, list, apply } = store;
    const damaged = { version: "1", detail: "not JSON" };
    Object.assign(store, {
      read: async (keys: readonly LeaseKey[]) => {
        const reply = await read(keys);
        const records = keys.map(({ name }, at) =>
          name === "bad" ? { kind: "corrupt", ...damaged } : reply.records[at],
        );
        return { ...reply, records };
      },
      apply: async (writes: readonly ConditionalWrite[]) => {
        if (!writes.some((write) => write.key.name === "bad")) return await apply(writes);
        const current = { kind: "corrupt", ...damaged };
        return { storeTimeMs: null, results: writes.map(() => ({ kind: "conflict", current })) };
      },
      list: async (query: ListQuery) => {
        const page = await list?.(query);
        const key = { tenant: query.tenant, name: "bad" };
        return "bad".startsWith(query.prefix) ? { ...page, corrupt: [{ key, ...damaged }] } : page;
      },
    });
    expectProblem(await get("/v1/lease?name=bad"), 409, "RECORD_CORRUPT", "LS_CORRUPT");
    const leases = await connectLeases(url);
    onTestFinished(async () => await leases.close());
    const meant = { name: "CorruptRecordError", key: { tenant: "default", name: "bad" }, ...damaged };
    await expect(leases.inspect("bad")).rejects.toMatchObject(meant);
    await expect(server.service.executor.read(meant.key)).rejects.toMatchObject(meant);
    await expect(leases.inspect("bad")).rejects.toThrow(
      /default\/bad \(version 1\) is damaged: not JSON.*repair\(/,
    );
    const refused = await lease("acquire", { name: "bad", holder: "h" });
    expectProblem(refused, 409, "RECORD_CORRUPT", "LS_CORRUPT");
    expect(refused.body.field).toBe("name");
    expect((await get("/v1/leases")).body.corrupt).toEqual([{ name: "bad", detail: "not JSON" }]);
    expect((await lease("acquire", { name: "good", holder: "h" })).status).toBe(200);
  });
});

describe("a store that cannot list its keys", () => {
  it("is named where a listing is asked for, and serves everything else", async () => {
    const { server, url, lease, get } = await testServer();
    Object.assign(server.service.executor.store, { list: undefined });
    const listing = await get("/v1/leases");
    expectProblem(listing, 501, "STORE_CANNOT", "LS_UNAVAILABLE");
    expect(listing.body.detail).toBe("the memory store cannot list its leases: ask for one by its name");
    expect((await get("/v1/replicas")).status).toBe(501);
    const leases = await connectLeases(url);
    onTestFinished(async () => await leases.close());
    await expect(leases.list().next()).rejects.toMatchObject({ name: "StoreError", kind: "config" });
    expect((await lease("acquire", { name: "a", holder: "h" })).status).toBe(200);
    expect((await get("/v1/lease?name=a")).body).toMatchObject({ holder: "h", live: true });
  });
});

describe("a store that lost acknowledged data", () => {
  it("is reported as such to readers and to whoever asks for a lease, here and through the SDK", async () => {
    const { server, url, lease, get } = await testServer();
    const lost = async (): Promise<never> => {
      throw new StoreError("data-loss", "10 records are gone", { outcome: "not-applied" });
    };
    const { read, apply } = server.service.executor.store;
    Object.assign(server.service.executor.store, { read: lost, apply: lost });
    for (const answer of [
      await get("/v1/lease?name=a"),
      await lease("acquire", { name: "a", holder: "h" }),
    ]) {
      expect(answer.status).toBe(503);
      expect(answer.body).toMatchObject({ storeError: "data-loss", code: "LS_UNAVAILABLE" });
      expect(answer.body.detail).toMatch(/lost data that it had acknowledged/);
      expect(answer.text).not.toContain("10 records are gone");
    }
    const leases = await connectLeases(url);
    onTestFinished(async () => await leases.close());
    await expect(leases.inspect("a")).rejects.toMatchObject({ name: "StoreError", kind: "data-loss" });
    const refused = leases.acquire("a", { wait: 0 });
    await expect(refused).rejects.toMatchObject({ code: "LEASE_UNAVAILABLE", cause: { kind: "data-loss" } });
    Object.assign(server.service.executor.store, { read, apply });
    // Whoever held a lease of which the record is gone may still believe in it: nothing is granted on an absence yet.
    const again = await lease("acquire", { name: "a", holder: "h" });
    expect([again.status, again.body.reason]).toEqual([412, "FENCE_WENT_BACK"]);
  });
});
