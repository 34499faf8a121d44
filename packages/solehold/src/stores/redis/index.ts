/** `solehold/redis`: Redis and Valkey, through ioredis or node-redis. */
export { openRedisStore } from "./open.ts";
export type { RedisClient, RedisStoreOptions } from "./options.ts";
export type { RedisStore } from "./store.ts";
