/** The kit on a Redis Cluster of two nodes, and what a client for a single server is told by one. */
import { Cluster, Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startRedis } from "../../../../../scripts/engines/index.mjs";
import { openRedisStore } from "../../../src/stores/redis/index.ts";
import { describeStore } from "../../../src/testing/index.ts";
import { create, recordOf, rejection, until } from "../records.ts";

const SLOTS = 16_384;
let servers: Awaited<ReturnType<typeof startRedis>>[] = [];
let cluster: Cluster;

beforeAll(async () => {
  const flags = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];
  servers = await Promise.all([startRedis({ flags }), startRedis({ flags })]);
  const nodes = servers.map(({ url }) => new Redis(url));
  const [first, second] = nodes as [Redis, Redis];
  await first.cluster("ADDSLOTSRANGE", 0, SLOTS / 2 - 1);
  await second.cluster("ADDSLOTSRANGE", SLOTS / 2, SLOTS - 1);
  await first.call("CLUSTER", "MEET", "127.0.0.1", new URL(servers[1]!.url).port);
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

describeStore("Redis Cluster", { open, openSecond: open }, { describe, it });

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
    expect(refused).toHaveLength(1);
    expect(refused[0]).toMatchObject({ name: "StoreError", kind: "config", outcome: "not-applied" });
    expect(refused[0]!.message).toContain("ioredis Cluster");
  });
});
