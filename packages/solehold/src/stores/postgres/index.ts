/** `solehold/postgres`: leases in a table of PostgreSQL, through `pg` or postgres.js. */
export type { PgConnection, PgPool, PostgresJsClient } from "./clients.ts";
export type { TableOptions } from "./names.ts";
export type { PostgresStoreOptions } from "./options.ts";
export { postgresSchema } from "./schema.ts";
export { openPostgresStore, PostgresStore } from "./store.ts";
