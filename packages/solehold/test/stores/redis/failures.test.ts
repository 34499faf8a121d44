/** A server that stops, dies, comes back, or is cut off: what the caller learns, and that nothing breaks. */

import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { inspect } from "node:util";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startProxy, startRedis } from "../../../../../scripts/engines/index.mjs";
import { type LeaseStore, StoreError } from "../../../src/store/index.ts";
import { openRedisStore } from "../../../src/stores/redis/index.ts";
import { applyOne, create, HIGH, recordOf, rejection, until, writeOf } from "../records.ts";

let server: Awaited<ReturnType<typeof startRedis>>;
const open: LeaseStore[] = [];
const strays: unknown[] = [];
const noteStray = (error: unknown): void => void strays.push(error);

beforeAll(async () => {
  process.on("unhandledRejection", noteStray).on("uncaughtException", noteStray);
  // One is killed here, and what it acknowledged must be there again: syncing every second, Redis answers before it
  // writes whenever the disk is busy.
  server = await startRedis({ flags: ["--appendfsync", "always"] });
});

afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
  await server.resume();
  expect(strays.splice(0)).toEqual([]);
});

afterAll(async () => {
  process.off("unhandledRejection", noteStray).off("uncaughtException", noteStray);
  await server?.stop();
});

async function keep<T extends LeaseStore>(store: Promise<T>): Promise<T> {
  open.push(await store);
  return store;
}

let proxy: Awaited<ReturnType<typeof startProxy>> | null = null;
const proxyUrl = (): string => proxy!.through(server.url);
const portOf = (url: string): number => Number(new URL(url).port);

for (const [client, options] of [
  ["ioredis by URL", () => ({ url: server.url })],
  ["an ioredis client", () => ({ client: new Redis(server.url, { lazyConnect: true }) })],
  ["a node-redis client", () => ({ client: createClient({ url: server.url }) })],
] as const) {
  describe(`through ${client}`, () => {
    it("a stopped server costs one timeout: writes are unknown, reads fail, and all works again after", async () => {
      const store = await keep(openRedisStore({ ...options(), timeoutMs: 700 }));
      const version = await create(store, recordOf(`stopped/${client}`));
      const record = recordOf(`stopped/${client}`, { generation: HIGH + 1n });
      await server.pause();
      const write = await rejection(store.apply([writeOf(record, version)]));
      expect(write).toMatchObject({ name: "StoreError", kind: "timeout", outcome: "unknown" });
      const read = await rejection(store.read([record.key]));
      expect(read.outcome).toBe("not-applied");
      await server.resume();
      const stored = await until("the store works again", async () => {
        const [found] = (await store.read([record.key])).records;
        return found?.kind === "found" && found.version !== version ? found : null;
      });
      expect(stored.record.nonce).toBe(record.nonce);
    });

    it("a killed server is reported as unreachable without delay beyond the timeout, and found again", async () => {
      const store = await keep(openRedisStore({ ...options(), timeoutMs: 700 }));
      const first = recordOf(`killed/${client}`);
      await create(store, first);
      await server.kill();
      const lost = await rejection(store.apply([writeOf(recordOf(`killed/later/${client}`))]));
      expect(lost).toMatchObject({ name: "StoreError", kind: "unreachable" });
      expect(lost.message).not.toContain("\n");
      await server.restart();
      await until("the record is there again", async () => {
        const [found] = (await store.read([first.key])).records;
        return found?.kind === "found" ? found : null;
      });
    });
  });
}

describe("a call in flight", () => {
  it("is unknown when its connection is reset, and is never sent a second time", async () => {
    const proxy = await startProxy({ targetPort: portOf(server.url) });
    try {
      const store = await keep(openRedisStore({ url: proxy.through(server.url) }));
      const direct = await keep(openRedisStore({ url: server.url }));
      const first = recordOf("reset");
      const version = await create(store, first);
      proxy.dropReplies();
      const dropped = proxy.nextDroppedReply();
      const second = recordOf("reset", { generation: HIGH + 1n });
      const call = rejection(store.apply([writeOf(second, version)]));
      await dropped;
      proxy.heal();
      expect(await call).toMatchObject({ kind: "unreachable", outcome: "unknown" });
      const applied = (await direct.read([first.key])).records[0]!;
      expect(applied).toMatchObject({ kind: "found", record: { nonce: second.nonce } });
      // Were it sent again on the new connection it would be refused, but it would also be counted.
      const admin = new Redis(server.url);
      const before = await admin.hget("{solehold:}$identity", "writes");
      await until("the client is back", async () => (await store.read([first.key])).records);
      expect(await admin.hget("{solehold:}$identity", "writes")).toBe(before);
      admin.disconnect();
    } finally {
      await proxy.close();
    }
  });

  it("does not fail when the server forgets its scripts", async () => {
    const store = await keep(openRedisStore({ url: server.url }));
    const admin = new Redis(server.url);
    const version = await create(store, recordOf("forgotten"));
    await admin.script("FLUSH");
    const next = recordOf("forgotten", { generation: HIGH + 1n });
    expect((await applyOne(store, writeOf(next, version))).kind).toBe("applied");
    await admin.script("FLUSH");
    expect((await store.read([next.key])).records[0]!.kind).toBe("found");
    admin.disconnect();
  });

  it("of a closed store is rejected, and so is every later one", async () => {
    const store = await openRedisStore({ url: server.url });
    await server.pause();
    const call = rejection(store.apply([writeOf(recordOf("closing"))]));
    await store.close();
    expect((await call).outcome).toBe("unknown");
    expect(await rejection(store.read([]))).toMatchObject({ kind: "closed", outcome: "not-applied" });
  });
});

