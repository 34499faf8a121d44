/** The connection to a member: what a server may answer, how its end is noticed, and what each call is told. */
import {
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { ManualEnv } from "../../../src/env/index.ts";
import { Deframer, framed } from "../../../src/stores/etcd/framing.ts";
import { assertUsable, MemberConnection } from "../../../src/stores/etcd/grpc.ts";
import { type FaultProxy, startProxy } from "../../engines/index.ts";
import { rejection } from "../records.ts";

const GRPC = { ":status": 200, "content-type": "application/grpc" };
const QUESTION = Buffer.from("question");
const servers: Http2Server[] = [];
const proxies: FaultProxy[] = [];
const sessions = new Set<ServerHttp2Session>();
let env = new ManualEnv();
let member: MemberConnection | null = null;

afterEach(async () => {
  member?.close();
  for (const proxy of proxies.splice(0)) await proxy.close();
  for (const session of sessions) session.destroy();
  sessions.clear();
  for (const server of servers.splice(0)) server.close();
});

/** A member whose calls end up here. */
async function connected(
  answer: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void,
): Promise<MemberConnection> {
  const server = createServer();
  servers.push(server);
  server.on("session", (session) => {
    sessions.add(session);
    session.on("error", () => undefined);
  });
  server.on("stream", (stream, headers) => {
    stream.on("error", () => undefined);
    answer(stream, headers);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  env = new ManualEnv();
  member = new MemberConnection({
    env,
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    tls: null,
  });
  return member;
}

/** The same, with a way to it that can be blocked. */
async function connectedThroughProxy(answer: (stream: ServerHttp2Stream) => void): Promise<FaultProxy> {
  const direct = await connected(answer);
  direct.close();
  const way = await startProxy({ targetPort: Number(direct.address.split(":")[1]) });
  proxies.push(way);
  member = new MemberConnection({
    env,
    address: new URL(way.through(`http://${direct.address}`)).host,
    tls: null,
  });
  return way;
}

/** Answers with these pieces, then with what gRPC says at the end. */
function withPieces(pieces: readonly Buffer[], trailers: Record<string, string> = { "grpc-status": "0" }) {
  return (stream: ServerHttp2Stream): void => {
    stream.respond(GRPC, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers(trailers));
    for (const piece of pieces) stream.write(piece);
    stream.end();
  };
}

const ask = (): Promise<Uint8Array> => {
  if (member === null) throw new Error("not connected");
  return member.request("/service/method", QUESTION, { hasleader: "true" });
};

describe("messages in a stream of bytes", () => {
  it("come out as they went in, however the bytes are cut", () => {
    const messages = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 6 });
    fc.assert(
      fc.property(messages, fc.array(fc.nat(60), { maxLength: 12 }), (all, cuts) => {
        const bytes = Buffer.concat(all.map(framed));
        const deframer = new Deframer();
        const seen: Buffer[] = [];
        const take = (): void => {
          for (let message = deframer.next(); message !== null; message = deframer.next()) seen.push(message);
        };
        let start = 0;
        for (const cut of [...cuts, bytes.length]) {
          deframer.add(bytes.subarray(start, start + cut));
          start = Math.min(bytes.length, start + cut);
          take();
        }
        expect(seen.map((message) => Buffer.from(message))).toEqual(all.map((each) => Buffer.from(each)));
      }),
    );
  });

  it("are refused when they are compressed, or larger than anything that was asked for", () => {
    const compressed = new Deframer();
    compressed.add(Buffer.from([1, 0, 0, 0, 0]));
    expect(() => compressed.next()).toThrow(/compressed/);
    const huge = new Deframer();
    huge.add(Buffer.from([0, 0xff, 0, 0, 0]));
    expect(() => huge.next()).toThrow(/more than/);
  });
});

describe("a question", () => {
  it("is answered with the message, in however many pieces it comes", async () => {
    const answer = framed(Buffer.from("the answer"));
    await connected(withPieces([answer.subarray(0, 3), answer.subarray(3, 9), answer.subarray(9)]));
    expect(Buffer.from(await ask()).toString()).toBe("the answer");
  });

  it("carries its message and fields to the path", async () => {
    let heard: IncomingHttpHeaders = {};
    let asked = Buffer.alloc(0);
    await connected((stream, headers) => {
      heard = headers;
      stream.on("data", (piece: Buffer) => {
        asked = Buffer.concat([asked, piece]);
      });
      stream.on("end", () => withPieces([framed(QUESTION)])(stream));
    });
    await ask();
    expect(heard).toMatchObject({ ":path": "/service/method", te: "trailers", hasleader: "true" });
    expect(asked).toEqual(framed(QUESTION));
  });

  it("fails with the server's words, also when they come without an answer before them", async () => {
    await connected(withPieces([], { "grpc-status": "14", "grpc-message": "etcdserver: 100%25 busy" }));
    expect((await rejection(ask())).message).toBe("status 14: etcdserver: 100% busy");
    await connected((stream) =>
      stream.respond(
        { ...GRPC, "grpc-status": "12", "grpc-message": "unknown service" },
        { endStream: true },
      ),
    );
    expect((await rejection(ask())).message).toBe("UNIMPLEMENTED: unknown service");
  });

  it("fails when the status is good but there is no message, or no status", async () => {
    await connected(withPieces([]));
    expect((await rejection(ask())).message).toBe("the reply is empty");
    await connected((stream) => {
      stream.respond(GRPC);
      stream.end(framed(Buffer.from("half")));
    });
    expect((await rejection(ask())).message).toBe("the server ended the stream");
  });

  it.each([
    ["another status", { ":status": 404 }, "HTTP status code 404"],
    ["another kind of content", { ":status": 200, "content-type": "text/html" }, "text/html"],
  ])("fails when what answers is no gRPC: %s", async (_what, headers, message) => {
    await connected((stream) => stream.respond(headers, { endStream: true }));
    expect((await rejection(ask())).message).toContain(message);
  });

  it("fails when its stream is reset, and the next one is answered", async () => {
    let first = true;
    await connected((stream) => {
      if (first) stream.close(2);
      else withPieces([framed(QUESTION)])(stream);
      first = false;
    });
    expect((await rejection(ask())).message).toMatch(/NGHTTP2/);
    expect(Buffer.from(await ask())).toEqual(QUESTION);
  });
});

describe("a connection", () => {
  it("is ready once it stands, and never again after the server said that it stops", async () => {
    const here = await connected(withPieces([framed(QUESTION)]));
    expect(here.isReady).toBe(false);
    await ask();
    expect(here.isReady).toBe(true);
    const [session] = sessions;
    session?.goaway();
    await expect.poll(() => here.isReady).toBe(false);
  });

  it("that ends fails all that is under way, and everything afterwards", async () => {
    let resolve = (): void => undefined;
    const asked = new Promise<void>((settle) => {
      resolve = settle;
    });
    await connected(() => resolve());
    const [one, other] = [rejection(ask()), rejection(ask())];
    await asked;
    for (const session of sessions) session.destroy();
    await Promise.all([one, other]);
    await rejection(ask());
    const ended = new Promise((resolve) => {
      const listener = { onMessage: () => undefined, onEnd: resolve };
      member?.stream("/service/method", QUESTION, {}, listener);
    });
    expect(await ended).toBeInstanceOf(Error);
  });

  it("whose server answers no ping is given up while something is under way", async () => {
    let resolve = (): void => undefined;
    const asked = new Promise<void>((settle) => {
      resolve = settle;
    });
    const way = await connectedThroughProxy(() => resolve());
    const lost = rejection(ask());
    await asked;
    way.freeze();
    await env.advance(10_000);
    await env.advance(5_000);
    expect((await lost).message).toContain("did not answer a ping");
    expect(member?.isReady).toBe(false);
  });

  it("asks no server for a sign of life while nothing is under way", async () => {
    await connected(withPieces([framed(QUESTION)]));
    await ask();
    await env.advance(10_000);
    expect(env.pendingTimers).toBe(0);
    expect(member?.isReady).toBe(true);
  });
});

it("files that are no certificates are refused by name", () => {
  expect(() => assertUsable(null)).not.toThrow();
  expect(() => assertUsable({ ca: null, cert: Buffer.from("x"), key: Buffer.from("y") })).toThrow(
    /PEM files/,
  );
});
