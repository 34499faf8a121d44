/** The guards of SQL databases, each with the real package on a real database, against a zombie. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type GuardedTable, ownDatabase, SQL_CLIENTS, type SqlClientUnderTest } from "./sql-clients.ts";
import { ATTEMPTS, newTerm, successor, zombie } from "./zombie.ts";

const STALE = { code: "STALE_FENCE", newestFence: successor.fence };
const REPORT = {
  postgres: "create table report (text text not null, at serial primary key)",
  mysql: "create table report (text text not null, at integer auto_increment primary key)",
  sqlite: "create table report (text text not null, at integer primary key)",
};
const name = `guards_${randomBytes(6).toString("hex")}`;
const folder = mkdtempSync(join(tmpdir(), "solehold-guards-"));
const urls = { postgres: "", mysql: "", sqlite: join(folder, "report.db") };
const ends: (() => Promise<void>)[] = [];

beforeAll(async () => {
  for (const dialect of ["postgres", "mysql"] as const) {
    const { url, drop } = await ownDatabase(dialect, name);
    urls[dialect] = url;
    ends.push(drop);
  }
});

afterAll(async () => {
  for (const end of ends) await end();
  rmSync(folder, { recursive: true, force: true });
});

describe.each(SQL_CLIENTS)("the guard with $title", ({ dialect, open }: SqlClientUnderTest) => {
  let table: GuardedTable;

  beforeEach(async () => {
    table = open(urls[dialect]);
    await table.createTable();
    await table.exec(REPORT[dialect]);
  });

  afterEach(async () => {
    await table.exec("drop table if exists report");
    await table.exec("drop table if exists solehold_fences");
    await table.close();
  });

  it("refuses a zombie every time once a newer fence was seen, and leaves nothing of it", async () => {
    await table.append(zombie, "first");
    await table.append(successor, "second");
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1)
      await expect(table.append(zombie, "zombie", { raiseFirst: attempt % 2 === 0 })).rejects.toMatchObject(
        STALE,
      );
    await table.append(newTerm, "third");
    await expect(table.append(successor, "zombie")).rejects.toMatchObject({ code: "STALE_FENCE" });
    expect(await table.texts()).toEqual(["first", "second", "third"]);
  });

  it("refuses a zombie after its successor's raise, before the successor's first write", async () => {
    await table.append(zombie, "first");
    await table.raise(successor);
    await expect(table.append(zombie, "zombie", { raiseFirst: false })).rejects.toMatchObject(STALE);
    await expect(table.raise(zombie)).rejects.toMatchObject(STALE);
    await table.append(successor, "second");
    expect(await table.texts()).toEqual(["first", "second"]);
  });

  it("keeps the fence of a transaction that failed, and nothing else of it", async () => {
    await expect(table.append({ ...successor }, null as never)).rejects.toThrow();
    await expect(table.append(zombie, "zombie", { raiseFirst: false })).rejects.toMatchObject(STALE);
    expect(await table.texts()).toEqual([]);
  });

  it("with raiseFirst false undoes the fence with its transaction", async () => {
    await expect(table.append(successor, null as never, { raiseFirst: false })).rejects.toThrow();
    await table.append(zombie, "still allowed", { raiseFirst: false });
    expect(await table.texts()).toEqual(["still allowed"]);
  });

  it("fences a transaction of your own", async () => {
    await table.appendInOwnTransaction(successor, "mine");
    await expect(table.appendInOwnTransaction(zombie, "zombie")).rejects.toMatchObject(STALE);
    expect(await table.texts()).toEqual(["mine"]);
  });

  it("refuses to fence what is not a transaction, and says so", async () => {
    await expect(table.misuse(successor)).rejects.toThrow(/needs an open transaction/);
  });

  it("says what to do when the table of fences is missing", async () => {
    await table.exec("drop table solehold_fences");
    await expect(table.append(zombie, "first")).rejects.toThrow(
      /table solehold_fences is missing: call createTable\(\)/,
    );
  });

  it.skipIf(dialect === "sqlite")(
    "lets a zombie wait for its successor's transaction, then refuses it",
    async () => {
      let zombieEnds: Promise<unknown> = Promise.resolve();
      const waiting =
        dialect === "postgres"
          ? "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
          : "select 1 from information_schema.processlist where db = database() and info like 'insert into solehold_fences%'";
      await table.append(successor, "second", {
        raiseFirst: false,
        before: async () => {
          zombieEnds = table.append(zombie, "zombie", { raiseFirst: false }).catch((error: unknown) => error);
          // Seen by the server: the zombie waits for the row that this transaction holds.
          while (!(await hasRows(table.exec(waiting))))
            await new Promise((resolve) => setTimeout(resolve, 5));
        },
      });
      expect(await zombieEnds).toMatchObject(STALE);
      expect(await table.texts()).toEqual(["second"]);
    },
  );
});

/** Of every client: rows alone, `{ rows }`, or `[rows, columns]`. */
async function hasRows(result: Promise<unknown>): Promise<boolean> {
  const answer = (await result) as { rows?: unknown[] } | unknown[];
  const [first] = "rows" in answer ? (answer.rows ?? []) : (answer as unknown[]);
  return Array.isArray(first) ? first.length > 0 : first !== undefined;
}
