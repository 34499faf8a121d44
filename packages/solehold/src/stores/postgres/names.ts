/** The names in the database: checked once and quoted everywhere, so that no option can become a statement. */
import { createHash } from "node:crypto";
import { MAX_NAME_LENGTH } from "../../core/index.ts";
import { StoreError } from "../../store/index.ts";

const DEFAULT_SCHEMA = "solehold";
/** The name that the work-order gate gives its table. */
const DEFAULT_TABLE = "work_order_leases";

/** PostgreSQL cuts identifiers at 63 bytes; the view's name adds 9 to the table's. */
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]{0,47}$/;

/** The row that names the data set and its servers. No tenant has an empty name. */
export const IDENTITY_KEY = { tenant: "", name: "$identity" } as const;

export interface TableOptions {
  /** Default "solehold". */
  readonly schema?: string;
  /** Default "work_order_leases". */
  readonly table?: string;
}

export interface TableNames {
  readonly schema: string;
  readonly table: string;
  /** Quoted and qualified, ready for a statement. */
  readonly sqlSchema: string;
  readonly sqlTable: string;
  readonly sqlView: string;
  /** Advisory locks: the first is held in shared mode by everybody who listens, the second by whoever creates. */
  readonly listenerLock: string;
  readonly setupLock: string;
}

export function tableNames(options: TableOptions = {}): TableNames {
  const schema = checked("schema", options.schema ?? DEFAULT_SCHEMA);
  const table = checked("table", options.table ?? DEFAULT_TABLE);
  const lock = (purpose: string): string => lockNumber(`solehold ${purpose} ${schema}.${table}`);
  return {
    schema,
    table,
    sqlSchema: `"${schema}"`,
    sqlTable: `"${schema}"."${table}"`,
    sqlView: `"${schema}"."${table}_readable"`,
    listenerLock: lock("listeners"),
    setupLock: lock("setup"),
  };
}

function checked(option: string, value: string): string {
  if (typeof value === "string" && IDENTIFIER.test(value)) return value;
  const rule = "must be 1 to 48 letters, digits or '_' and not begin with a digit";
  throw new StoreError("config", `option '${option}' ${rule}, got ${JSON.stringify(value)}`, {
    outcome: "not-applied",
  });
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
