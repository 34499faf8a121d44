/** `solehold/postgres`: leases in a table of PostgreSQL, through `pg` or postgres.js. */

export type { TableOptions } from "./names.ts";
export type { PostgresStoreOptions } from "./options.ts";
export type { PgConnection, PgPool } from "./pg-driver.ts";
export type { PostgresJsClient } from "./postgresjs-driver.ts";
export { postgresSchema } from "./schema.ts";
export { openPostgresStore, type PostgresStore } from "./store.ts";
