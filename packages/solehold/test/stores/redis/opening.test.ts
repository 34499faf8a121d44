/** Opening with something wrong: one line that says what to do, at once, and never a password. */
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { Redis } from "ioredis";
import { createClient, createClientPool, createSentinel } from "redis";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { startProxy, startRedis } from "../../../../../scripts/engines/index.mjs";
import { openRedisStore, type RedisStoreOptions } from "../../../src/stores/redis/index.ts";
import { create, recordOf, rejection, writeOf } from "../records.ts";

let server: Awaited<ReturnType<typeof startRedis>>;
let guarded: Awaited<ReturnType<typeof startRedis>>;
const listeners: Server[] = [];

beforeAll(async () => {
  server = await startRedis();
  guarded = await startRedis({ password: "s3cret" });
});

afterAll(async () => {
  for (const listener of listeners) listener.close();
  await server?.stop();
  await guarded?.stop();
});

async function listening(listener: Server): Promise<number> {
  listeners.push(listener);
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  return (listener.address() as AddressInfo).port;
}

async function failure(options: RedisStoreOptions) {
  const error = await rejection(openRedisStore({ timeoutMs: 2_000, ...options }));
  expect(error).toMatchObject({ name: "StoreError", outcome: "not-applied" });
  expect(error.message).not.toMatch(/\n|s3cret|wr0ng/);
  return error;
}

describe("a URL", () => {
  it("with a port where nothing listens is unreachable", async () => {
    const port = await listening(createServer());
    listeners.pop()!.close();
    const error = await failure({ url: `redis://127.0.0.1:${port}` });
    expect(error).toMatchObject({ kind: "unreachable" });
    expect(error.message).toContain("start Redis or correct the URL");
  });

  it("with an unknown host is unreachable", async () => {
    const error = await failure({ url: "redis://no-such-host.invalid" });
    expect(error).toMatchObject({ kind: "unreachable" });
    expect(error.message).toContain("no-such-host.invalid");
  });

  it("with a wrong password, or none where one is due, is an auth error", async () => {
    const wrong = guarded.url.replace("s3cret", "wr0ng");
    expect((await failure({ url: wrong })).kind).toBe("auth");
    expect((await failure({ url: guarded.url.replace(":s3cret@", "") })).kind).toBe("auth");
    expect((await failure({ client: createClient({ url: wrong }) })).kind).toBe("auth");
  });

  it("with the right password opens", async () => {
    const store = await openRedisStore({ url: guarded.url });
    await create(store, recordOf("guarded"));
    await store.close();
  });

  it("with a database that does not exist is a config error", async () => {
    const error = await failure({ url: `${server.url}/999` });
    expect(error).toMatchObject({ kind: "config" });
    expect(error.message).toContain("database");
  });

  it("of something that is not Redis is a config error", async () => {
    const port = await listening(createHttpServer((_, response) => response.end("hello")));
    const error = await failure({ url: `redis://127.0.0.1:${port}` });
    expect(error).toMatchObject({ kind: "config" });
    expect(error.message).toContain("not Redis");
  });

  it("of something that never answers fails within the timeout", async () => {
    const port = await listening(createServer((socket) => void socket.on("error", () => undefined)));
    const error = await failure({ url: `redis://127.0.0.1:${port}`, timeoutMs: 200 });
    expect(error.kind).toBe("timeout");
  });

  it("with TLS to a server without fails within the timeout and says that TLS was tried", async () => {
    const error = await failure({ url: server.url.replace("redis:", "rediss:"), timeoutMs: 300 });
    expect(error.message).toContain("(TLS)");
  });

  it.each([
    ["nonsense", "must look like"],
    ["redis://a:1,b:2", "one host and a port up to 65535"],
    ["http://127.0.0.1", "must begin with redis:"],
    ["redis://", "host"],
    ["redis://127.0.0.1/zero", "number of a database"],
    ["redis://user:s3cret@127.0.0.1/0?x=1", "may only have replicas and fsync"],
    ["redis://127.0.0.1/0?replicas=", "replicas must be a whole number from 0 to 1000"],
    ["redis://127.0.0.1/0?replicas=all", "replicas must be a whole number from 0 to 1000"],
    ["redis://127.0.0.1/0?fsync=always", 'fsync must be "server" or "wait"'],
    ["redis://user:s3cret%@127.0.0.1", "%25"],
    [undefined as never, "must look like"],
    [6_379 as never, "must look like"],
  ])("like %s is a config error that says how it should look", async (url, rule) => {
    const error = await failure({ url });
    expect(error).toMatchObject({ kind: "config" });
    expect(error.message).toContain(rule);
  });
});

