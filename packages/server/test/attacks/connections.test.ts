/** Connections that were refused, that stay, or that offer another protocol: none is held for good, none holds up the end. */
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { ManualEnv, realEnv } from "solehold/internal";
import { describe, expect, it, onTestFinished } from "vitest";
import { answerBadHttp } from "../../src/http/http-problems.ts";
import { keyedServer } from "../support/keys.ts";
import { testServer, until } from "../support/server.ts";
import { TestStream } from "../support/stream.ts";

interface RawConnection {
  readonly socket: Socket;
  text(): string;
  /** The other side is gone, not only done. */
  isClosed(): boolean;
}

/** A client that never closes its side. */
function raw(url: string, sent: string): RawConnection {
  const { port, hostname } = new URL(url);
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
  onTestFinished(() => void socket.destroy());
  let text = "";
  let closed = false;
  socket.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  socket.on("error", () => undefined);
  socket.on("close", () => {
    closed = true;
  });
  socket.write(sent);
  const isClosed = (): boolean => {
    // Only a write shows to a client that the other side is gone.
    if (!closed) socket.write("x");
    return closed;
  };
  return { socket, text: () => text, isClosed };
}

const request = (head: string, headers: readonly string[] = [], body = ""): string =>
  [`${head} HTTP/1.1`, "host: 127.0.0.1", ...headers, "", body].join("\r\n");
const OFFER = ["connection: Upgrade, HTTP2-Settings", "upgrade: h2c", "http2-settings: AAMAAABkAAQAAP__"];
const STREAM = request("GET /v1/stream", [
  "connection: Upgrade",
  "upgrade: websocket",
  "sec-websocket-version: 13",
  "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
]);

describe("a connection that was refused", () => {
  it.each([
    ["an upgrade without a key", STREAM, "401"],
    ["bytes that are not HTTP", "nonsense\r\n\r\n", "400"],
    ["an upgrade elsewhere", STREAM.replace("/v1/stream", "/v1/other"), "404"],
  ])("is closed although its client stays (%s)", async (_what, sent, status) => {
    const server = await keyedServer([{}]);
    const { text, isClosed } = raw(server.url, sent);
    await until("it is answered", () => text().startsWith(`HTTP/1.1 ${status}`));
    await until("it is closed", isClosed);
  });

  it("is closed although its client stays (no request in time)", async () => {
    const late = Object.assign(new Error("late"), { code: "ERR_HTTP_REQUEST_TIMEOUT" });
    const server = createServer({ allowHalfOpen: true }, (socket) => answerBadHttp(late, socket, realEnv));
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const { text, isClosed } = raw(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, "");
    await until("it is answered", () => text().startsWith("HTTP/1.1 408"));
    await until("it is closed", isClosed);
  });

  it("does not hold up a shutdown", async () => {
    const server = await keyedServer([{}], { drainMs: "100" });
    const { text } = raw(server.url, STREAM);
    await until("it is answered", () => text().startsWith("HTTP/1.1 401"));
    await server.server.close();
  });
});

describe("a stream", () => {
  it("whose client answers no ping is ended, and others stay", async () => {
    const env = new ManualEnv();
    const server = await testServer({}, { env });
    const other = await TestStream.open(server.url);
    const { text } = raw(server.url, STREAM);
    await until("it is open", () => text().startsWith("HTTP/1.1 101"));
    const streams = async () => /^solehold_streams (\d+)$/m.exec((await server.get("/metrics")).text)?.[1];
    expect(await streams()).toBe("2");
    await env.advance(15_000);
    await other.ask({ op: "ping" });
    expect(await streams()).toBe("2");
    await env.advance(15_000);
    await until("it is ended", async () => (await streams()) === "1");
    expect((await other.ask({ op: "ping" }))[0].status).toBe(200);
  });
});

describe("a shutdown", () => {
  it("ends although a request never does", async () => {
    const server = await testServer({ drainMs: "100" });
    let asked = false;
    Object.assign(server.server.service.executor, {
      list: () => {
        asked = true;
        return new Promise(() => undefined);
      },
    });
    const { socket } = raw(server.url, request("GET /v1/leases"));
    const cut = new Promise((resolve) => void socket.once("end", resolve).once("close", resolve));
    await until("it is under way", () => asked);
    await server.server.close();
    await cut;
  });
});

describe("a shutdown of a server whose store hangs", () => {
  it("ends, and its port is free", async () => {
    const server = await testServer({ drainMs: "100" });
    await until("it is announced", async () => (await server.get("/v1/replicas")).body.replicas.length === 1);
    Object.assign(server.server.service.executor, { execute: () => new Promise(() => undefined) });
    await server.server.close();
    await expect(server.get("/healthz")).rejects.toThrow();
  });
});

describe("an offer of HTTP/2 over plain text", () => {
  it("is ignored: the request is served as it is, and so is the next one", async () => {
    const server = await testServer();
    const { socket, text } = raw(server.url, request("GET /healthz", OFFER));
    await until("it is served", () => text().endsWith('{"status":"ok"}'));
    expect(text()).toMatch(/^HTTP\/1\.1 200 OK/);
    socket.write(request("GET /nowhere"));
    await until("the next one is served", () => text().includes("HTTP/1.1 404"));
  });

  it("with a body in several pieces brings the whole body", async () => {
    const server = await testServer();
    const body = JSON.stringify({ name: "job", holder: "me", note: "n".repeat(500) });
    const headers = [...OFFER, "content-type: application/json", `content-length: ${body.length}`];
    const whole = request("POST /v1/leases/acquire", headers, body);
    const { socket, text } = raw(server.url, whole.slice(0, -250));
    await until("the first piece has arrived", async () => (await server.get("/healthz")).status === 200);
    socket.write(whole.slice(-250));
    await until("it is granted", () => text().includes('"outcome":"applied"'));
  });
});

describe("HEAD", () => {
  it("answers as GET does, without the body", async () => {
    const server = await testServer();
    for (const path of ["/healthz", "/readyz", "/v1/leases"]) {
      const response = await fetch(`${server.url}${path}`, { method: "HEAD" });
      expect([path, response.status, await response.text()]).toEqual([path, 200, ""]);
      expect(Number(response.headers.get("content-length"))).toBeGreaterThan(0);
    }
    expect((await fetch(`${server.url}/v1/leases/acquire`, { method: "HEAD" })).status).toBe(405);
  });

  it("of a watch is refused: it has no end", async () => {
    const server = await testServer();
    expect((await fetch(`${server.url}/v1/watch`, { method: "HEAD" })).status).toBe(405);
  });
});

describe("a watch", () => {
  it("repeats nothing to its client that is not a token", async () => {
    const server = await testServer();
    const after = encodeURIComponent("x\nevent: changed\ndata: {}\n\n");
    const { text } = raw(server.url, request(`GET /v1/watch?after=${after}`));
    await until("it says that something may be missing", () => text().includes("event: reset"));
    expect(text()).not.toContain("event: changed");
  });
});

describe("an answer that nobody could audit", () => {
  it("has no success as its reason", async () => {
    const server = await testServer();
    Object.assign(server.server.service.audit, { append: () => Promise.reject(new Error("disk full")) });
    const { status, body } = await server.lease("acquire", { name: "job", holder: "me" });
    expect([status, body.outcome, body.storeError]).toEqual([503, "unknown", "full"]);
    expect([body.reason, body.code]).toEqual(["INTERNAL_PIPELINE_ERROR", "LS_UNAVAILABLE"]);
    expect(body.detail).not.toMatch(/store|disk full/);
  });
});
