/** Damage behind the store's back, and looks into its database, by the `sqlite3` tool: as an operator would. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import type { LeaseKey } from "../../../src/core/index.ts";

/** What the tool prints, one row a line, columns apart by "|". */
export function sqlite(folder: string, sql: string): string {
  return execFileSync("sqlite3", ["-cmd", ".timeout 10000", join(folder, "leases.db"), sql], {
    encoding: "utf8",
  });
}

/** Changes the last character of the record, and nothing else of its row, as bit rot would. */
export async function corruptValue(folder: string, { tenant, name }: LeaseKey): Promise<void> {
  const changed = "substr(record, 1, length(record) - 1) || '?'";
  sqlite(
    folder,
    `UPDATE records SET record = ${changed} WHERE tenant = ${quoted(tenant)} AND name = ${quoted(name)}`,
  );
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
