/** The guard of a SQLite file, through the driver of Node where there is one, and its twin from npm. */
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type SqliteDatabase, SqliteGuard } from "../../src/guards/index.ts";
import { ATTEMPTS, newTerm, successor, zombie } from "./zombie.ts";

type Database = SqliteDatabase & { close(): void };
type Open = (path: string) => Database;

const DRIVERS: [string, Open | null][] = [
  ["@photostructure/sqlite", (path) => new DatabaseSync(path)],
  [
    "the shape of better-sqlite3",
    (path) => {
      const database = new DatabaseSync(path);
      return {
        exec: (sql) => database.exec(sql),
        prepare: (sql) => database.prepare(sql),
        get inTransaction() {
          return database.isTransaction;
        },
        close: () => database.close(),
      };
    },
  ],
  ["node:sqlite", nodeSqlite()],
];

/** Null before Node 22.13. */
function nodeSqlite(): Open | null {
  try {
    const driver = createRequire(import.meta.url)("node:sqlite") as {
      DatabaseSync: new (path: string) => Database;
    };
    return (path) => new driver.DatabaseSync(path);
  } catch {
    return null;
  }
}

const STALE = expect.objectContaining({ code: "STALE_FENCE", newestFence: successor.fence });

describe.each(DRIVERS)("the guard with %s", (_title, open) => {
  if (open === null) return it.skip("is not in this version of Node", () => undefined);
  let folder: string;
  let one: Database;
  let two: Database;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "solehold-guard-"));
    const path = join(folder, "report.db");
    [one, two] = [open(path), open(path)];
    new SqliteGuard(one).createTable();
    one.exec("create table report (text text not null)");
  });

  afterEach(() => {
    one.close();
    two.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const append = (database: Database, text: string | null) => () =>
    database.prepare("insert into report values (?) returning text").get(text as string);
  const texts = () =>
    one.prepare("select group_concat(text) as texts from (select text from report order by rowid)").get() as {
      texts: string | null;
    };

  it("refuses a zombie every time once a newer fence was seen, and leaves nothing of it", () => {
    new SqliteGuard(one).withFence(zombie, append(one, "first"));
    new SqliteGuard(two).withFence(successor, append(two, "second"));
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const raiseFirst = attempt % 2 === 0;
      expect(() => new SqliteGuard(one).withFence(zombie, append(one, "zombie"), { raiseFirst })).toThrow(
        STALE,
      );
    }
    new SqliteGuard(two).withFence(newTerm, append(two, "third"));
    expect(() => new SqliteGuard(two).withFence(successor, append(two, "zombie"))).toThrow(/is older than/);
    expect(texts()).toMatchObject({ texts: "first,second,third" });
  });

  it("refuses a zombie after its successor's raise, before the successor's first write", () => {
    const guard = new SqliteGuard(one);
    guard.withFence(zombie, append(one, "first"));
    new SqliteGuard(two).raise(successor);
    expect(() => guard.withFence(zombie, append(one, "zombie"))).toThrow(STALE);
    expect(() => guard.raise(zombie)).toThrow(STALE);
    expect(texts()).toMatchObject({ texts: "first" });
  });

  it("keeps the fence of a transaction that failed, unless it is set not to raise first", () => {
    const guard = new SqliteGuard(one);
    expect(() => guard.withFence(successor, append(one, null), { raiseFirst: false })).toThrow();
    guard.withFence(zombie, append(one, "still allowed"));
    expect(() => guard.withFence(successor, append(one, null))).toThrow();
    expect(() => guard.withFence(zombie, append(one, "zombie"))).toThrow(STALE);
    expect(texts()).toMatchObject({ texts: "still allowed" });
  });

  it("fences a transaction of your own, and refuses when there is none", () => {
    const guard = new SqliteGuard(one);
    expect(() => guard.fenceTransaction(successor)).toThrow(/needs an open transaction/);
    one.exec("begin immediate");
    guard.fenceTransaction(successor);
    append(one, "mine")();
    one.exec("commit");
    one.exec("begin immediate");
    expect(() => guard.fenceTransaction(zombie)).toThrow(STALE);
    one.exec("rollback");
  });

  it("refuses async work and undoes it", () => {
    const guard = new SqliteGuard(one);
    expect(() => guard.withFence(zombie, async () => append(one, "half")())).toThrow(/must not be async/);
    expect(texts()).toMatchObject({ texts: null });
  });

  it("says what to do when the table of fences is missing", () => {
    one.exec("drop table solehold_fences");
    expect(() => new SqliteGuard(one).raise(zombie)).toThrow(/table solehold_fences is missing/);
  });
});
