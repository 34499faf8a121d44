import { describe, expect, it } from "vitest";
import { ManualEnv } from "../../src/env/index.ts";
import type { RemoteAnswer, RemoteTransport } from "../../src/remote/transport.ts";
import { type StreamSocket, StreamTransport } from "../../src/remote/websocket-transport.ts";

/** The other end of the stream, as a test plays it. */
class FakeSocket implements StreamSocket {
  readonly sent: { id: number; op: string }[] = [];
  asksToBeBrief = false;
  /** How many were in each message. */
  readonly lengths: number[] = [];
  readonly #listeners = new Map<string, (value: never) => void>();

  on(event: string, listener: (value: never) => void): void {
    this.#listeners.set(event, listener);
  }

  emit(event: string, value?: unknown): void {
    this.#listeners.get(event)?.(value as never);
  }

  send(text: string): void {
    const messages = JSON.parse(text) as { id: number; op: string }[];
    if (messages[0]?.op === "brief") {
      this.asksToBeBrief = true;
      return;
    }
    this.lengths.push(messages.length);
    this.sent.push(...messages);
  }

  answer(id: number, body: unknown = {}): void {
    this.emit("message", JSON.stringify([{ id, status: 200, body }]));
  }

  close(): void {
    this.emit("close");
  }

  terminate(): void {
    this.emit("close");
  }
}

function streamWorld() {
  const env = new ManualEnv();
  const sockets: FakeSocket[] = [];
  const overHttp: string[] = [];
  const http: RemoteTransport = {
    send: async ({ path }): Promise<RemoteAnswer> => {
      overHttp.push(path);
      return { status: 200, body: "over http" };
    },
    events: async () => ({ close: () => undefined }),
    close: () => undefined,
  };
  const transport = new StreamTransport({
    env,
    http,
    where: "http://server",
    connect: () => {
      const socket = new FakeSocket();
      sockets.push(socket);
      return socket;
    },
  });
  const [socket] = sockets;
  if (socket === undefined) throw new Error("a stream is opened at once");
  const command = (op: string, signal?: AbortSignal) =>
    transport.send({
      method: "POST",
      path: `/v1/leases/${op}`,
      body: { name: "job" },
      timeoutMs: 60_000,
      ...(signal === undefined ? {} : { signal }),
    });
  return { env, transport, socket, sockets, overHttp, command };
}

