/** Commands over HTTP: what a grant brings, each refusal with its status and reason, batches, and waiting. */
import { describe, expect, it } from "vitest";
import { expectProblem, owner } from "./support/problem.ts";
import { ask, type Body, testServer } from "./support/server.ts";

describe("commands over HTTP", () => {
  it("answers a grant with all that a remote client needs to believe it", async () => {
    const { lease } = await testServer();
    const more = { note: "hi", metadata: { "build/id": "7" } };
    const { status, body } = await lease("acquire", { name: "a/b", holder: "me", ttlMs: 30_000, ...more });
    expect(status).toBe(200);
    expect(body.token).toMatch(/^[A-Za-z0-9_-]{22}$/);
    expect(body).toMatchObject({
      outcome: "applied",
      validForMs: 30_000,
      replayed: false,
      resumeFromLedgerRequired: false,
      reason: "OK_DECISION_COMPUTE",
      reasonCode: 0x4c530002,
      code: "LS_OK",
      leaseId: `default/a/b@${body.lease.generation}`,
      lease: {
        tenant: "default",
        name: "a/b",
        holder: "me",
        purpose: "Operation",
        fence: body.lease.generation.padStart(39, "0"),
        term: "1",
        state: "held",
        live: true,
        ttlMs: 30_000,
        ...more,
        reservation: null,
      },
    });
    expect(body.lease.expiresAtMs - body.lease.grantedAtMs).toBe(30_000);
  });

  it("renews, uses, resumes, hands off, and never shows the token again", async () => {
    const { lease } = await testServer();
    await lease("acquire", owner);
    const answers = [
      await lease("renew", { ...owner, ttlMs: 60_000 }),
      await lease("use", { ...owner, purpose: "Operation" }),
      await lease("resume", owner),
      await lease("break", { name: "a/b", periodMs: 5_000 }),
      await lease("handoff", { ...owner, successor: "you", withinMs: 5_000 }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    for (const { text } of answers) expect(text).not.toContain("token-of-me");
    expect(answers[0]?.body.lease.ttlMs).toBe(60_000);
    expect(answers[4]?.body.lease.handoff.successor).toBe("you");
  });

  it("renews by the lease's own ttl when it names none", async () => {
    const { lease } = await testServer();
    await lease("acquire", { ...owner, ttlMs: 600_000 });
    const { body } = await lease("renew", owner);
    expect(body).toMatchObject({ code: "LS_OK", validForMs: 600_000, lease: { ttlMs: 600_000 } });
    expect(body.lease.expiresAtMs - body.lease.renewedAtMs).toBe(600_000);
  });

  it("denies with 409, the holder, until when, and when to come back", async () => {
    const { lease } = await testServer();
    const granted = await lease("acquire", { ...owner, ttlMs: 20_000 });
    const denied = await lease("acquire", { name: "a/b", holder: "you" });
    expectProblem(denied, 409, "LEASE_HELD_BY_OTHER", "LS_HELD");
    expect(denied.body.heldBy).toBe("me");
    expect(denied.body.heldUntilMs).toBe(granted.body.lease.expiresAtMs);
    expect(denied.body.retryAfterMs).toBeLessThanOrEqual(20_000);
    expect(Number(denied.headers.get("retry-after"))).toBe(Math.ceil(denied.body.retryAfterMs / 1_000));
    expect(denied.body.detail).toBe("held by me");
  });

  it("denies everything else that a lease can be denied for with 409 and its reason", async () => {
    const { lease } = await testServer();
    expectProblem(await lease("renew", owner), 409, "LEASE_NOT_FOUND", "LS_NOT_FOUND");
    await lease("acquire", owner);
    expectProblem(
      await lease("renew", { ...owner, token: "wrong" }),
      409,
      "LEASE_TOKEN_INVALID",
      "LS_TOKEN_INVALID",
    );
    expectProblem(
      await lease("use", { ...owner, purpose: "StateWrite" }),
      409,
      "LEASE_PURPOSE_MISMATCH",
      "LS_PURPOSE_MISMATCH",
    );
    expectProblem(
      await lease("acquire", { name: "a/b", holder: "me" }),
      409,
      "LEASE_HELD_BY_SELF",
      "LS_HELD",
    );
    await lease("revoke", { name: "a/b" });
    expectProblem(await lease("revoke", { name: "a/b" }), 409, "LEASE_ALREADY_REVOKED", "LS_ALREADY_REVOKED");
    expectProblem(
      await lease("use", { ...owner, purpose: "Operation" }),
      409,
      "LEASE_REVOKED",
      "LS_STALE_USE",
    );
  });

  it("answers 412 to a caller that is fenced by a newer term or grant", async () => {
    const { lease } = await testServer({ terms: "accept" });
    await lease("acquire", { ...owner, term: "5" });
    await lease("release", owner);
    expectProblem(await lease("acquire", { ...owner, term: "4" }), 412, "LEASE_FENCED", "LS_FENCED");
    const next = await lease("acquire", { ...owner, token: "another", term: "18446744073709551615" });
    expect(next.body.lease.term).toBe("18446744073709551615");
    const fence = (2n ** 64n - 1n) * 2n ** 64n + BigInt(next.body.lease.generation);
    expect(next.body.lease.fence).toBe(String(fence).padStart(39, "0"));
  });

  it("refuses with 400 and names the field, whether a schema or core finds the mistake", async () => {
    const { lease } = await testServer();
    const cases: readonly (readonly [object, string])[] = [
      [{}, "name"],
      [{ name: "a", holder: 5 }, "holder"],
      [{ name: "a", holder: "h", ttl: 5 }, "ttl"],
      [{ name: "a", holder: "h", ttlMs: "5" }, "ttlMs"],
      [{ name: "a", holder: "h", ttlMs: 1.5 }, "ttlMs"],
      [{ name: "a", holder: "h", ttlMs: -1 }, "ttlMs"],
      [{ name: "a", holder: "h", ttlMs: 1e12 }, "ttlMs"],
      [{ name: "a", holder: "h", purpose: "Fun" }, "purpose"],
      [{ name: "", holder: "h" }, "name"],
      [{ name: "$floor", holder: "h" }, "name"],
      [{ name: "a\u0000b", holder: "h" }, "name"],
      [{ name: "x".repeat(257), holder: "h" }, "name"],
      [{ name: "a", holder: "h", tenant: "../up" }, "tenant"],
      [{ name: "a", holder: "h", term: "-1" }, "term"],
      [{ name: "a", holder: "h", term: "99999999999999999999" }, "term"],
      [{ name: "a", holder: "h", token: "with space" }, "token"],
      [{ name: "a", holder: "h", waitMs: -5 }, "waitMs"],
      [{ name: "a", holder: "h", waitMs: 10_000_000 }, "waitMs"],
      [{ name: "a", holder: "h", priority: 101 }, "priority"],
      [{ name: "a", holder: "h", priority: -1 }, "priority"],
      [{ name: "a", holder: "h", slots: 0 }, "slots"],
      [{ name: "a", holder: "h", slots: 257 }, "slots"],
      [{ name: "a", holder: "h", holdAtLeastMs: -1 }, "holdAtLeastMs"],
      [{ name: "a", holder: "h", lockDelayMs: "5s" }, "lockDelayMs"],
      [{ name: "a", holder: "h", idempotencyKey: "\n" }, "idempotencyKey"],
    ];
    for (const [body, field] of cases) {
      const answer = await lease("acquire", body);
      expect({ body, status: answer.status, field: answer.body.field }).toEqual({ body, status: 400, field });
      expect(answer.body.detail.startsWith(`${field} `)).toBe(true);
      expect(answer.body.code).toBe("LS_INVALID");
    }
  });

  it("replays the same grant for the same idempotency key, and refuses another request under it", async () => {
    const { lease } = await testServer();
    const request = { name: "a/b", holder: "me", ttlMs: 30_000, idempotencyKey: "once" };
    const first = await lease("acquire", request);
    const second = await lease("acquire", request);
    expect(second.body).toMatchObject({
      token: first.body.token,
      replayed: true,
      lease: { generation: first.body.lease.generation },
    });
    const other = await lease("acquire", { ...request, ttlMs: 40_000 });
    expectProblem(other, 400, "IDEMPOTENCY_KEY_REUSED", "LS_INVALID");
    expect(other.body.field).toBe("idempotencyKey");
  });

  it("renews many leases in one call, each answered on its own", async () => {
    const { lease } = await testServer();
    for (const name of ["a", "b"]) await lease("acquire", { ...owner, name });
    const leases = [
      { ...owner, name: "a", ttlMs: 50_000 },
      { ...owner, name: "b", token: "wrong" },
      { ...owner, name: "c" },
      { ...owner, name: 7 },
      null,
    ];
    const { status, body } = await lease("renew", { leases });
    expect(status).toBe(200);
    const results = body.results.map((each: Body) => [each.status, each.body.reason]);
    expect(results).toEqual([
      [200, "OK_DECISION_COMPUTE"],
      [409, "LEASE_TOKEN_INVALID"],
      [409, "LEASE_NOT_FOUND"],
      [400, "INPUT_SCHEMA_INVALID"],
      [400, "INPUT_SCHEMA_INVALID"],
    ]);
    expect(body.results[3]?.body.field).toBe("name");
    expect((await lease("renew", { leases: [] })).body.field).toBe("leases");
    expect((await lease("renew", { leases: "all" })).body.field).toBe("leases");
  });

  it("grants several names in one call, each with its own fence and token, in the order given", async () => {
    const { lease } = await testServer();
    const { status, body } = await lease("acquire/all", { names: ["b", "a"], holder: "me", ttlMs: 30_000 });
    expect(status).toBe(200);
    expect(body.grants.map(({ lease: own, code }: Body) => [own.name, code])).toEqual([
      ["b", "LS_OK"],
      ["a", "LS_OK"],
    ]);
    for (const { lease: own, token } of body.grants)
      expect((await lease("renew", { name: own.name, holder: "me", token })).body.lease.fence).toBe(
        own.fence,
      );
  });

  it("grants none of several when one is denied, says which, and asks for no name after it", async () => {
    const { lease, get } = await testServer();
    await lease("acquire", { ...owner, name: "b", ttlMs: 20_000 });
    const denied = await lease("acquire/all", { names: ["c", "b", "a"], holder: "you" });
    expectProblem(denied, 409, "LEASE_HELD_BY_OTHER", "LS_HELD");
    expect(denied.body).toMatchObject({ name: "b", heldBy: "me" });
    expect(Number(denied.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await get("/v1/lease?name=a")).body.state).toBe("released");
    expect((await get("/v1/lease?name=c")).status).toBe(404);
  });

  it("releases no name of several that a repeat of the request was granted, too", async () => {
    const { lease } = await testServer();
    const request = { holder: "you", ttlMs: 20_000, idempotencyKey: "once" };
    const first = await lease("acquire/all", { ...request, names: ["a"] });
    await lease("acquire", { ...owner, name: "b" });
    const denied = await lease("acquire/all", { ...request, names: ["a", "b"] });
    expect([denied.status, denied.body.name]).toEqual([409, "b"]);
    const { token } = first.body.grants[0];
    expect((await lease("renew", { name: "a", holder: "you", token })).status).toBe(200);
    await lease("release", { ...owner, name: "b" });
    const both = await lease("acquire/all", { ...request, names: ["a", "b"] });
    expect(both.body.grants.map(({ replayed }: Body) => replayed)).toEqual([true, false]);
  });

  it.each([
    [{ names: [] }, "names"],
    [{ names: ["a", "b", "a"] }, "names"],
    [{ names: "a" }, "names"],
    [{ names: Array.from({ length: 101 }, (_, index) => `n${index}`) }, "names"],
    [{ names: ["a", ""] }, "name"],
    [{ names: ["a", "b"], name: "c" }, "name"],
    [{ names: ["a", "b"], waitMs: 100 }, "waitMs"],
    [{ names: ["a", "b"], holdAtLeastMs: 100 }, "holdAtLeastMs"],
    [{ names: ["a", "b"], ttlMs: -1 }, "ttlMs"],
  ])("refuses %j, and grants nothing", async (wrong, field) => {
    const { lease, get } = await testServer();
    const refused = await lease("acquire/all", { holder: "me", ...wrong });
    expect([refused.status, refused.body.field]).toEqual([400, field]);
    expect((await get("/v1/leases")).body.leases).toEqual([]);
  });

  it("grants a name as often as it has slots, and lists them as parts of that name", async () => {
    const { lease, get } = await testServer();
    const ask = (holder: string): Promise<{ status: number; body: Body }> =>
      lease("acquire", { name: "gpu", holder, slots: 2 });
    const answers = [await ask("a"), await ask("b"), await ask("c")];
    expect(answers.map(({ status, body }) => [status, body.lease?.slot ?? body.reason]).sort()).toEqual([
      [200, 0],
      [200, 1],
      [409, "LEASE_HELD_BY_OTHER"],
    ]);
    const { leases } = (await get("/v1/leases")).body;
    expect(leases.map(({ slotOf, slot, holder }: Body) => [slotOf, slot, holder])).toEqual(
      answers
        .slice(0, 2)
        .map(({ body: { lease: own } }) => ["gpu", own.slot, own.holder])
        .sort(),
    );
  });

  it("keeps a name closed for its minimum hold, and says until when", async () => {
    const { lease } = await testServer();
    const granted = await lease("acquire", { ...owner, holdAtLeastMs: 60_000 });
    await lease("release", owner);
    const denied = await lease("acquire", { name: "a/b", holder: "you" });
    expectProblem(denied, 409, "LEASE_LOCK_DELAY", "LS_HELD");
    expect(denied.body).toMatchObject({
      heldBy: null,
      heldUntilMs: granted.body.lease.grantedAtMs + 60_000,
    });
  });

  it("denies one lease too many for a tenant with 429", async () => {
    const { lease } = await testServer({ leasesPerTenant: "2" });
    await lease("acquire", { name: "a", holder: "h" });
    await lease("acquire", { name: "b", holder: "h" });
    const third = await lease("acquire", { name: "c", holder: "h" });
    expectProblem(third, 429, "CAPACITY_EXCEEDED", "LS_CAPACITY_EXCEEDED");
    expect(third.headers.get("retry-after")).toBe("1");
    expect((await lease("acquire", { tenant: "other", name: "c", holder: "h" })).status).toBe(200);
  });

  it("answers 503 with the outcome when the store is down", async () => {
    const { server, lease, get } = await testServer();
    await server.service.executor.close();
    const answer = await lease("acquire", owner);
    expectProblem(answer, 503, "INTERNAL_PIPELINE_ERROR", "LS_UNAVAILABLE");
    expect(answer.body.outcome).toBe("not-applied");
    expect(answer.headers.get("retry-after")).toBe("1");
    for (const path of ["/v1/lease?name=a", "/v1/leases", "/readyz"]) {
      const read = await get(path);
      expectProblem(read, 503, "STORE_UNAVAILABLE", "LS_UNAVAILABLE");
    }
    expect((await get("/healthz")).status).toBe(200);
  });
});

describe("waiting over HTTP", () => {
  it("waits, shows the queue, and grants when the lease is released", async () => {
    const { lease, get, server } = await testServer();
    await lease("acquire", owner);
    const waiting = lease("acquire", { name: "a/b", holder: "you", waitMs: 20_000, ttlMs: 30_000 });
    const impatient = await lease("acquire", { name: "a/b", holder: "them", waitMs: 50 });
    expectProblem(impatient, 409, "LEASE_HELD_BY_OTHER", "LS_HELD");
    expect(impatient.body.heldBy).toBe("me");
    const line = await get("/v1/queue?name=a/b");
    expect(line.body).toMatchObject({ waiting: 1, heldBy: "me" });
    expect(line.body.waiters[0]).toMatchObject({ position: 0, holder: "you" });
    await lease("release", owner);
    const granted = await waiting;
    expect([granted.status, granted.body.lease.holder]).toEqual([200, "you"]);
    expect(granted.body.waitedMs).toBeGreaterThan(0);
    expect(granted.body.validForMs).toBe(30_000);
    expect(server.queue.size).toBe(0);
  });

  it("serves the higher priority first", async () => {
    const { lease, get } = await testServer();
    await lease("acquire", owner);
    const ask = (holder: string, priority?: number): Promise<{ body: Body }> =>
      lease("acquire", {
        name: "a/b",
        holder,
        waitMs: 20_000,
        ...(priority === undefined ? {} : { priority }),
      });
    const holders = async (): Promise<string[]> =>
      (await get("/v1/queue?name=a/b")).body.waiters.map(({ holder }: { holder: string }) => holder);
    const plain = ask("plain");
    await expect.poll(holders).toEqual(["plain"]);
    const preferred = ask("preferred", 9);
    await expect.poll(holders).toEqual(["preferred", "plain"]);
    await lease("release", owner);
    const { token } = (await preferred).body;
    expect(await holders()).toEqual(["plain"]);
    await lease("release", { name: "a/b", holder: "preferred", token });
    expect((await plain).body.lease.holder).toBe("plain");
  });

  it("forgets a waiter whose connection breaks, and serves the next", async () => {
    const { lease, server, url } = await testServer();
    await lease("acquire", owner);
    const abort = new AbortController();
    const dead = ask(`${url}/v1/leases/acquire`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ name: "a/b", holder: "dead", waitMs: 20_000 }),
      signal: abort.signal,
    }).catch(() => null);
    while (server.queue.size < 1) await new Promise((resolve) => setTimeout(resolve, 5));
    const living = lease("acquire", { name: "a/b", holder: "living", waitMs: 20_000 });
    while (server.queue.size < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    abort.abort();
    await dead;
    while (server.queue.size > 1) await new Promise((resolve) => setTimeout(resolve, 5));
    await lease("release", owner);
    expect((await living).body.lease.holder).toBe("living");
  });
});
