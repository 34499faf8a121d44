/** `solehold/guards`: for the side that is written to: SQL, Redis, object storage, HTTP. */

export * from "./drizzle.ts";
export { FenceGate, type FenceMemory } from "./fence-gate.ts";
export { type FencedObject, FencedObjectWriter } from "./fenced-object-writer.ts";
export { type Fenced, FencedResource } from "./fenced-resource.ts";
export * from "./http.ts";
export * from "./knex.ts";
export * from "./kysely.ts";
export * from "./mysql2.ts";
export * from "./pg.ts";
export * from "./postgres-js.ts";
export {
  FENCE_MISSING_STATE,
  type FenceTriggerOptions,
  fenceTriggerSql,
  STALE_FENCE_STATE,
} from "./postgres-trigger.ts";
export * from "./prisma.ts";
export {
  FENCED_COMMANDS_SCRIPT,
  type FencedCommands,
  RedisGuard,
  type RedisGuardOptions,
  type ScriptClient,
} from "./redis.ts";
export { FENCE_TABLE_SQL, type SqlDialect, type SqlRow, type SqlStatement } from "./sql-fence.ts";
export { type SqlClient, SqlGuard, type WithFenceOptions } from "./sql-guard.ts";
export { type SqliteDatabase, SqliteGuard } from "./sqlite.ts";
export { StaleFenceError } from "./stale-fence-error.ts";