describe("an option", () => {
  it.each([
    [{ prefix: "" }, "prefix"],
    [{ prefix: "with space" }, "prefix"],
    [{ prefix: "{tag}" }, "prefix"],
    [{ prefix: null as never }, "prefix"],
    [{ timeoutMs: 0 }, "timeoutMs"],
    [{ timeoutMs: Number.NaN }, "timeoutMs"],
    [{ replicas: -1 }, "replicas"],
    [{ replicas: 0.5 }, "replicas"],
    [{ fsync: "always" as never }, "fsync"],
  ])("of %j is refused by name", async (wrong, name) => {
    const error = await failure({ url: server.url, ...wrong });
    expect(error).toMatchObject({ kind: "config" });
    expect(error.message).toContain(name);
  });

  it("url beside client, or neither, is refused", async () => {
    const client = createClient({ url: server.url });
    for (const options of [{ url: server.url, client }, {}]) {
      const error = await failure(options as never);
      expect(error).toMatchObject({ kind: "config" });
      expect(error.message).toContain("either");
    }
  });

  it("that is no Redis client is refused", async () => {
    for (const client of [{}, null, "redis://localhost", () => undefined, new Map()]) {
      const error = await failure({ client: client as never });
      expect(error).toMatchObject({ kind: "config" });
      expect(error.message).toContain("ioredis or node-redis");
    }
  });

  it("that is a Sentinel or a pool of node-redis is refused, with what to pass instead", async () => {
    const sentinel = createSentinel({ name: "primary", sentinelRootNodes: [{ host: "127.0.0.1", port: 1 }] });
    for (const client of [sentinel, createClientPool({ url: server.url })]) {
      const error = await failure({ client: client as never });
      expect(error).toMatchObject({ kind: "config" });
      expect(error.message).toContain("`sentinels`");
      expect(error.message).toContain("not a pool");
    }
  });

  it("that would make an ioredis client queue, resend or give up is not taken over from it", async () => {
    const client = new Redis(server.url, {
      lazyConnect: true,
      enableOfflineQueue: true,
      autoResendUnfulfilledCommands: true,
      maxRetriesPerRequest: null,
      retryStrategy: () => 1,
      reconnectOnError: () => 2,
      commandTimeout: 1,
      keyPrefix: "not-ours:",
    });
    const proxy = await startProxy({ targetPort: Number(new URL(server.url).port) });
    client.options.port = proxy.port;
    const [store, direct] = [await openRedisStore({ client }), await openRedisStore({ url: server.url })];
    const version = await create(store, recordOf("sent-once"));
    proxy.dropReplies();
    const dropped = proxy.nextDroppedReply();
    const next = recordOf("sent-once", { renewals: 1 });
    const call = rejection(store.apply([writeOf(next, version)]));
    await dropped;
    proxy.heal();
    expect(await call).toMatchObject({ name: "StoreError", outcome: "unknown" });
    expect((await direct.read([next.key])).records[0]).toMatchObject({ record: { nonce: next.nonce } });
    for (const each of [store, direct, proxy]) await each.close();
  });
});

describe("a server", () => {
  it("that may evict leases is refused", async () => {
    const evicting = await startRedis({
      flags: ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"],
    });
    const error = await failure({ url: evicting.url }).finally(() => evicting.stop());
    expect(error).toMatchObject({ kind: "config" });
    expect(error.message).toContain("noeviction");
  });

  it("that is a replica is refused", async () => {
    const replica = await startRedis({ flags: ["--replicaof", "127.0.0.1", new URL(server.url).port] });
    const error = await failure({ url: replica.url }).finally(() => replica.stop());
    expect(error.message).toMatch(/replica|primary/);
  });

  it("is durable only if it syncs every write", async () => {
    const strict = await startRedis({ flags: ["--appendfsync", "always"] });
    const stores = [await openRedisStore({ url: strict.url }), await openRedisStore({ url: server.url })];
    expect(stores.map(({ capabilities }) => capabilities.durable)).toEqual([true, false]);
    for (const store of stores) await store.close();
    await strict.stop();
  });
});

it("a missing ioredis is a config error that names the command to run", async () => {
  vi.resetModules();
  vi.doMock("ioredis", () => {
    throw new Error("Cannot find package 'ioredis'");
  });
  const { openRedisStore: openWithout } = await import("../../../src/stores/redis/index.ts");
  const error = await rejection(openWithout({ url: server.url }));
  vi.doUnmock("ioredis");
  expect(error).toMatchObject({ kind: "config" });
  expect(error.message).toContain("npm install ioredis");
});
