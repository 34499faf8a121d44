/** `solehold/redis`: Redis and Valkey, through ioredis or node-redis. */
export type { IoRedisClient, IoRedisCluster } from "./ioredis-driver.ts";
export type { NodeRedisClient } from "./node-redis-driver.ts";
export { openRedisStore } from "./open.ts";
export type { RedisClient, RedisClientOptions, RedisStoreOptions, RedisUrlOptions } from "./options.ts";
export type { RedisStore } from "./store.ts";
