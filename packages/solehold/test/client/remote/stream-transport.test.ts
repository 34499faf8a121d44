import { describe, expect, it } from "vitest";
import { type StreamSocket, StreamTransport } from "../../../src/client/remote/stream-transport.ts";
import type { RemoteAnswer, RemoteTransport } from "../../../src/client/remote/transport.ts";
import { ManualEnv } from "../../../src/env/index.ts";

/** The other end of the stream, as a test plays it. */
class FakeSocket implements StreamSocket {
  readonly sent: { id: number; op: string }[] = [];
  readonly #listeners = new Map<string, (value: never) => void>();

  on(event: string, listener: (value: never) => void): void {
    this.#listeners.set(event, listener);
  }

  emit(event: string, value?: unknown): void {
    this.#listeners.get(event)?.(value as never);
  }

  send(text: string): void {
    this.sent.push(...(JSON.parse(text) as { id: number; op: string }[]));
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
