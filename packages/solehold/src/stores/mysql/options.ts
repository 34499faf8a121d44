/** What can be set, checked when the store is opened: a wrong value is an error at once, with its name. */
import type { StoreError } from "../../store/index.ts";
import {
  type CallOptions,
  configError,
  decodedPart,
  urlParameters,
  withoutPassword,
} from "../support/options.ts";

/** As much of a pool of `mysql2` as is used. Both its forms fit: that with callbacks and that with promises. */
export interface MysqlPool {
  getConnection(...callback: never[]): unknown;
}

interface CommonOptions extends CallOptions {
  /** Default `solehold_leases`, in the database of the connection. Created if it is missing. */
  readonly table?: string;
  /** Statements in flight at once, reads and writes each; by URL also the number of connections. Default 16. */
  readonly concurrency?: number;
  /** Watches list their scope at this interval. Default: no watching. */
  readonly pollMs?: number;
}

export type MysqlStoreOptions = CommonOptions &
  (
    | {
        /** `mysql://user:password@host:3306/database?ssl-mode=VERIFY_IDENTITY`, or `mariadb:`. */
        readonly url: string;
      }
    | {
        /** A pool of `mysql2`. It is not closed with the store. */
        readonly pool: MysqlPool;
      }
  );

export interface MysqlAddress {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user?: string;
  readonly password?: string;
  readonly ssl?: { readonly rejectUnauthorized: boolean; readonly verifyIdentity: boolean };
}

const EXAMPLE = "mysql://user:password@host:3306/database";
const TABLE = /^[A-Za-z_][A-Za-z0-9_]{0,57}$/;
const SSL_MODES: Readonly<Record<string, MysqlAddress["ssl"]>> = {
  DISABLED: undefined,
  REQUIRED: { rejectUnauthorized: false, verifyIdentity: false },
  VERIFY_CA: { rejectUnauthorized: true, verifyIdentity: false },
  VERIFY_IDENTITY: { rejectUnauthorized: true, verifyIdentity: true },
};

export function parseMysqlUrl(text: unknown): MysqlAddress {
  const shown = withoutPassword(text);
  if (typeof text !== "string" || !/^(mysql|mariadb):/i.test(text) || !URL.canParse(text))
    throw problem(`url must look like ${EXAMPLE}, got '${shown}'`);
  const url = new URL(text);
  const decoded = (name: string, text: string): string => decodedPart("mysql", name, text);
  const database = decoded("database", url.pathname.slice(1));
  if (url.hostname === "" || database === "" || database.includes("/"))
    throw problem(`url must name a host and a database, as in ${EXAMPLE}, got '${shown}'`);
  const { "ssl-mode": mode = "DISABLED" } = urlParameters("mysql", url, ["ssl-mode"]);
  if (!(mode in SSL_MODES))
    throw problem(`ssl-mode must be one of ${Object.keys(SSL_MODES).join(", ")}, got '${mode}'`);
  const ssl = SSL_MODES[mode];
  return {
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? 3306 : Number(url.port),
    database,
    ...(url.username !== "" && { user: decoded("user", url.username) }),
    ...(url.password !== "" && { password: decoded("password", url.password) }),
    ...(ssl !== undefined && { ssl }),
  };
}

/** With room for what the view's name adds. */
export function assertTable(table: unknown): string {
  if (typeof table === "string" && TABLE.test(table)) return table;
  throw problem(
    `table must have 1 to 58 letters, digits or '_' and not begin with a digit, got '${String(table)}'`,
  );
}

export function problem(message: string): StoreError {
  return configError(`mysql: ${message}`);
}
