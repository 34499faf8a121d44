/** The kit on a Redis Cluster of two nodes through both clients, a failover in it, and a client for a single server. */
import { Cluster, Redis } from "ioredis";
import { createCluster } from "redis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startRedis } from "../../../../../scripts/engines/index.mjs";
import { describeStore } from "../../../src/conformance/index.ts";
import { openRedisStore } from "../../../src/stores/redis/index.ts";
import { applyOne, create, recordOf, rejection, until, writeOf } from "../records.ts";

const SLOTS = 16_384;
let servers: Awaited<ReturnType<typeof startRedis>>[] = [];
let cluster: Cluster;

beforeAll(async () => {
  const flags = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];
  // The third is a replica of the first.
  servers = await Promise.all([1, 2, 3].map(() => startRedis({ flags })));
  const nodes = servers.map(({ url }) => new Redis(url));
  const [first, second, third] = nodes as [Redis, Redis, Redis];
  await first.cluster("ADDSLOTSRANGE", 0, SLOTS / 2 - 1);
  await second.cluster("ADDSLOTSRANGE", SLOTS / 2, SLOTS - 1);
  for (const { url } of servers.slice(1)) {
    await first.call("CLUSTER", "MEET", "127.0.0.1", new URL(url).port);
  }
  await first.config("SET", "repl-diskless-sync-delay", "0");
  await until("the third is a replica", async () => third.cluster("REPLICATE", await first.cluster("MYID")));
  for (const node of nodes) {
    await until("the nodes agree", async () =>
      /cluster_state:ok/.test(String(await node.cluster("INFO"))) ? true : null,
    );
    node.disconnect();
  }
  cluster = new Cluster(servers.map(({ url }) => ({ host: "127.0.0.1", port: Number(new URL(url).port) })));
  cluster.on("error", () => undefined);
});

afterAll(async () => {
  cluster?.disconnect();
  for (const server of servers) await server.stop();
});

const open = () => openRedisStore({ client: cluster });

const openNodeRedis = () =>
  openRedisStore({ client: createCluster({ rootNodes: servers.map(({ url }) => ({ url })) }) as never });

describeStore("Redis Cluster", { open, openSecond: open }, { describe, it });
describeStore(
  "Redis Cluster through node-redis",
  { open: openNodeRedis, openSecond: open },
  { describe, it },
);

describe("Redis Cluster", () => {
  it("serves prefixes from whichever node has their slot", async () => {
    for (const prefix of ["one:", "two:", "three:", "four:"]) {
      const store = await openRedisStore({ client: cluster, prefix });
      const record = recordOf("job");
      await create(store, record);
      expect((await store.read([record.key])).records[0]).toMatchObject({ kind: "found" });
      await store.close();
    }
  });

  it("tells a client for a single server to be a cluster client", async () => {
    const errors = await Promise.all(
      servers.map(({ url }) => rejection(openRedisStore({ url }).then((store) => store.close()))),
    );
    const refused = errors.filter(({ kind }) => kind !== "answered");
    expect(refused).toHaveLength(2);
    for (const refusal of refused) {
      expect(refusal).toMatchObject({ name: "StoreError", kind: "config", outcome: "not-applied" });
      expect(refusal.message).toContain("cluster client");
    }
  });

  it.each([
    ["ioredis", () => cluster],
    ["node-redis", () => createCluster({ rootNodes: servers.map(({ url }) => ({ url })) }) as never],
  ])("follows its slot when a replica takes over, through %s", async (_, client) => {
    // The failover of the first run is undone by the second: then it is the other one that is promoted.
    const [first, , third] = servers.map(({ url }) => new Redis(url)) as [Redis, Redis, Redis];
    const isReplica = async (node: Redis): Promise<boolean> =>
      /role:slave/.test(await node.info("replication"));
    const promoted = (await isReplica(third)) ? third : first;
    const demoted = promoted === third ? first : third;
    // A prefix whose slot the pair has.
    const slots = await Promise.all(
      ["one:", "two:", "three:"].map((each) => promoted.cluster("KEYSLOT", `{${each}}`)),
    );
    const prefix = ["one:", "two:", "three:"][slots.findIndex((slot) => slot < SLOTS / 2)]!;
    const store = await openRedisStore({ client: client() as never, prefix, timeoutMs: 2_000 });
    const version = await create(store, recordOf(`moved/${_}`));
    await until("the replica is promoted", async () => {
      await promoted.cluster("FAILOVER").catch(() => undefined);
      return (await isReplica(demoted)) && !(await isReplica(promoted)) ? true : null;
    });
    const next = writeOf(recordOf(`moved/${_}`, { renewals: 1 }), version);
    const written = await until("the new node answers", async () => {
      const result = await applyOne(store, next);
      return result.kind === "applied" ? result : null;
    });
    expect(written.kind).toBe("applied");
    expect((await store.read([])).serverChangedAtMs).toBeGreaterThan(0);
    await store.close();
    for (const node of [first, third]) node.disconnect();
  });
});
