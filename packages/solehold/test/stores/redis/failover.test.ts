/** Another server takes over: the same store object goes on, with connections that stay open and with Sentinel. */
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startProxy, startRedis, startRedisSentinel } from "../../../../../scripts/engines/index.mjs";
import type { LeaseStore, StoreEvent } from "../../../src/store/index.ts";
import { openRedisStore, type RedisStore, type RedisStoreOptions } from "../../../src/stores/redis/index.ts";
import { applyOne, create, recordOf, rejection, until, writeOf } from "../records.ts";

type Server = Awaited<ReturnType<typeof startRedis>>;

const portOf = ({ url }: Server): number => Number(new URL(url).port);
const closing: (() => unknown)[] = [];
let primary: Server;
let replica: Server;
let proxy: Awaited<ReturnType<typeof startProxy>>;
let [onPrimary, onReplica]: Redis[] = [];

beforeEach(async () => {
  primary = await startRedis();
  replica = await startRedis({ flags: ["--replicaof", "127.0.0.1", `${portOf(primary)}`] });
  proxy = await startProxy({ targetPort: portOf(primary) });
  [onPrimary, onReplica] = [primary, replica].map(({ url }) => new Redis(url).on("error", () => undefined));
  await onPrimary!.config("SET", "repl-diskless-sync-delay", "0");
  await until("the replica is in step", async () =>
    /master_link_status:up/.test(await onReplica!.info("replication")) ? true : null,
  );
});

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  for (const client of [onPrimary, onReplica]) client?.disconnect();
  await proxy?.close();
  await Promise.all([primary?.stop(), replica?.stop()]);
});

async function open(options: RedisStoreOptions): Promise<RedisStore> {
  const store = await openRedisStore({ timeoutMs: 2_000, ...options });
  closing.push(() => store.close());
  return store;
}

/** The replica is promoted, the primary demoted, the address means the new one; no connection is ended. */
async function failOver(): Promise<void> {
  await onReplica!.replicaof("NO", "ONE");
  await onPrimary!.replicaof("127.0.0.1", portOf(replica));
  proxy.moveTo(portOf(replica));
}

async function inStep(): Promise<void> {
  await until("the replica has all", async () => {
    const [mine, theirs] = await Promise.all(
      [onPrimary!, onReplica!].map((each) => each.info("replication")),
    );
    const offset = (text: string): string => /master_repl_offset:(\d+)/.exec(text)?.[1] ?? text;
    return offset(mine!) === offset(theirs!) ? true : null;
  });
}

describe.each([
  ["ioredis by URL", () => ({ url: proxy.through(primary.url) })],
  ["an ioredis client", () => ({ client: new Redis(proxy.through(primary.url), { lazyConnect: true }) })],
  ["a node-redis client", () => ({ client: createClient({ url: proxy.through(primary.url) }) })],
])("a primary that is demoted behind one address, through %s", (_, options) => {
  it("is left: the write is refused as not applied, and the next ones go to the new primary", async () => {
    const store = await open(options());
    const version = await create(store, recordOf("job"));
    await inStep();
    await failOver();
    const next = recordOf("job", { renewals: 1 });
    const refused = await rejection(store.apply([writeOf(next, version)]));
    expect(refused).toMatchObject({ name: "StoreError", kind: "unreachable", outcome: "not-applied" });
    expect(refused.message).toContain("replica");
    const result = await until("the new primary answers", () => applyOne(store, writeOf(next, version)));
    expect(result).toMatchObject({ kind: "applied" });
    expect(await onReplica!.get("{solehold:}default/job")).toContain(next.nonce);
  });

  it("does not answer reads any more: what it shows may be outdated", async () => {
    const store = await open(options());
    const version = await create(store, recordOf("read"));
    await inStep();
    await failOver();
    expect(await rejection(store.read([recordOf("read").key]))).toMatchObject({ kind: "unreachable" });
    const reply = await until("the new primary answers", () => store.read([recordOf("read").key]));
    expect(reply.records[0]).toMatchObject({ kind: "found", version });
  });
});

