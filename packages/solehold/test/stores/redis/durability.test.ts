/** What an acknowledged write survives: what `durable` says, and what `replicas` waits for. */
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startProxy, startRedis } from "../../../../../scripts/engines/index.mjs";
import { openRedisStore, type RedisStore, type RedisStoreOptions } from "../../../src/stores/redis/index.ts";
import { applyOne, create, recordOf, rejection, until, writeOf } from "../records.ts";

type Server = Awaited<ReturnType<typeof startRedis>>;

const portOf = ({ url }: Server): number => Number(new URL(url).port);
const closing: (() => unknown)[] = [];
let primary: Server;
let replica: Server;
/** Between the two servers. */
let replication: Awaited<ReturnType<typeof startProxy>>;
let onPrimary: Redis;
let onReplica: Redis;

beforeEach(async () => {
  const flags = ["--appendfsync", "always", "--repl-diskless-sync-delay", "0"];
  primary = await startRedis({ flags });
  replication = await startProxy({ targetPort: portOf(primary) });
  replica = await startRedis({ flags: ["--replicaof", "127.0.0.1", `${replication.port}`] });
  onPrimary = new Redis(primary.url).on("error", () => undefined);
  onReplica = new Redis(replica.url).on("error", () => undefined);
  await until("the replica is connected", async () =>
    /master_link_status:up/.test(await onReplica.info("replication")) ? true : null,
  );
  // The primary counts it only from its first acknowledgement on, up to a second later.
  await onPrimary.publish("in-step", "");
  expect(await onPrimary.wait(1, 0)).toBe(1);
});

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  for (const client of [onPrimary, onReplica]) client.disconnect();
  await replication.close();
  await Promise.all([primary.stop(), replica.stop()]);
});

async function open(options: Partial<RedisStoreOptions> = {}): Promise<RedisStore> {
  const store = await openRedisStore({ url: primary.url, timeoutMs: 2_000, ...options });
  closing.push(() => store.close());
  return store;
}

describe("with a replica that may be promoted", () => {
  it("a store is durable only if it waits for it", async () => {
    expect((await open()).capabilities.durable).toBe(false);
    expect((await open({ replicas: 1 })).capabilities.durable).toBe(true);
    expect((await open({ url: `${primary.url}?replicas=1` })).capabilities.durable).toBe(true);
  });

  it("a write that is acknowledged is on the replica", async () => {
    const store = await open({ replicas: 1 });
    for (let round = 0; round < 20; round += 1) {
      const record = recordOf(`replicated/${round}`);
      await create(store, record);
      expect(await onReplica.get(`{solehold:}default/${record.key.name}`)).toContain(record.nonce);
    }
  });

  it("a write that did not reach it is unknown, and nobody reads it as done until it has", async () => {
    const [store, other] = [await open({ replicas: 1 }), await open({ replicas: 1 })];
    const version = await create(store, recordOf("cut-off"));
    replication.freeze();
    const next = recordOf("cut-off", { renewals: 1 });
    const failure = await rejection(store.apply([writeOf(next, version)]));
    expect(failure).toMatchObject({ name: "StoreError", kind: "unreachable", outcome: "unknown" });
    expect(failure.message).toContain("replicas");
    // The primary has it. Whoever looks it up must not believe in it: a failover now would lose it.
    for (const reader of [store, other]) {
      expect(await rejection(reader.read([next.key]))).toMatchObject({ kind: "unreachable" });
    }
    replication.heal();
    const { records } = await until("the replica has it", () => other.read([next.key]));
    expect(records[0]).toMatchObject({ record: { nonce: next.nonce } });
  });

  it("what was acknowledged is there after a failover, although the primary had more", async () => {
    const store = await open({ replicas: 1 });
    const version = await create(store, recordOf("kept"));
    const acknowledged = recordOf("kept", { renewals: 1 });
    const written = await applyOne(store, writeOf(acknowledged, version));
    replication.freeze();
    await rejection(
      store.apply([
        writeOf(recordOf("kept", { renewals: 2 }), written.kind === "applied" ? written.version : ""),
      ]),
    );
    await primary.kill();
    await onReplica.replicaof("NO", "ONE");
    const newcomer = await openRedisStore({ url: replica.url });
    closing.push(() => newcomer.close());
    const { records } = await newcomer.read([acknowledged.key]);
    expect(records[0]).toMatchObject({ kind: "found", record: { nonce: acknowledged.nonce } });
  });
});

it("a store that waits for more replicas than there are cannot be opened", async () => {
  const failure = await rejection(open({ replicas: 2, timeoutMs: 600 }));
  expect(failure).toMatchObject({ kind: "unreachable", outcome: "not-applied" });
  expect(failure.message).toContain("of 2 replicas only 1");
});

it("a server that cannot wait for disks is refused where that is asked for", async () => {
  for (const options of [{ fsync: "wait" as const }, { url: `${primary.url}?fsync=wait` }]) {
    const failure = await rejection(open(options));
    expect(failure).toMatchObject({ kind: "config", outcome: "not-applied" });
    expect(failure.message).toMatch(/7\.2|unknown command/);
  }
});

/**
 * A client of a server that knows WAITAOF, which the tests' own does not: INFO shows another version, and WAITAOF is
 * answered here, as Redis 7.2 documents it.
 */
function newerClient(
  answer: (args: readonly string[]) => readonly number[],
  client = new Redis(primary.url, { lazyConnect: true }),
) {
  const [call, duplicate] = [client.call.bind(client), client.duplicate.bind(client)];
  return Object.assign(client, {
    call: async (command: string, args: string[]): Promise<unknown> => {
      if (command === "waitaof") return answer(args);
      const reply = await call(command, args);
      const isInfo = Array.isArray(reply) && String(reply[2]).includes("redis_version");
      return isInfo
        ? reply.with(2, String(reply[2]).replace(/redis_version:.*/, "redis_version:7.2.4"))
        : reply;
    },
    duplicate: (...overrides: Parameters<typeof duplicate>) => newerClient(answer, duplicate(...overrides)),
  });
}

it("where the server can (by a stand-in), each write waits for the disks of the primary and the replicas", async () => {
  let counts = [1, 1];
  let asked: readonly string[] = [];
  const client: unknown = newerClient((args) => {
    asked = args;
    return counts;
  });
  const store = await openRedisStore({
    client: client as Redis,
    replicas: 1,
    fsync: "wait",
    timeoutMs: 2_000,
  });
  closing.push(() => store.close());
  expect(store.capabilities.durable).toBe(true);
  const version = await create(store, recordOf("synced"));
  expect(asked).toEqual(["1", "1", "1000"]);
  for (const short of [
    [0, 1],
    [1, 0],
  ]) {
    counts = short;
    const failure = await rejection(store.apply([writeOf(recordOf("synced"), version)]));
    expect(failure).toMatchObject({ kind: "unreachable", outcome: "unknown" });
  }
});