/** A way to the server whose open connections can be made to swallow everything, while new ones work. */
async function startTunnel() {
  const pairs: (readonly [Socket, Socket])[] = [];
  const listener = createServer((near) => {
    const far = connect(portOf(server.url), "127.0.0.1");
    pairs.push([near, far]);
    near.on("error", () => undefined).pipe(far);
    far.on("error", () => undefined).pipe(near);
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  return {
    url: `redis://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    swallow: () => {
      for (const [near, far] of pairs) {
        near.unpipe(far).resume();
        far.unpipe(near).resume();
      }
    },
    close: () => {
      listener.close();
      for (const socket of pairs.flat()) socket.destroy();
    },
  };
}

it("a connection that died without a word is given up after one timeout, and replaced", async () => {
  const tunnel = await startTunnel();
  const store = await keep(openRedisStore({ url: tunnel.url, timeoutMs: 700 }));
  tunnel.swallow();
  expect(await rejection(store.read([]))).toMatchObject({ kind: "timeout" });
  expect((await store.read([])).records).toEqual([]);
  await store.close();
  tunnel.close();
});

describe("a server that refuses", () => {
  it("for want of memory is full, and nothing was written", async () => {
    const store = await keep(openRedisStore({ url: server.url }));
    const admin = new Redis(server.url);
    const record = recordOf("no-memory");
    await admin.config("SET", "maxmemory", "1");
    const refused = await rejection(store.apply([writeOf(record)]));
    await admin.config("SET", "maxmemory", "0");
    admin.disconnect();
    expect(refused).toMatchObject({ kind: "full", outcome: "not-applied" });
    // The client hangs the command onto its error: whoever logs ours must not log the record.
    expect(inspect(refused, { depth: null })).not.toContain(record.tokenHash);
    expect((await store.read([record.key])).records[0]!.kind).toBe("absent");
  });

  it("for want of replicas is unreachable, and nothing was written", async () => {
    const store = await keep(openRedisStore({ url: server.url }));
    const admin = new Redis(server.url);
    await admin.config("SET", "min-replicas-to-write", "1");
    const record = recordOf("no-replicas");
    const refused = await rejection(store.apply([writeOf(record)]));
    await admin.config("SET", "min-replicas-to-write", "0");
    admin.disconnect();
    expect(refused).toMatchObject({ kind: "unreachable", outcome: "not-applied" });
    expect(refused.message).toContain("replicas");
    expect((await store.read([record.key])).records[0]!.kind).toBe("absent");
  });
});

describe.each([
  ["ioredis", () => ({ url: proxyUrl() })],
  ["node-redis", () => ({ client: createClient({ url: proxyUrl() }) })],
])("connections of %s that end in any state", (_, options) => {
  it("disturb nobody else, and the store goes on", async () => {
    proxy = await startProxy({ targetPort: portOf(server.url) });
    const admin = new Redis(server.url);
    const store = await keep(openRedisStore({ ...options(), timeoutMs: 500 }));
    const key = recordOf("disturbed").key;
    await store.watch({ tenant: null, prefix: "" }, () => undefined);
    const ends: (() => unknown)[] = [
      () => proxy!.cut(),
      () => admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"),
      () => admin.call("CLIENT", "KILL", "TYPE", "pubsub"),
      () => proxy!.freeze(),
    ];
    for (let round = 0; round < 40; round += 1) {
      const calls = [
        store.read([key]),
        store.apply([writeOf(recordOf(`disturbed/${round}`))]),
        store.watch({ tenant: null, prefix: "x" }, () => undefined).then((watch) => watch.close()),
      ].map((call) => rejection(call));
      // Now before the requests are sent, now while they are under way, now when they are answered.
      for (let tick = 0; tick < round % 4; tick += 1) await new Promise((resolve) => setImmediate(resolve));
      await ends[round % ends.length]!();
      for (const end of await Promise.all(calls)) {
        expect(end.kind === "answered" || (end as unknown) instanceof StoreError).toBe(true);
      }
      proxy.heal();
    }
    await until("the store answers", () => store.read([key]));
    const closing = store.close();
    proxy.cut();
    await closing;
    admin.disconnect();
    await proxy.close();
  });
});
