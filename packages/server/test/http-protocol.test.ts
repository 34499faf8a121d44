/** The HTTP around the commands: traces, requests that no route can take, the page, limits, hosts and origins. */
import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { expectProblem, owner } from "./support/problem.ts";
import { ask, testServer } from "./support/server.ts";

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
