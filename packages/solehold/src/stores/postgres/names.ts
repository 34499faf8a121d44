/** The names in the database: checked once and quoted everywhere, so that no option can become a statement. */
import { createHash } from "node:crypto";
import { MAX_NAME_LENGTH } from "../../core/index.ts";
import { configError } from "../support/options.ts";

/** PostgreSQL cuts identifiers at 63 bytes; the view's name adds 9 to the table's. */
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]{0,47}$/;

/** Where the row is that names the data set and its servers. No tenant has an empty name. */
export const IS_IDENTITY = "tenant = '' and name = '$identity'";
export const IDENTITY_KEY = { tenant: "", name: "$identity" } as const;

export interface TableOptions {
  /** Default "solehold". */
  readonly schema?: string;
  /** Default "work_order_leases", the name that the work-order gate gives its table. */
  readonly table?: string;
}

export interface TableNames {
  /** Quoted and qualified, ready for a statement. */
  readonly schema: string;
  readonly table: string;
  readonly view: string;
  /** Advisory locks: the first is held in shared mode by all listeners, the second by the client that creates the table. */
  readonly listenerLock: string;
  readonly setupLock: string;
}

export function tableNames(options: TableOptions = {}): TableNames {
  const schema = checked("schema", options.schema ?? "solehold");
  const table = checked("table", options.table ?? "work_order_leases");
  return {
    schema: `"${schema}"`,
    table: `"${schema}"."${table}"`,
    view: `"${schema}"."${table}_readable"`,
    listenerLock: lockNumber(`solehold listeners ${schema}.${table}`),
    setupLock: lockNumber(`solehold setup ${schema}.${table}`),
  };
}

function checked(option: string, value: string): string {
  if (typeof value === "string" && IDENTIFIER.test(value)) return value;
  const rule = "must be 1 to 48 letters, digits or '_' and not begin with a digit";
  throw configError(`postgres: ${option} ${rule}, got ${JSON.stringify(value)}`);
}

export function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** A signed 64-bit number: advisory locks have no other names. */
function lockNumber(text: string): string {
  return BigInt.asIntN(64, BigInt(`0x${digest(text).slice(0, 16)}`)).toString();
}

/** No name that begins with the prefix comes after this text in the order of bytes. */
export function lastWithPrefix(prefix: string): string {
  return prefix + "\u{10ffff}".repeat(MAX_NAME_LENGTH);
}
