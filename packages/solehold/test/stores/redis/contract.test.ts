/** The kit on a real Redis, through each client that is accepted. */
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, beforeAll, describe, it } from "vitest";
import { startRedis } from "../../../../../scripts/engines/index.mjs";
import { describeLeases, describeStore } from "../../../src/conformance/index.ts";
import { keyId } from "../../../src/core/index.ts";
import { openRedisStore } from "../../../src/stores/redis/index.ts";
import { kitProcess } from "../../conformance/child.ts";
import { faultyClient } from "../../conformance/faulty.ts";

let server: Awaited<ReturnType<typeof startRedis>>;
let admin: Redis;

beforeAll(async () => {
  server = await startRedis();
  admin = new Redis(server.url);
});

afterAll(async () => {
  admin?.disconnect();
  await server?.stop();
});

const openFaulty = () => faultyClient(server.url, (url) => openRedisStore({ url, timeoutMs: 700 }));

const open = () => openRedisStore({ url: server.url });

describeStore(
  "Redis by URL",
  {
    open,
    openSecond: open,
    openFaulty,
    corrupt: async (key) => void (await admin.append(`{solehold:}${keyId(key)}`, "damage")),
  },
  { describe, it },
);

describeLeases(
  "Redis",
  {
    open,
    openSecond: open,
    openFaulty,
    child: () => kitProcess(server.url),
    patienceMs: 100_000,
  },
  { describe, it },
);

describeStore(
  "Redis through an ioredis client with a key prefix",
  {
    open: () =>
      openRedisStore({
        client: new Redis(server.url, { lazyConnect: true, keyPrefix: "not-ours:" }),
        prefix: "through-ioredis:",
      }),
    openSecond: () => openRedisStore({ url: server.url, prefix: "through-ioredis:" }),
    corrupt: async (key) => {
      await admin.del(`{through-ioredis:}${keyId(key)}`);
      await admin.lpush(`{through-ioredis:}${keyId(key)}`, "not a string");
    },
  },
  { describe, it },
);

describeStore(
  "Redis through a node-redis client",
  {
    open: () => openRedisStore({ client: createClient({ url: server.url }), prefix: "through-node-redis:" }),
    openSecond: () => openRedisStore({ url: server.url, prefix: "through-node-redis:" }),
    corrupt: async (key) =>
      void (await admin.set(`{through-node-redis:}${keyId(key)}`, Buffer.from([0xff, 0]))),
  },
  { describe, it },
);
