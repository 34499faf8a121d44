/** `solehold/mysql`: leases in a table of MariaDB or MySQL, through `mysql2`. */
export { openMysqlStore } from "./open.ts";
export type { MysqlPool, MysqlStoreOptions } from "./options.ts";
export { mysqlSchema } from "./schema.ts";
