/** One caller cannot take all places: others still wait, watch and connect. */
import { connect } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { Addresses } from "../../src/access/addresses.ts";
import { bearer, keyedServer } from "../support/keys.ts";
import { type TestServer, testServer, until } from "../support/server.ts";
import { TestStream } from "../support/stream.ts";

const LIMITS = { waiterLimit: "8", watchLimit: "8", connectionLimit: "100", sharePercent: "50" };
const TENANTS = [{ tenants: ["greedy"] }, { tenants: ["greedy"] }, { tenants: ["modest"] }];

const wait = (tenant: string, index: number) => ({
  ...{ op: "acquire", tenant, name: "job", holder: `${tenant}-${index}`, ttlMs: 600_000, waitMs: 60_000 },
});

const statuses = (answers: readonly { readonly status: number }[]): readonly number[] =>
  answers.map(({ status }) => status);

async function open(server: TestServer, key: string | undefined): Promise<TestStream> {
  return await TestStream.open(server.url, bearer(key));
}

/** The status of an event stream, which stays open. */
async function events(server: TestServer, key: string | undefined): Promise<number> {
  const abort = new AbortController();
  onTestFinished(() => abort.abort());
  return (await fetch(`${server.url}/v1/watch`, { headers: bearer(key), signal: abort.signal })).status;
}

describe("waiters", () => {
  it("of one key and of one tenant are limited to their share, and leave places for others", async () => {
    const server = await keyedServer(TENANTS, LIMITS);
    const [greedy, partner, modest] = await Promise.all(server.keys.map((key) => open(server, key)));
    for (const tenant of ["greedy", "modest"])
      await server.server.service.execute({
        ...{ op: "acquire", key: { tenant, name: "job" }, holder: "first", ttlMs: 600_000 },
      });
    greedy?.post(...Array.from({ length: 20 }, (_, index) => wait("greedy", index)));
    await until("those without a place are answered", () => greedy?.answers.size === 16);
    const [refused] = [...(greedy?.answers.values() ?? [])];
    expect(refused).toMatchObject({
      status: 429,
      body: { reason: "TOO_MANY_REQUESTS", retryAfterMs: 1_000 },
    });
    expect(refused.body.detail).toContain("this API key may have 4 waiters");
    expect((await partner?.ask(wait("greedy", 99)))?.[0].body.detail).toContain("this tenant may have 4");
    modest?.post(wait("modest", 0));
    await until("the other tenant waits", () => server.server.queue.size === 5);
    greedy?.socket.terminate();
    await until("the places are free", () => server.server.queue.size === 1);
    partner?.post(wait("greedy", 100));
    await until("the partner waits", () => server.server.queue.size === 2);
  });
});

describe("watches", () => {
  it("of one key and of one tenant are limited to their share, over streams and event streams together", async () => {
    const server = await keyedServer([{}, {}], LIMITS);
    const [first, second] = server.keys;
    const stream = await open(server, first);
    const ids = stream.post({ op: "watch" }, { op: "watch" }, { op: "watch" });
    await Promise.all(ids.map((id) => stream.answer(id)));
    expect([await events(server, first), await events(server, first)]).toEqual([200, 429]);
    expect(statuses(await stream.ask({ op: "watch", tenant: "another" }))).toEqual([429]);
    const other = await open(server, second);
    expect((await other.ask({ op: "watch" }))[0].body.detail).toContain("this tenant may have 4 watches");
    expect(statuses(await other.ask({ op: "watch", tenant: "another" }))).toEqual([200]);
    await stream.ask({ op: "unwatch", target: ids[0] });
    expect(statuses(await stream.ask({ op: "watch" }))).toEqual([200]);
  });

  it("are limited in all, also where no keys are needed", async () => {
    const server = await testServer(LIMITS);
    const stream = await TestStream.open(server.url);
    const answers = await stream.ask(...Array.from({ length: 9 }, () => ({ op: "watch" })));
    expect(statuses(answers)).toEqual([...Array.from({ length: 8 }, () => 200), 429]);
  });
});

describe("connections", () => {
  const served = '{"status":"ok"}';

  /** Asks for health by a connection that stays. */
  function healthOf(url: string) {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    const client = { socket, text: "", isClosed: false };
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      client.text += chunk;
    });
    socket.on("error", () => undefined);
    socket.on("close", () => {
      client.isClosed = true;
    });
    socket.write("GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
    return client;
  }

  it("of one address, with a key or without, leave some to others", async () => {
    const { url } = await keyedServer([{}], { connectionLimit: "10" });
    const clients = Array.from({ length: 8 }, () => healthOf(url));
    await until("they are served", () => clients.every(({ text }) => text.endsWith(served)));
    const refused = healthOf(url);
    await until("the next is closed", () => refused.isClosed);
    expect(refused.text).toBe("");
    expect(clients.some(({ isClosed }) => isClosed)).toBe(false);
    clients[0]?.socket.destroy();
    await until("there is a place again", async () => {
      const next = healthOf(url);
      await until("it is answered or closed", () => next.text.endsWith(served) || next.isClosed);
      return next.text.endsWith(served);
    });
  });

  it.each([
    ["no keys are needed", async () => await testServer({ connectionLimit: "10" })],
    [
      "a proxy makes them all",
      async () => await keyedServer([{}], { connectionLimit: "10", behindProxy: "yes" }),
    ],
  ])("are not counted by address where %s", async (_where, start) => {
    const { url } = await start();
    const clients = Array.from({ length: 9 }, () => healthOf(url));
    await until("they are served", () => clients.every(({ text }) => text.endsWith(served)));
  });

  it("of one address are not those of another", () => {
    const addresses = new Addresses(10);
    for (let count = 0; count < 8; count += 1) expect(addresses.take("10.0.0.1")).not.toBeNull();
    expect(addresses.take("10.0.0.1")).toBeNull();
    expect(addresses.take("10.0.0.2")).not.toBeNull();
  });

  it("of one key are limited to its share: streams and event streams", async () => {
    const server = await keyedServer([{}, {}], { connectionLimit: "10", sharePercent: "20" });
    const [first, second] = server.keys;
    const stream = await open(server, first);
    expect([await events(server, first), await events(server, first)]).toEqual([200, 429]);
    await expect(open(server, first)).rejects.toThrow("429");
    await open(server, second);
    stream.socket.terminate();
    await until("the place is free", async () => {
      try {
        await open(server, first);
        return true;
      } catch {
        return false;
      }
    });
  });
});
