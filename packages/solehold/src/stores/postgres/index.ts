/** `solehold/postgres`: leases in a table of PostgreSQL, through `pg` or postgres.js. */
export type {
  PgConnection,
  PgNotification,
  PgPool,
  PgPoolConnection,
  PostgresJsClient,
} from "./clients.ts";
export type { TableOptions } from "./names.ts";
export type { PostgresStoreOptions } from "./options.ts";
export { postgresSchema } from "./schema.ts";
export { openPostgresStore, PostgresStore } from "./store.ts";
