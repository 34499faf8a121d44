import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { type ConditionalWrite, connect as connectLeases, type LeaseKey, type ListQuery } from "solehold";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Answer, ask, type Body, testServer } from "./support/server.ts";

const owner = { name: "a/b", holder: "me", token: "token-of-me" };

function expectProblem(answer: Answer, status: number, reason: string, code: string): void {
  expect({ status: answer.status, reason: answer.body.reason, code: answer.body.code }).toEqual({
    status,
    reason,
    code,
  });
  expect(answer.headers.get("content-type")).toBe("application/problem+json; charset=utf-8");
  expect(answer.body.status).toBe(status);
  expect(answer.body.type).toBe(`urn:solehold:problem:${reason.toLowerCase().replaceAll("_", "-")}`);
  expect(answer.body.reasonCode).toBeTypeOf("number");
  expect(answer.body.traceId).toMatch(/^[0-9a-f]{32}$/);
  expect(answer.body.detail.length).toBeGreaterThan(5);
}

describe("commands over HTTP", () => {
  it("answers a grant with all that a remote client needs to believe it", async () => {
    const { lease } = await testServer();
    const { status, body } = await lease("acquire", { name: "a/b", holder: "me", ttlMs: 30_000, note: "hi" });
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
      leaseId: "default/a/b@1",
      lease: {
        tenant: "default",
        name: "a/b",
        holder: "me",
        purpose: "Operation",
        fence: "1".padStart(39, "0"),
        term: "0",
        generation: "1",
        state: "held",
        live: true,
        ttlMs: 30_000,
        note: "hi",
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

  it("answers 412 to who is fenced by a newer term or grant", async () => {
    const { lease } = await testServer({ terms: "accept" });
    await lease("acquire", { ...owner, term: "5" });
    await lease("release", owner);
    expectProblem(await lease("acquire", { ...owner, term: "4" }), 412, "LEASE_FENCED", "LS_FENCED");
    const next = await lease("acquire", { ...owner, token: "another", term: "18446744073709551615" });
    expect(next.body.lease.term).toBe("18446744073709551615");
    expect(next.body.lease.fence).toBe(String((2n ** 64n - 1n) * 2n ** 64n + 2n).padStart(39, "0"));
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
      lease: { generation: "1" },
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
    await server.service.manager.close();
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

describe("a damaged record", () => {
  it("is reported as such to readers and to who asks for the lease, and hurts nobody else", async () => {
    const { server, url, lease, get } = await testServer();
    const { store } = server.service.manager;
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
        const page = await list(query);
        const key = { tenant: query.tenant, name: "bad" };
        return "bad".startsWith(query.prefix) ? { ...page, corrupt: [{ key, ...damaged }] } : page;
      },
    });
    expectProblem(await get("/v1/lease?name=bad"), 409, "RECORD_CORRUPT", "LS_CORRUPT");
    const leases = await connectLeases(url);
    onTestFinished(async () => await leases.close());
    const meant = { name: "CorruptRecordError", key: { tenant: "default", name: "bad" }, ...damaged };
    await expect(leases.inspect("bad")).rejects.toMatchObject(meant);
    await expect(server.service.manager.get(meant.key)).rejects.toMatchObject(meant);
    await expect(leases.inspect("bad")).rejects.toThrow(
      /default\/bad \(version 1\) is damaged: not JSON.*repair\(/,
    );
    const refused = await lease("acquire", { name: "bad", holder: "h" });
    expectProblem(refused, 400, "RECORD_CORRUPT", "LS_CORRUPT");
    expect(refused.body.field).toBe("name");
    expect((await get("/v1/leases")).body.corrupt).toEqual([{ name: "bad", detail: "not JSON" }]);
    expect((await lease("acquire", { name: "good", holder: "h" })).status).toBe(200);
  });
});

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
    expect((await get("/v1/audit?tenant=*")).body.entries.length).toBe(3);
    const newest = await get("/v1/audit?order=newest-first&limit=1&name=a/b&action=grant&after=1");
    expect(newest.body.entries.map(({ sequence }: Body) => sequence)).toEqual([2]);
    expect((await get("/v1/audit?limit=0")).body.field).toBe("limit");
    expect((await get("/v1/audit/verify")).body).toMatchObject({ ok: true, entries: 3 });
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
    const request = {
      tenant: "default",
      key: "k",
      holder: "h",
      purpose: "p",
      tier: "Risky",
      action: "revoke",
      ttlMs: 0,
      nonce: "n".repeat(16),
    };
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

describe("the HTTP around it", () => {
  it("keeps the caller's trace, and names its own span in it", async () => {
    const { get } = await testServer();
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    const answer = await get("/v1/lease?name=none", { traceparent: `00-${traceId}-b7ad6b7169203331-01` });
    expect(answer.body.traceId).toBe(traceId);
    expect(answer.headers.get("traceparent")).toMatch(
      new RegExp(`^00-${traceId}-(?!b7ad6b7169203331)[0-9a-f]{16}-01$`),
    );
    const fresh = await get("/v1/lease?name=none", { traceparent: "not a trace" });
    expect(fresh.body.traceId).toMatch(/^[0-9a-f]{32}$/);
  });

  it("puts the trace of a request into the audit", async () => {
    const { lease, get } = await testServer();
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    await lease("acquire", owner, { traceparent: `00-${traceId}-b7ad6b7169203331-01` });
    expect((await get("/v1/audit")).body.entries[0]?.traceId).toBe(traceId);
  });

  it("says what is wrong with a request that no route can take", async () => {
    const { get, post, url } = await testServer({ bodyLimitBytes: "1024" });
    expectProblem(await get("/nowhere"), 404, "ROUTE_NOT_FOUND", "LS_INVALID");
    const method = await get("/v1/leases/acquire");
    expectProblem(method, 405, "METHOD_NOT_ALLOWED", "LS_INVALID");
    expect(method.headers.get("allow")).toBe("POST");
    const acquire = "/v1/leases/acquire";
    expectProblem(await post(acquire, "{not json"), 400, "INPUT_SCHEMA_INVALID", "LS_INVALID");
    expectProblem(await post(acquire, ""), 400, "INPUT_SCHEMA_INVALID", "LS_INVALID");
    expectProblem(await post(acquire, "[]"), 400, "INPUT_SCHEMA_INVALID", "LS_INVALID");
    expectProblem(
      await post(acquire, '{"__proto__":{"name":"x"}}'),
      400,
      "INPUT_SCHEMA_INVALID",
      "LS_INVALID",
    );
    expectProblem(await post(acquire, { name: "x".repeat(2_000) }), 413, "BODY_TOO_LARGE", "LS_INVALID");
    const plain = await post(acquire, "{}", { "content-type": "text/plain" });
    expectProblem(plain, 415, "MEDIA_TYPE_UNSUPPORTED", "LS_INVALID");
    expect(plain.body.field).toBe("content-type");
    const form = await ask(`${url}${acquire}`, { method: "POST", body: new URLSearchParams({ name: "a" }) });
    expect(form.status).toBe(415);
  });

  it("answers bytes that are not HTTP with a problem, and closes", async () => {
    const { url } = await testServer();
    const reply = await new Promise<string>((resolve, reject) => {
      const socket = connect(Number(new URL(url).port), "127.0.0.1", () => socket.write("HELLO\r\n\r\n"));
      let text = "";
      socket.on("data", (chunk) => {
        text += chunk;
      });
      socket.on("end", () => resolve(text));
      socket.on("error", reject);
    });
    expect(reply).toMatch(/^HTTP\/1\.1 400 /);
    expect(JSON.parse(reply.split("\r\n\r\n")[1] ?? "").field).toBe("request");
  });

  it("serves a page that says what runs here, with lines that work when pasted", async () => {
    const { get, post, url } = await testServer();
    const page = await get("/");
    expect(page.headers.get("content-type")).toMatch(/^text\/html/);
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(page.text).toContain("memory store");
    const lines = [...page.text.matchAll(/<code>(curl.*?)<\/code>/g)].map(([, line = ""]) =>
      line.replaceAll("&quot;", '"').replaceAll("&amp;", "&"),
    );
    const statuses: number[] = [];
    for (const line of lines) {
      const [, path = "", body = ""] = new RegExp(`${url}(/[^ ]*) -d '(.*)'$`).exec(line) ?? [];
      if (body !== "") statuses.push((await post(path, JSON.parse(body.replace("60000", "1")))).status);
    }
    expect(statuses).toEqual([200, 409, 409, 200]);
    expect(lines.filter((line) => line.includes("/v1/watch?") || line.includes("/v1/audit?")).length).toBe(2);
  });

  it("is healthy and ready", async () => {
    const { get } = await testServer();
    expect((await get("/healthz")).body).toEqual({ status: "ok" });
    expect((await get("/readyz")).body).toMatchObject({ status: "ready", store: "memory" });
  });

  it("closes connections beyond the limit at once", async () => {
    const { url } = await testServer({ connectionLimit: "2" });
    const { port } = new URL(url);
    const open = (): Promise<boolean> =>
      new Promise((resolve) => {
        const socket = connect(Number(port), "127.0.0.1");
        socket.on("close", () => resolve(false));
        socket.on("error", () => resolve(false));
        socket.write("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
        socket.on("data", () => resolve(true));
      });
    expect(await Promise.all([open(), open(), open()])).toEqual([true, true, false]);
  });

  it("only answers to loopback host names while it has no keys, and never to pages of other origins", async () => {
    const { url } = await testServer();
    const status = (headers: Record<string, string>): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const request = httpRequest(`${url}/v1/leases`, { headers }, (response) => {
          response.resume();
          resolve(response.statusCode);
        });
        request.on("error", reject);
        request.end();
      });
    const host = new URL(url).host;
    expect(await status({ host })).toBe(200);
    expect(await status({ host: "localhost" })).toBe(200);
    expect(await status({ host: "rebound.example" })).toBe(403);
    expect(await status({ host, origin: `http://${host}` })).toBe(200);
    expect(await status({ host, origin: "https://evil.example" })).toBe(403);
    expect(await status({ host, origin: "null" })).toBe(403);
  });
});

describe("waiting over HTTP", () => {
  it("waits, shows the line, and grants when the lease is given back", async () => {
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
    expect([granted.status, granted.body.lease.generation]).toEqual([200, "2"]);
    expect(granted.body.waitedMs).toBeGreaterThanOrEqual(50);
    expect(granted.body.validForMs).toBe(30_000);
    expect(server.queue.size).toBe(0);
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
    expect((await living).body.lease.generation).toBe("2");
  });
});
