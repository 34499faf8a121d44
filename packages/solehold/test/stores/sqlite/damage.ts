/** Damage behind the store's back, locks, and looks into its database, by the `sqlite3` tool: as an operator would. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { LeaseKey } from "../../../src/core/index.ts";
import { afterThisTest } from "./fixtures.ts";

/** What the tool prints, one row a line, columns apart by "|". */
export function sqlite(folder: string, sql: string): string {
  const input = `.timeout 10000\n${sql};\n`;
  return execFileSync("sqlite3", ["-batch", "-bail", join(folder, "leases.db")], {
    encoding: "utf8",
    input,
  }).replace(/\n$/, "");
}

/** Changes the last character of the record, and nothing else of its row, as bit rot would. */
export async function corruptValue(folder: string, { tenant, name }: LeaseKey): Promise<void> {
  const changed = "substr(record, 1, length(record) - 1) || '?'";
  const where = `tenant = ${quoted(tenant)} AND name = ${quoted(name)}`;
  sqlite(folder, `UPDATE records SET record = ${changed} WHERE ${where}`);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** A process in the middle of a commit, with the lock that all writes need. */
export class LockHolder {
  readonly #process;

  private constructor(folder: string) {
    this.#process = spawn("sqlite3", ["-batch", join(folder, "leases.db")]);
    afterThisTest(() => void this.#process.kill("SIGKILL"));
  }

  static async on(folder: string): Promise<LockHolder> {
    const holder = new LockHolder(folder);
    holder.#process.stdin.write(".timeout 10000\nBEGIN IMMEDIATE;\nSELECT 'holding';\n");
    await once(holder.#process.stdout, "data");
    return holder;
  }

  /** Dies with the lock in its hands. */
  async release(): Promise<void> {
    this.#process.kill("SIGKILL");
    await once(this.#process, "exit");
  }
}