describe("the stream", () => {
  it("serves plain HTTP until it is open, then itself", async () => {
    const { socket, command, overHttp, env } = streamWorld();
    expect(await command("renew")).toMatchObject({ body: "over http" });
    socket.emit("open");
    const answer = command("renew");
    await env.advance(0);
    socket.answer(socket.sent[0]?.id ?? 0, "over the stream");
    expect(await answer).toMatchObject({ body: "over the stream" });
    expect(overHttp).toEqual(["/v1/leases/renew"]);
  });

  it("asks briefly only a server that said it reads that, and only what can be said so", async () => {
    const { socket, sockets, transport, env } = streamWorld();
    const plain = { tenant: "t", name: 'a "job"', holder: "h", token: "k" };
    const ask = async (op: string, body: object): Promise<unknown> => {
      const to = sockets.at(-1);
      const answer = transport.send({
        method: "POST",
        path: `/v1/leases/${op}`,
        body,
        timeoutMs: 60_000,
      });
      await env.advance(0);
      const sent: unknown = to?.sent.at(-1);
      const id = Array.isArray(sent) ? (sent[0] as number) : (to?.sent.at(-1)?.id ?? -1);
      to?.answer(id);
      await answer;
      return sent;
    };
    socket.emit("open");
    const inFull = { id: expect.any(Number), op: "release", ...plain };
    expect(await ask("release", plain)).toEqual(inFull);
    // Servers of today without brief requests, and of yesterday without brief answers.
    socket.answer(0, {});
    expect(await ask("release", plain)).toEqual(inFull);
    socket.emit("message", JSON.stringify([{ id: 0, status: 400, body: { reason: "INVALID" } }]));
    expect(await ask("release", plain)).toEqual(inFull);
    socket.answer(0, { requests: "brief" });
    const id = expect.any(Number);
    expect(await ask("release", plain)).toEqual([id, "release", "t", 'a "job"', "h", "k"]);
    expect(await ask("renew", { ...plain, ttlMs: 5 })).toEqual([id, "renew", "t", 'a "job"', "h", "k", 5]);
    const claim = { ...plain, ttlMs: 5, purpose: "Operation" };
    expect(await ask("acquire", claim)).toEqual([
      ...[id, "acquire", "t", 'a "job"', "h", "k"],
      ...[5, "Operation", 0],
    ]);
    expect(await ask("use", claim)).toEqual({ id, op: "use", ...claim });
    expect(await ask("release", { ...plain, generation: "3" })).toEqual({ ...inFull, generation: "3" });
    // Both in one message, and a new connection has agreed on nothing.
    const both = [plain, { ...plain, idempotencyKey: "i" }].map((body) =>
      transport.send({ method: "POST", path: "/v1/leases/release", body, timeoutMs: 60_000 }),
    );
    await env.advance(0);
    expect(socket.lengths.at(-1)).toBe(2);
    expect(socket.sent.slice(-2)).toEqual([
      [id, "release", "t", 'a "job"', "h", "k"],
      { ...inFull, idempotencyKey: "i" },
    ]);
    socket.close();
    for (const lost of both) await expect(lost).rejects.toMatchObject({ outcome: "unknown" });
    await env.advance(2_000);
    void transport.send({ method: "GET", path: "/", timeoutMs: 1 });
    sockets.at(-1)?.emit("open");
    expect(sockets).toHaveLength(2);
    expect(await ask("release", plain)).toEqual(inFull);
  });

  it("asks for brief answers as soon as it is open, and takes whatever form comes", async () => {
    const { socket, command, env } = streamWorld();
    expect(socket.asksToBeBrief).toBe(false);
    socket.emit("open");
    expect(socket.asksToBeBrief).toBe(true);
    // As a server answers that has never heard of it.
    socket.emit("message", JSON.stringify([{ id: 0, status: 400, body: { field: "op" } }]));
    const answers = Promise.all(["a", "b"].map((op) => command(op)));
    await env.advance(0);
    const [a, b] = socket.sent;
    socket.emit("message", JSON.stringify([[b?.id, 1, 2], { id: a?.id, status: 409, body: "denied" }]));
    expect(await answers).toEqual([
      { status: 409, body: "denied" },
      { status: 200, body: [b?.id, 1, 2] },
    ]);
  });

  it("sends the commands of a turn in one message and gives each its own answer, in any order", async () => {
    const { socket, command, env } = streamWorld();
    socket.emit("open");
    const answers = Promise.all(["a", "b", "c"].map((op) => command(op)));
    await env.advance(0);
    expect(socket.sent.map(({ op }) => op)).toEqual(["a", "b", "c"]);
    for (const { id, op } of [...socket.sent].reverse()) socket.answer(id, op);
    expect((await answers).map(({ body }) => body)).toEqual(["a", "b", "c"]);
  });

  it("sends many commands of a turn in several messages, so that the server can turn to others between them", async () => {
    const { socket, command, env } = streamWorld();
    socket.emit("open");
    for (let index = 0; index < 150; index += 1) void command("renew").catch(() => undefined);
    await env.advance(0);
    expect(socket.lengths).toEqual([64, 64, 22]);
    expect(new Set(socket.sent.map(({ id }) => id)).size).toBe(150);
  });

  it("gives up each command at its own time, and only what was not answered", async () => {
    const { socket, transport, env } = streamWorld();
    socket.emit("open");
    const told: string[] = [];
    const command = (op: string, timeoutMs: number): void => {
      transport.send({ method: "POST", path: `/v1/leases/${op}`, body: {}, timeoutMs }).then(
        () => told.push(`${op} answered`),
        ({ kind, outcome }: { kind: string; outcome: string }) => told.push(`${op} ${kind} ${outcome}`),
      );
    };
    command("late", 900);
    command("early", 300);
    command("answered", 300);
    await env.advance(0);
    socket.answer(3);
    await env.advance(299);
    expect(told).toEqual(["answered answered"]);
    await env.advance(1);
    expect(told).toEqual(["answered answered", "early timeout unknown"]);
    await env.advance(599);
    expect(told).toHaveLength(2);
    await env.advance(1);
    expect(told).toEqual(["answered answered", "early timeout unknown", "late timeout unknown"]);
    expect(socket.sent.filter(({ op }) => op === "cancel")).toHaveLength(2);
    expect(env.pendingTimers).toBe(0);
  });

  it("gives up a server that hangs within moments: who waits in its line can queue elsewhere", async () => {
    const { socket, command, env } = streamWorld();
    socket.emit("open");
    const waiting = command("acquire").catch((error: unknown) => error);
    await env.advance(4_100);
    expect(await waiting).toMatchObject({ name: "StoreError", kind: "unreachable", outcome: "unknown" });
  });

  it("waits for as long as it takes while the server gives signs of life", async () => {
    const { socket, command, env } = streamWorld();
    socket.emit("open");
    const waiting = command("acquire");
    for (let second = 0; second < 30; second += 1) {
      await env.advance(1_000);
      for (const { id, op } of socket.sent.splice(0)) if (op === "ping") socket.answer(id);
    }
    socket.answer(1, "granted");
    expect(await waiting).toMatchObject({ body: "granted" });
    expect(env.pendingTimers).toBe(0);
  });

  it("fails what is pending when the connection breaks, as unknown, and uses plain HTTP until it is back", async () => {
    const { socket, sockets, command, env, overHttp } = streamWorld();
    socket.emit("open");
    const pending = command("acquire").catch((error: unknown) => error);
    await env.advance(0);
    socket.emit("close");
    expect(await pending).toMatchObject({ outcome: "unknown" });
    await command("renew");
    expect(overHttp).toEqual(["/v1/leases/renew"]);
    await env.advance(1_000);
    void command("renew");
    expect(sockets).toHaveLength(2);
  });

  it("tells the server when the caller gave up, so that it leaves the line", async () => {
    const { socket, command, env } = streamWorld();
    socket.emit("open");
    const controller = new AbortController();
    const waiting = command("acquire", controller.signal).catch((error: unknown) => error);
    await env.advance(0);
    controller.abort();
    await env.advance(0);
    expect(socket.sent.at(-1)).toMatchObject({ op: "cancel", target: socket.sent[0]?.id });
    expect(await waiting).toMatchObject({ kind: "closed" });
  });
});