it("a change of server is in every later reply, on the clock of the server that answers", async () => {
  const store = await open({ url: proxy.through(primary.url) });
  expect((await store.read([])).serverChangedAtMs ?? null).toBeNull();
  await inStep();
  await failOver();
  const { storeTimeMs, serverChangedAtMs } = await until("the new primary answers", () => store.read([]));
  expect(serverChangedAtMs).toBeLessThanOrEqual(storeTimeMs!);
  expect(storeTimeMs! - serverChangedAtMs!).toBeLessThan(60_000);
  // Whoever comes later knows it, too.
  const newcomer = await open({ url: replica.url });
  expect((await newcomer.read([])).serverChangedAtMs).toBe(serverChangedAtMs);
  expect((await newcomer.apply([])).serverChangedAtMs).toBe(serverChangedAtMs);
});

it("a watcher gets what is written at the new primary", async () => {
  const [watching, writing] = [
    await open({ url: proxy.through(primary.url) }),
    await open({ url: replica.url }).catch(() => null),
  ];
  expect(writing).toBeNull();
  const events: StoreEvent[] = [];
  await watching.watch({ tenant: null, prefix: "" }, (event) => events.push(event));
  await inStep();
  await failOver();
  // A call is what notices; without any the heartbeat makes one.
  await rejection(watching.read([]));
  await until("it has to look", async () => (events.some(({ kind }) => kind === "reset") ? true : null));
  await create(await open({ url: replica.url }), recordOf("after"));
  await until("it was announced", async () => events.find((event) => event.kind === "changed") ?? null);
});

it("a server that loads its data is waited for, and the store goes on", async () => {
  const flags = ["--enable-debug-command", "yes", "--loading-process-events-interval-bytes", "1024"];
  const slow = await startRedis({ flags });
  closing.push(() => slow.stop());
  const [loading, looking] = [new Redis(slow.url), new Redis(slow.url)];
  closing.push(() => [loading, looking].map((client) => client.disconnect()));
  const store = await open({ url: slow.url });
  await create(store, recordOf("loading"));
  const address = await startProxy({ targetPort: portOf(slow) });
  closing.push(() => address.close());
  const moved = await open({ url: address.through(slow.url) });
  await looking.eval("for i = 1, 20000 do redis.call('SET', 'filler:' .. i, i) end", 0);
  await looking.config("SET", "key-load-delay", "2000");
  const reloaded = loading.call("DEBUG", "RELOAD");
  await until("it loads", () =>
    looking.ping().then(
      () => null,
      (error: Error) => error.message,
    ),
  );
  expect(await rejection(store.read([]))).toMatchObject({ kind: "unreachable", outcome: "not-applied" });
  // An address that means another server by now is looked up anew: there it finds other data.
  address.moveTo(portOf(primary));
  expect(await rejection(moved.read([]))).toMatchObject({ kind: "unreachable", outcome: "not-applied" });
  expect(await rejection(moved.read([]))).toMatchObject({ kind: "data-loss" });
  await looking.config("SET", "key-load-delay", "0");
  await reloaded;
  const reply = await until("the store answers", () => store.read([recordOf("loading").key]));
  expect(reply.records[0]).toMatchObject({ kind: "found" });
});

it("Redis Sentinel promotes a replica, and a store by ioredis follows", async () => {
  const sentinel = await startRedisSentinel({ primaryPort: portOf(primary) });
  closing.push(() => sentinel.stop());
  const watcher = new Redis(sentinel.url);
  closing.push(() => watcher.disconnect());
  await until("Sentinel knows the replica", async () => {
    const replicas = (await watcher.call("SENTINEL", "REPLICAS", "primary")) as unknown[];
    return replicas.length === 1 ? true : null;
  });
  const sentinels = [{ host: "127.0.0.1", port: portOf(sentinel) }];
  const client = new Redis({ sentinels, name: "primary", lazyConnect: true });
  const store: LeaseStore = await open({ client });
  const version = await create(store, recordOf("guarded"));
  await inStep();
  await primary.kill();
  const next = recordOf("guarded", { renewals: 1 });
  const result = await until("the store follows", async () => {
    const written = await applyOne(store, writeOf(next, version));
    return written.kind === "applied" ? written : null;
  });
  expect(result.kind).toBe("applied");
  expect(await onReplica!.get("{solehold:}default/guarded")).toContain(next.nonce);
});
