import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { type Body, testServer, until } from "./support/server.ts";
import { TestStream } from "./support/stream.ts";

const owner = { name: "a", holder: "me", token: "token-of-me" };
const statuses = (answers: readonly Body[]): readonly number[] => answers.map(({ status }) => status);

describe("the stream", () => {
  it("carries every command, answered as HTTP would", async () => {
    const { url, lease } = await testServer();
    const stream = await TestStream.open(url);
    const [granted] = await stream.ask({ op: "acquire", ...owner, ttlMs: 30_000 });
    expect(granted).toMatchObject({
      status: 200,
      body: { outcome: "applied", token: "token-of-me", validForMs: 30_000, lease: { holder: "me" } },
    });
    const [denied] = await stream.ask({ op: "acquire", name: "a", holder: "you" });
    const overHttp = await lease("acquire", { name: "a", holder: "you" });
    const timeless = (body: Body): object => ({ ...body, traceId: "", storeTimeMs: 0, retryAfterMs: 0 });
    expect(timeless(denied?.body)).toEqual(timeless(overHttp.body));
    expect(denied?.status).toBe(409);
    const rest = await stream.ask(
      { op: "use", ...owner, purpose: "Operation" },
      { op: "renew", ...owner, ttlMs: 60_000 },
    );
    expect(statuses(rest)).toEqual([200, 200]);
    expect(
      statuses(await stream.ask({ op: "resume", ...owner }, { op: "break", name: "a", periodMs: 9_000 })),
    ).toEqual([200, 200]);
    expect(
      statuses(await stream.ask({ op: "handoff", ...owner, successor: "you", withinMs: 5_000 })),
    ).toEqual([200]);
    expect(
      statuses(
        await stream.ask(
          { op: "get", name: "a" },
          { op: "list", prefix: "a" },
          { op: "queue", name: "a" },
          { op: "ping" },
        ),
      ),
    ).toEqual([200, 200, 200, 200]);
    const ended = await stream.ask({ op: "revoke", name: "a" });
    expect(ended[0]).toMatchObject({ status: 200, body: { lease: { state: "revoked" } } });
  });

  it("answers a thousand commands of one message in few messages", async () => {
    const { url } = await testServer();
    const stream = await TestStream.open(url);
    const commands = Array.from({ length: 1_000 }, (_, index) => ({
      op: "acquire",
      name: `n/${index}`,
      holder: "h",
    }));
    const answers = await stream.ask(...commands);
    expect(new Set(statuses(answers))).toEqual(new Set([200]));
    expect(stream.frames).toBeLessThan(200);
    // None is so long that a client which reads one a turn would be kept from its other work.
    expect(stream.longestFrame).toBeLessThanOrEqual(32);
  });

  it("gives a trace of its own to every message that brings none, and keeps the one that a message brings", async () => {
    const { url } = await testServer();
    const stream = await TestStream.open(url);
    const commands = Array.from({ length: 200 }, (_, index) => ({
      op: "acquire",
      name: `n/${index}`,
      holder: "h",
    }));
    const traces = (await stream.ask(...commands)).map(({ body }) => String(body.traceId));
    expect(new Set(traces).size).toBe(200);
    for (const trace of traces) expect(trace).toMatch(/^[0-9a-f]{32}$/);
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    const traceparent = `00-${traceId}-b7ad6b7169203331-01`;
    const [released] = await stream.ask({ op: "release", name: "n/0", holder: "h", token: "t", traceparent });
    expect(released?.body.traceId).toBe(traceId);
  });

  it("reads no further while hundreds are under way; those who wait hold nobody up", async () => {
    const { url, server } = await testServer();
    const stream = await TestStream.open(url);
    await stream.ask({ op: "acquire", name: "job", holder: "h", token: "t" });
    for (let index = 0; index < 600; index += 1)
      stream.post({ op: "acquire", name: "job", holder: `w${index}`, waitMs: 60_000 });
    expect(statuses(await stream.ask({ op: "ping" }))).toEqual([200]);
    expect(server.queue.size).toBe(600);
    let finish: () => void = () => undefined;
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const key = { tenant: "default", name: "job" };
    const reply = await server.service.execute({ op: "renew", key, holder: "h", token: "t" });
    let begun = 0;
    server.service.execute = async () => {
      begun += 1;
      await finished;
      return reply;
    };
    const renewal = { op: "renew", name: "job", holder: "h", token: "t" };
    const ids = Array.from({ length: 60 }, () => stream.post(...Array(100).fill(renewal))).flat();
    await until("it has begun with hundreds", () => begun > 512);
    // Another client is served while this one has to wait. What had arrived with the last that was read is begun.
    const other = await TestStream.open(url);
    for (let turn = 0; turn < 30; turn += 1) expect(statuses(await other.ask({ op: "ping" }))).toEqual([200]);
    expect(begun).toBeLessThanOrEqual(2_500);
    finish();
    await until("all are answered", () => ids.every((id) => stream.answers.has(id)));
    expect(new Set(ids.map((id) => stream.answers.get(id)?.status))).toEqual(new Set([200]));
    expect(begun).toBe(6_000);
  });

  it("names what is wrong with a message, and lives on", async () => {
    const { url } = await testServer({ batchLimit: "5" });
    const stream = await TestStream.open(url);
    const cases: readonly (readonly [string, string])[] = [
      ["{not json", "message"],
      ["5", "message"],
      ["null", "message"],
      ['[["nested"]]', "message"],
      [JSON.stringify(Array(6).fill({ id: 1, op: "ping" })), "message"],
      ['{"op":"ping"}', "id"],
      ['{"id":1.5,"op":"ping"}', "id"],
      ['{"id":"","op":"ping"}', "id"],
    ];
    for (const [text, field] of cases) {
      stream.answers.delete(null);
      stream.socket.send(text);
      const answer = await stream.answer(null);
      expect([text, answer.status, answer.body.field]).toEqual([text, 400, field]);
    }
    stream.answers.delete(null);
    stream.socket.send(Buffer.from([1, 2, 3]));
    expect((await stream.answer(null)).body.field).toBe("message");
    const [noOp, unknownOp, extra, typed, proto] = await stream.ask(
      { op: 5 },
      { op: "fly" },
      { op: "ping", x: 1 },
      { op: "acquire", name: "a", holder: 5 },
      { op: "acquire", name: "a", holder: "h", traceparent: 5 },
    );
    expect([
      noOp?.body.field,
      unknownOp?.body.field,
      extra?.body.field,
      typed?.body.field,
      proto?.body.field,
    ]).toEqual(["op", "op", "x", "holder", "traceparent"]);
    expect(unknownOp?.body.detail).toContain("acquire, renew");
  });

  it("does not confuse two messages with one id", async () => {
    const { url } = await testServer();
    const stream = await TestStream.open(url);
    await stream.ask({ op: "acquire", ...owner });
    stream.socket.send(JSON.stringify({ id: "w", op: "acquire", name: "a", holder: "you", waitMs: 20_000 }));
    stream.socket.send(JSON.stringify({ id: "w", op: "ping" }));
    expect((await stream.answer(null)).body).toMatchObject({ status: 400, field: "id" });
    await stream.ask({ op: "release", ...owner });
    expect((await stream.answer("w")).body.lease.holder).toBe("you");
  });

  it("waits without holding up other commands; a cancel ends the wait", async () => {
    const { url, server } = await testServer();
    const stream = await TestStream.open(url);
    await stream.ask({ op: "acquire", ...owner });
    const [first, second] = stream.post(
      { op: "acquire", name: "a", holder: "b", waitMs: 20_000, token: "own" },
      { op: "acquire", name: "a", holder: "c", waitMs: 20_000 },
    );
    expect(statuses(await stream.ask({ op: "ping" }))).toEqual([200]);
    await until("both wait", () => server.queue.size === 2);
    expect((await stream.ask({ op: "cancel", target: first }))[0]?.body).toEqual({ ended: true });
    expect((await stream.answer(first)).status).toBe(499);
    expect((await stream.ask({ op: "cancel", target: 999 }))[0]?.body).toEqual({ ended: false });
    await stream.ask({ op: "release", ...owner });
    expect((await stream.answer(second)).body.lease).toMatchObject({ holder: "c", live: true });
  });

  it("takes waiters out of the queue when the connection goes", async () => {
    const { url, server } = await testServer();
    const stream = await TestStream.open(url);
    await stream.ask({ op: "acquire", ...owner });
    stream.post({ op: "acquire", name: "a", holder: "b", waitMs: 60_000 });
    await until("it waits", () => server.queue.size === 1);
    stream.socket.terminate();
    await until("it has left", () => server.queue.size === 0);
  });

  it("keeps the caller's trace", async () => {
    const { url } = await testServer();
    const stream = await TestStream.open(url);
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    const traceparent = `00-${traceId}-b7ad6b7169203331-01`;
    const [answer] = await stream.ask({ op: "acquire", name: "a", holder: "h", traceparent });
    expect(answer?.body.traceId).toBe(traceId);
  });

  it("refuses what is not a stream, other origins, and messages beyond the limit", async () => {
    const { url, get } = await testServer({ bodyLimitBytes: "2048" });
    await expect(TestStream.open(url, { origin: "https://evil.example" })).rejects.toThrow("403");
    expect((await get("/v1/stream")).status).toBe(404);
    const wrongPath = await new Promise<string>((resolve) => {
      const socket = connect(Number(new URL(url).port), "127.0.0.1");
      socket.on("data", (data) => resolve(String(data)));
      socket.write(
        "GET /elsewhere HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
      );
    });
    expect(wrongPath).toMatch(/^HTTP\/1\.1 404 /);
    const stream = await TestStream.open(url);
    stream.socket.send(JSON.stringify({ id: 1, op: "ping", x: "y".repeat(4_000) }));
    await until("it was closed", () => stream.closed !== null);
    expect(stream.closed).toBe(1009);
    expect((await get("/healthz")).status).toBe(200);
  });
});

