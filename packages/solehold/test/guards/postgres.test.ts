/** The trigger of PostgreSQL, and what only the guard with the package pg does. */
import { randomBytes } from "node:crypto";
import mysqlCallbacks from "mysql2";
import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { fenceTriggerSql, mysql2Guard, pgGuard } from "../../src/guards/index.ts";
import { ownDatabase } from "./sql-clients.ts";
import { ATTEMPTS, successor, zombie } from "./zombie.ts";

let pool: pg.Pool;
let drop: () => Promise<void> = async () => undefined;

beforeAll(async () => {
  const database = await ownDatabase("postgres", `guards_${randomBytes(6).toString("hex")}`);
  drop = database.drop;
  pool = new pg.Pool({ connectionString: database.url });
});

afterAll(async () => {
  await pool?.end();
  await drop();
});

beforeEach(async () => {
  await pool.query("drop table if exists solehold_fences, report");
  await pgGuard(pool).createTable();
  await pool.query("create table report (text text not null)");
});

const texts = async () => (await pool.query("select text from report")).rows.map(({ text }) => text);

describe("a table with the trigger", () => {
  beforeEach(async () => {
    await pool.query(fenceTriggerSql({ table: "public.report", key: zombie.key }));
  });

  /** As a writer that does not know this library. */
  const writeAs = async ({ fence }: typeof zombie, sql: string) => {
    await pool.query(`begin; set local solehold.fence = '${fence}'; ${sql}; commit`);
  };

  it.each([
    "insert into report values ('zombie')",
    "update report set text = 'zombie'",
    "delete from report",
    "truncate report",
  ])("refuses a zombie's %s every time", async (sql) => {
    await writeAs(successor, "insert into report values ('kept')");
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1)
      await expect(writeAs(zombie, sql)).rejects.toMatchObject({ code: "SH002" });
    expect(await texts()).toEqual(["kept"]);
  });

  it("refuses a zombie after its successor's raise, before the successor's first write", async () => {
    await writeAs(zombie, "insert into report values ('first')");
    await pgGuard(pool).raise(successor);
    await expect(writeAs(zombie, "delete from report")).rejects.toMatchObject({ code: "SH002" });
    expect(await texts()).toEqual(["first"]);
  });

  it("refuses a writer that says no fence, also after one that did on the same connection", async () => {
    const client = await pool.connect();
    await client.query("begin; set local solehold.fence = '1'; insert into report values ('kept'); commit");
    await expect(client.query("delete from report")).rejects.toMatchObject({ code: "SH001" });
    client.release();
  });

  it("lets withFence and fenceTransaction write", async () => {
    const guard = pgGuard(pool);
    await guard.withFence(zombie, (client) => client.query("insert into report values ('guarded')"));
    const client = await pool.connect();
    await client.query("begin");
    await guard.fenceTransaction(client, successor);
    await client.query("insert into report values ('own')");
    await client.query("commit");
    client.release();
    expect(await texts()).toEqual(["guarded", "own"]);
  });

  it("is made for plain table names only", () => {
    expect(() => fenceTriggerSql({ table: "report; drop table x", key: zombie.key })).toThrow(RangeError);
  });
});

describe("wrong use", () => {
  it("of a failed statement that is ignored is an error: PostgreSQL rolled everything back", async () => {
    const written = pgGuard(pool).withFence(zombie, async (client) => {
      await client.query("insert into report values ('lost')");
      await client.query("insert into nowhere values (1)").catch(() => undefined);
    });
    await expect(written).rejects.toThrow(/was rolled back/);
    expect(await texts()).toEqual([]);
  });

  it("of a connection that began no transaction is refused by the database's answer", async () => {
    const client = await pool.connect();
    await expect(pgGuard(pool).fenceTransaction(client, zombie)).rejects.toThrow(/needs an open transaction/);
    client.release();
  });

  it("of a client instead of a pool, and of callbacks instead of promises, names what is needed", () => {
    // @ts-expect-error a Client is not a Pool
    expect(() => pgGuard(new pg.Client())).toThrow(/needs a Pool of pg/);
    const callbacks = mysqlCallbacks.createPool({});
    // @ts-expect-error callbacks are not promises
    expect(() => mysql2Guard(callbacks)).toThrow(/mysql2\/promise/);
    callbacks.end();
  });
});
