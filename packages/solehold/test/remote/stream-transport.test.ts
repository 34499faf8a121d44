import { describe, expect, it } from "vitest";
import { ManualEnv } from "../../src/env/index.ts";
import type { RemoteAnswer, RemoteTransport } from "../../src/remote/transport.ts";
import { type StreamSocket, StreamTransport } from "../../src/remote/websocket-transport.ts";

/** The other end of the stream, as a test plays it. */
class FakeSocket implements StreamSocket {
  readonly sent: { id: number; op: string }[] = [];
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
    const settled: string[] = [];
    const command = (op: string, timeoutMs: number): void => {
      transport.send({ method: "POST", path: `/v1/leases/${op}`, body: {}, timeoutMs }).then(
        () => settled.push(`${op} answered`),
        ({ kind, outcome }: { kind: string; outcome: string }) => settled.push(`${op} ${kind} ${outcome}`),
      );
    };
    command("late", 900);
    command("early", 300);
    command("answered", 300);
    await env.advance(0);
    socket.answer(3);
    await env.advance(299);
    expect(settled).toEqual(["answered answered"]);
    await env.advance(1);
    expect(settled).toEqual(["answered answered", "early timeout unknown"]);
    await env.advance(599);
    expect(settled).toHaveLength(2);
    await env.advance(1);
    expect(settled).toEqual(["answered answered", "early timeout unknown", "late timeout unknown"]);
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