describe("watching over the stream", () => {
  it("tells of every change in its scope, after the answer that announces it", async () => {
    const { url, lease } = await testServer();
    const stream = await TestStream.open(url);
    const [watching] = await stream.ask({ op: "watch", prefix: "a/" });
    expect(watching?.body.token).toMatch(/^[\w-]+\.\d+$/);
    await lease("acquire", { ...owner, name: "a/1" });
    await lease("acquire", { ...owner, name: "b/1" });
    await lease("acquire", { ...owner, name: "a/2", tenant: "other" });
    await lease("release", { ...owner, name: "a/1" });
    await until("two events came", () => stream.events.length === 2);
    expect(stream.events.map(({ kind, name, lease: view }) => [kind, name, view.state])).toEqual([
      ["changed", "a/1", "held"],
      ["changed", "a/1", "released"],
    ]);
    expect(JSON.stringify(stream.events)).not.toMatch(/token-of-me|tokenHash|nonce/);
    await stream.ask({ op: "unwatch", target: 1 });
    await lease("acquire", { ...owner, name: "a/3" });
    await stream.ask({ op: "ping" });
    expect(stream.events.length).toBe(2);
  });

  it("goes on where it was after a reconnect, and says reset when that is too long ago", async () => {
    const { url, lease } = await testServer({ watchBacklog: "4" });
    const first = await TestStream.open(url);
    await first.ask({ op: "watch" });
    await lease("acquire", { ...owner, name: "n/0" });
    await until("an event came", () => first.events.length === 1);
    const { token } = first.events[0];
    first.socket.terminate();
    await lease("acquire", { ...owner, name: "n/1" });
    await lease("acquire", { ...owner, name: "n/2" });
    const second = await TestStream.open(url);
    await second.ask({ op: "watch", after: token });
    await until("what was missed came", () => second.events.length === 2);
    expect(second.events.map(({ name }) => name)).toEqual(["n/1", "n/2"]);
    for (let index = 3; index < 9; index += 1) await lease("acquire", { ...owner, name: `n/${index}` });
    const third = await TestStream.open(url);
    await third.ask(
      { op: "watch", after: token },
      { op: "watch", after: "elsewhere.1" },
      { op: "watch", after: "junk" },
    );
    await until("all events came", () => third.events.length === 3);
    expect(third.events.map(({ watch, kind }) => [watch, kind])).toEqual([
      [1, "reset"],
      [2, "reset"],
      [3, "reset"],
    ]);
  });

  it("announces the end of a lease that nobody ended", async () => {
    const { url, lease, get } = await testServer();
    const stream = await TestStream.open(url);
    await stream.ask({ op: "watch" });
    const granted = await lease("acquire", { ...owner, ttlMs: 150 });
    await until("the end was announced", () => stream.events.some(({ kind }) => kind === "expired"));
    expect(stream.events.at(-1)).toMatchObject({
      kind: "expired",
      name: "a",
      lease: { generation: granted.body.lease.generation, live: false },
    });
    const audit = (await get("/v1/audit?action=expire")).body.entries;
    expect(audit).toMatchObject([{ action: "expire", key: "a", at: granted.body.lease.expiresAtMs }]);
  });

  it("drops events of a watcher that does not read, tells it so, and loses no answer", async () => {
    const { url } = await testServer();
    const slow = await TestStream.open(url);
    const fast = await TestStream.open(url);
    await slow.ask({ op: "watch" }, { op: "watch", prefix: "quiet/" });
    slow.socket.pause();
    const [note, holder] = ["x".repeat(512), "h".repeat(128)];
    const asked = slow.post(
      ...Array.from({ length: 200 }, (_, index) => ({ op: "acquire", name: `s/${index}`, holder: "h" })),
    );
    let turn = 0;
    for (; turn < 16; turn += 1) {
      const commands = Array.from({ length: 500 }, (_, index) => ({
        op: "acquire",
        name: `${"n".repeat(200)}/${turn}/${index}`,
        holder,
        note,
      }));
      await fast.ask(...commands);
    }
    slow.socket.resume();
    await until("a reset came", () => slow.events.some(({ kind }) => kind === "reset"));
    for (const id of asked) expect((await slow.answer(id)).status).toBe(200);
    expect(slow.events.length).toBeLessThan(turn * 500);
    await fast.ask({ op: "acquire", name: "after", holder: "h" });
    await until("the event after the reset came", () => slow.events.at(-1)?.name === "after");
    // Its other watch missed nothing.
    expect(new Set(slow.events.map(({ watch }) => watch))).toEqual(new Set([1]));
  });
});

