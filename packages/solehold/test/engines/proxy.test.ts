// The fault proxy against a real Redis: what it lets through, loses, holds and cuts, seen from both ends.
import { createHash, randomBytes } from "node:crypto";
import { createServer } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type Engine, type FaultProxy, startProxy, startRedis } from "./index.ts";
import { portOf, RawSocket } from "./raw-socket.ts";

let redis: Engine;
let proxy: FaultProxy;
let direct: RawSocket;
let proxied: RawSocket;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  proxy = await startProxy({ targetPort: portOf(redis.url) });
  direct = await RawSocket.open(portOf(redis.url));
  proxied = await RawSocket.open(proxy.port);
  await direct.command("FLUSHALL", "+OK\r\n");
  expect(await proxied.command("PING", "+PONG\r\n")).toBe("+PONG\r\n");
});
afterEach(async () => {
  direct.close();
  proxied.close();
  await proxy.close();
});

/** Gives the server and the proxy ample occasion to do what they must not. */
async function manyRoundTrips(): Promise<void> {
  for (let count = 0; count < 50; count += 1) await direct.command("PING", "+PONG\r\n");
}

test("dropped replies: the write is applied, the client hears nothing, and healing resets its connection", async () => {
  proxy.dropReplies();
  const dropped = proxy.nextDroppedReply();
  proxied.send("SET lease mine\r\n");
  await dropped;
  expect(proxy.droppedBytes).toBe("+OK\r\n".length);
  expect(await direct.command("GET lease", "$4\r\nmine\r\n")).toBe("$4\r\nmine\r\n");
  expect(proxied.received).toBe("");

  // Were it kept, the next reply would answer the lost request.
  proxy.heal();
  await proxied.closed;
  const fresh = await RawSocket.open(proxy.port);
  expect(await fresh.command("GET lease", "$4\r\nmine\r\n")).toBe("$4\r\nmine\r\n");
  fresh.close();
});

test("dropped replies: a connection that lost nothing survives the healing", async () => {
  proxy.dropReplies();
  await manyRoundTrips();
  proxy.heal();
  expect(await proxied.command("PING", "+PONG\r\n")).toBe("+PONG\r\n");
});

test("cut: open connections are reset, new ones pass", async () => {
  proxy.cut();
  expect(await proxied.closed).toBe("ECONNRESET");
  const fresh = await RawSocket.open(proxy.port);
  expect(await fresh.command("PING", "+PONG\r\n")).toBe("+PONG\r\n");
  fresh.close();
  await expect.poll(() => proxy.connections).toBe(0);
});

test("freeze: nothing reaches the server, connections stay, and healing delivers what waited", async () => {
  proxy.freeze();
  proxied.send("SET lease mine\r\n");
  const late = await RawSocket.open(proxy.port);
  late.send("SET other mine\r\n");
  await manyRoundTrips();
  expect(await direct.command("EXISTS lease other", ":0\r\n")).toBe(":0\r\n");
  expect(proxied.received + late.received).toBe("");

  proxy.heal();
  expect(await proxied.take(5)).toBe("+OK\r\n");
  expect(await late.take(5)).toBe("+OK\r\n");
  expect(await direct.command("EXISTS lease other", ":2\r\n")).toBe(":2\r\n");
  late.close();
});

test("freeze: the server does not learn that a client has gone before the healing", async () => {
  await proxied.command("CLIENT SETNAME gone", "+OK\r\n");
  const clientList = async () => {
    const socket = await RawSocket.open(portOf(redis.url));
    socket.send("CLIENT LIST\r\nPING\r\n");
    await expect.poll(() => socket.received).toContain("+PONG");
    socket.close();
    return socket.received;
  };
  proxy.freeze();
  proxied.close();
  await manyRoundTrips();
  expect(await clientList()).toContain("name=gone");
  proxy.heal();
  await expect.poll(clientList).not.toContain("name=gone");
});

test("delay: everything arrives, in order, also when the delay ends while replies wait", async () => {
  proxy.delay(20);
  proxied.send("INCR n\r\n");
  expect(await proxied.take(4)).toBe(":1\r\n");
  proxy.delay(60_000);
  for (let count = 0; count < 3; count += 1) proxied.send("INCR n\r\n");
  await manyRoundTrips();
  expect(proxied.received).toBe("");
  proxy.heal();
  expect(await proxied.take(12)).toBe(":2\r\n:3\r\n:4\r\n");
});

test("a server that is not there is a reset for the client", async () => {
  const gone = await startRedis();
  await gone.stop();
  const toNowhere = await startProxy({ targetPort: portOf(gone.url) });
  const ending = await RawSocket.open(toNowhere.port).then(
    (socket) => socket.closed,
    (error: NodeJS.ErrnoException) => error.code,
  );
  expect(ending).toBe("ECONNRESET");
  await expect.poll(() => toNowhere.connections).toBe(0);
  await toNowhere.close();
});

test("megabytes pass unaltered, also to a slow receiver that has itself nothing more to say", async () => {
  const payload = randomBytes(6_000_000);
  const source = createServer((socket) => socket.end(payload));
  await new Promise<void>((resolve) => source.listen(0, "127.0.0.1", resolve));
  const address = source.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const large = await startProxy({ targetPort: address.port });
  large.freeze();
  const socket = await RawSocket.open(large.port);
  socket.finish();
  await manyRoundTrips();
  large.heal();
  expect(await socket.closed).toBe("end");
  const digest = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
  expect(digest(Buffer.from(socket.received, "latin1"))).toBe(digest(payload));
  await large.close();
  await new Promise((resolve) => source.close(resolve));
});

test("a URL goes through the proxy with everything but its port unchanged", () => {
  const { port } = proxy;
  expect(proxy.through("redis://:pw@127.0.0.1:1")).toBe(`redis://:pw@127.0.0.1:${port}`);
  expect(proxy.through("postgres://u:p@127.0.0.1:1/db?a=b")).toBe(`postgres://u:p@127.0.0.1:${port}/db?a=b`);
  expect(proxy.through("http://127.0.0.1:1/account")).toBe(`http://127.0.0.1:${port}/account`);
});

test("a proxy without a port to go to is refused", async () => {
  await expect(startProxy({ targetPort: Number.NaN })).rejects.toThrow("targetPort is NaN");
});
