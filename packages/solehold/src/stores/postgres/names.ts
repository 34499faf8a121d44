/** The names in the database: checked once, quoted everywhere, so that no option can become a statement. */
import { createHash } from "node:crypto";
import { StoreError } from "../../store/index.ts";

export const DEFAULT_SCHEMA = "solehold";
/** The name that the work-order gate gives its table. */
export const DEFAULT_TABLE = "work_order_leases";

/** PostgreSQL cuts identifiers at 63 bytes; the names of index and view add up to 10 to the table's. */
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]{0,47}$/;
const SHARED_LOCK_SALT = "watched";
const SETUP_LOCK_SALT = "setup";

export interface TableOptions {
  /** Default "solehold". */
  readonly schema?: string;
  /** Default "work_order_leases". */
  readonly table?: string;
}

export interface TableNames {
  readonly schema: string;
  readonly table: string;
  /** All quoted and qualified, ready for a statement. */
  readonly sqlSchema: string;
  readonly sqlTable: string;
  readonly sqlView: string;
  /** An index is made in the schema of its table, and its name must not say so. */
  readonly sqlHolderIndex: string;
  /** What earlier versions made instead: the planner could take it for a key (see `schema.ts`). */
  readonly sqlFormerIndex: string;
  /** Where changes are announced: NOTIFY channels belong to one database. */
  readonly channel: string;
  /** Advisory locks: held by everyone who listens, and by whoever creates the table. */
  readonly watchedLock: string;
  readonly setupLock: string;
}

export function tableNames(options: TableOptions = {}): TableNames {
  const schema = checked("schema", options.schema ?? DEFAULT_SCHEMA);
  const table = checked("table", options.table ?? DEFAULT_TABLE);
  const place = `${schema}.${table}`;
  return {
    schema,
    table,
    sqlSchema: quoted(schema),
    sqlTable: `${quoted(schema)}.${quoted(table)}`,
    sqlView: `${quoted(schema)}.${quoted(`${table}_readable`)}`,
    sqlHolderIndex: quoted(`${table}_by_holder`),
    sqlFormerIndex: `${quoted(schema)}.${quoted(`${table}_by_owner`)}`,
    channel: `solehold_${digest(place).slice(0, 24)}`,
    watchedLock: lockNumber(place, SHARED_LOCK_SALT),
    setupLock: lockNumber(place, SETUP_LOCK_SALT),
  };
}

function checked(option: string, value: string): string {
  if (typeof value === "string" && IDENTIFIER.test(value)) return value;
  throw new StoreError(
    "config",
    `option '${option}' must be 1 to 48 letters, digits or '_' and not begin with a digit, got ${JSON.stringify(value)}`,
    { outcome: "not-applied" },
  );
}

function quoted(identifier: string): string {
  return `"${identifier}"`;
}

export function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** A signed 64-bit number, as advisory locks are named by. */
function lockNumber(place: string, salt: string): string {
  return BigInt.asIntN(64, BigInt(`0x${digest(`solehold ${salt} ${place}`).slice(0, 16)}`)).toString();
}