describe("watching over HTTP", () => {
  async function watch(
    url: string,
    query: string,
    headers: Record<string, string> = {},
  ): Promise<{ text(): string; stop(): void }> {
    const abort = new AbortController();
    const response = await fetch(`${url}/v1/watch?${query}`, { headers, signal: abort.signal });
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    let text = "";
    (async () => {
      for await (const chunk of response.body ?? []) text += Buffer.from(chunk as Uint8Array).toString();
    })().catch(() => undefined);
    return { text: () => text, stop: () => abort.abort() };
  }

  it("sends events that a browser can resume", async () => {
    const { url, lease } = await testServer();
    const first = await watch(url, "prefix=a");
    await until("the watch began", () => first.text().includes("event: watching"));
    await lease("acquire", owner);
    await until("the grant was announced", () => first.text().includes("event: changed"));
    const [, token = ""] = /id: (\S+)\nevent: changed\ndata: (.*)\n\n/.exec(first.text()) ?? [];
    first.stop();
    await lease("release", owner);
    const second = await watch(url, "prefix=a", { "last-event-id": token });
    await until("the release was announced", () => second.text().includes('"state":"released"'));
    expect(second.text()).not.toContain('"state":"held"');
    second.stop();
    const third = await watch(url, `after=${token}`);
    await until("the release was announced again", () => third.text().includes('"state":"released"'));
    third.stop();
    const fourth = await watch(url, "after=unknown.7");
    await until("a reset was announced", () => fourth.text().includes("event: reset"));
    fourth.stop();
  });
});
