/** Scopes of API keys: actions, tenants and prefixes hold on every route, for watches and on the stream. */
import { ACTIONS } from "@solehold/server";
import { describe, expect, it } from "vitest";
import WebSocket from "ws";
import { ATTEMPTS, bearer, keyedServer } from "./support/keys.ts";
import type { Answer, TestServer } from "./support/server.ts";

/** The reads of a watch end with the answer's head. */
async function watchStatus(
  server: TestServer,
  query: string,
  headers: Record<string, string>,
): Promise<number> {
  const abort = new AbortController();
  const response = await fetch(`${server.url}/v1/watch?${query}`, { headers, signal: abort.signal });
  abort.abort();
  return response.status;
}

describe("scopes", () => {
  it.each(ATTEMPTS)("$title: allowed with its own action, forbidden without it", async ({ action, run }) => {
    const others = ACTIONS.filter((each) => each !== action);
    const server = await keyedServer([{ actions: [action] }, { actions: others }]);
    const where = { tenant: "default", name: "a" };
    expect((await run(server, where, bearer(server.keys[0]))).status).not.toBe(403);
    const refused = await run(server, where, bearer(server.keys[1]));
    expect([refused.status, refused.body.code]).toEqual([403, "LS_FORBIDDEN"]);
  });

  it.each(ATTEMPTS)(
    "$title: another tenant's leases cannot be touched, seen or told from nothing",
    async ({ run }) => {
      const server = await keyedServer([{}, { tenants: ["mine"] }]);
      const [admin, mine] = server.keys.map(bearer);
      const theirs = { tenant: "theirs", name: "precious", holder: "secret-holder", token: "secret-token" };
      await server.lease("acquire", { ...theirs, note: "secret-note", ttlMs: 600_000 }, admin);
      const before = (await server.get("/v1/lease?tenant=theirs&name=precious", admin)).body;
      const existing = await run(server, { tenant: "theirs", name: "precious" }, mine ?? {});
      const missing = await run(server, { tenant: "theirs", name: "nothing" }, mine ?? {});
      expect([existing.status, missing.status]).toEqual([403, 403]);
      const withoutTrace = ({ body }: Answer): object => ({ ...body, traceId: "" });
      expect(withoutTrace(existing)).toEqual(withoutTrace(missing));
      expect(existing.text).not.toMatch(/secret|precious/);
      const after = (await server.get("/v1/lease?tenant=theirs&name=precious", admin)).body;
      expect({ ...after, remainingMs: 0 }).toEqual({ ...before, remainingMs: 0 });
    },
  );

  it.each(ATTEMPTS)("$title: names outside the key's prefixes are forbidden", async ({ run }) => {
    const server = await keyedServer([{ prefixes: ["team-a/", "shared/"] }]);
    const headers = bearer(server.keys[0]);
    expect((await run(server, { tenant: "default", name: "team-b/x" }, headers)).status).toBe(403);
    expect((await run(server, { tenant: "default", name: "team-a" }, headers)).status).toBe(403);
    expect((await run(server, { tenant: "default", name: "team-a/x" }, headers)).status).not.toBe(403);
    expect((await run(server, { tenant: "default", name: "shared/x" }, headers)).status).not.toBe(403);
  });

  it("hold for listing, watching and the audit without a prefix too", async () => {
    const server = await keyedServer([{ prefixes: ["team-a/"] }, { tenants: ["mine"] }]);
    const [prefixed, mine] = server.keys.map(bearer) as [Record<string, string>, Record<string, string>];
    for (const path of ["/v1/leases", "/v1/audit", "/v1/audit/verify", "/metrics"]) {
      expect([path, (await server.get(path, prefixed)).status]).toEqual([path, 403]);
    }
    for (const path of [
      "/v1/audit/verify",
      "/metrics",
      "/v1/leases?tenant=default",
      "/v1/audit?tenant=default",
      "/v1/audit?tenant=*",
    ]) {
      expect([path, (await server.get(path, mine)).status]).toEqual([path, 403]);
    }
    expect(await watchStatus(server, "", prefixed)).toBe(403);
    expect(await watchStatus(server, "prefix=team-a/", prefixed)).toBe(200);
    expect(await watchStatus(server, "tenant=theirs", mine)).toBe(403);
    expect(await watchStatus(server, "tenant=mine", mine)).toBe(200);
  });

  it("give a key with one tenant that tenant, and ask one with several which", async () => {
    const server = await keyedServer([{ tenants: ["mine"] }, { tenants: ["a", "b"] }]);
    const [one, two] = server.keys.map(bearer);
    expect((await server.lease("acquire", { name: "x", holder: "h" }, one)).body.lease.tenant).toBe("mine");
    const unclear = await server.lease("acquire", { name: "x", holder: "h" }, two);
    expect([unclear.status, unclear.body.field]).toEqual([400, "tenant"]);
    expect((await server.lease("acquire", { tenant: "b", name: "x", holder: "h" }, two)).status).toBe(200);
  });

  it("bind idempotency keys to the API key that used them", async () => {
    const server = await keyedServer([{}, {}]);
    const request = { name: "x", holder: "h", idempotencyKey: "once" };
    const first = await server.lease("acquire", request, bearer(server.keys[0]));
    const stolen = await server.lease("acquire", request, bearer(server.keys[1]));
    expect([first.status, stolen.status, stolen.body.reason]).toEqual([200, 400, "IDEMPOTENCY_KEY_REUSED"]);
    expect(stolen.text).not.toContain(first.body.token);
  });

  it("hold on the stream", async () => {
    const server = await keyedServer([{ tenants: ["mine"], actions: ["acquire", "read"] }]);
    const url = `${server.url.replace("http", "ws")}/v1/stream`;
    const refused = await new Promise<string>((resolve) => {
      new WebSocket(url).on("error", (error) => resolve(error.message));
    });
    expect(refused).toContain("401");
    const socket = new WebSocket(url, { headers: bearer(server.keys[0]) });
    await new Promise((resolve) => socket.once("open", resolve));
    const messages = [
      { id: 1, op: "acquire", name: "x", holder: "h" },
      { id: 2, op: "acquire", tenant: "theirs", name: "x", holder: "h" },
      { id: 3, op: "revoke", name: "x" },
      { id: 4, op: "watch", tenant: "theirs" },
      { id: 5, op: "list", tenant: "theirs" },
      { id: 6, op: "get", tenant: "theirs", name: "x" },
      { id: 7, op: "queue", tenant: "theirs", name: "x" },
    ];
    const statuses = new Map<number, number>();
    const all = new Promise<void>((resolve) => {
      socket.on("message", (data) => {
        for (const { id, status } of JSON.parse(String(data))) statuses.set(id, status);
        if (statuses.size === messages.length) resolve();
      });
    });
    socket.send(JSON.stringify(messages));
    await all;
    socket.close();
    expect([...statuses].sort(([a], [b]) => a - b).map(([, status]) => status)).toEqual([
      200, 403, 403, 403, 403, 403, 403,
    ]);
  });
});
