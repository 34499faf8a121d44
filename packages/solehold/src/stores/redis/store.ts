/**
 * Redis or Valkey as a lease store. One script call for a whole batch, on the server's clock. Records never expire in
 * Redis: a released lease stays as a tombstone until it is collected.
 *
 * Durable only as far as the server is, and its replicas are waited for: see acknowledgement.ts. How a loss is noticed
 * is written in data.ts, what it means in docs/stores/redis.md.
 */
import { randomId } from "../../env/index.ts";
import { type FullStore, fullCapabilities } from "../../store/index.ts";
import { acknowledgementOf, assertCanWait, type Durability, isDurable } from "./acknowledgement.ts";
import { changesFeed } from "./changes.ts";
import { RedisData } from "./data.ts";
import type { RedisLayout } from "./layout.ts";
import type { LinkOptions, RedisLink } from "./link.ts";
import { listPage } from "./listing.ts";
import { applyWrites, readRecords } from "./records.ts";
import { READ } from "./scripts.ts";

export type RedisStore = FullStore;

const BATCHES = {
  // Larger calls no longer fit what a socket takes at once, and other users of the server would notice them.
  maxBatch: 128,
  // The server works on one call while the client prepares the next.
  maxConcurrentCalls: 2,
  minBatch: 16,
};
/** 72 random bits. */
const CLIENT_ID_LENGTH = 12;

export async function redisStore(
  options: LinkOptions,
  layout: RedisLayout,
  durability: Durability,
): Promise<RedisStore> {
  // What is published reaches only those who listen at the primary: a call notices when it is another.
  const look = (): void => void data.readAside(READ, [], []).catch(() => undefined);
  const feed = changesFeed(options, layout.changedChannel, look);
  const acknowledgement = acknowledgementOf(durability, options.timeoutMs);
  const data = new RedisData(options, layout, acknowledgement, () => feed.restart());
  const durable = await (async () => {
    const { server, link } = await data.joined();
    assertCanWait(server, durability, options.driver.address);
    return isDurable(server, durability, await syncsEveryWrite(link));
  })().catch(async (error: unknown) => {
    await data.close();
    throw error;
  });
  const client = randomId(options.env).slice(0, CLIENT_ID_LENGTH);
  let writes = 0;
  const newVersion = (): string => {
    writes += 1;
    return `${client}.${writes.toString(36)}`;
  };
  return {
    name: "redis",
    capabilities: fullCapabilities({ durable, clock: "reply", ...BATCHES }),
    read: (keys) => readRecords(data, keys),
    apply: (all) => applyWrites(data, all, newVersion),
    list: (query) => listPage(query, data),
    watch: (scope, listener) => feed.watch(scope, listener),
    close: async () => {
      await feed.close();
      await data.close();
    },
  };
}

async function syncsEveryWrite(link: RedisLink): Promise<"yes" | "no"> {
  try {
    const reply = await link.request((connection) => connection.call("config", ["get", "appendfsync"]));
    return JSON.stringify(reply).includes("always") ? "yes" : "no";
  } catch {
    // Not every user may ask; a store that cannot be shown to be durable is not called durable.
    return "no";
  }
}
