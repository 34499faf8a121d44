/** Opening: what is created, what is refused, and with which words. */
import { createPool, type Pool } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { mysqlSchema, openMysqlStore } from "../../../src/stores/mysql/index.ts";
import { type Engine, startMariadb } from "../../engines/index.ts";
import { pageBlock } from "../page-block.ts";
import { create, recordOf, rejection } from "../records.ts";

let server: Engine;
let admin: Pool;

beforeAll(async () => {
  server = await startMariadb();
  admin = createPool({ uri: server.url, multipleStatements: true });
});

afterAll(async () => {
  await admin?.end();
  await server?.stop();
});

/** The URL of an account with these rights on the database, and a password that must not be shown. */
async function account(name: string, rights: string): Promise<string> {
  await admin.query(`create user '${name}'@'%' identified by 's3cret'`);
  if (rights !== "") await admin.query(`grant ${rights} on solehold.* to '${name}'@'%'`);
  return `mysql://${name}:s3cret@${new URL(server.url).host}/solehold`;
}

describe("wrong options of the MySQL store", () => {
  const WRONG: readonly (readonly [string, object, RegExp])[] = [
    ["neither url nor pool", {}, /give either url or pool/],
    ["url and pool", { url: "mysql://h/d", pool: {} }, /give either url or pool/],
    ["a url that is none", { url: "localhost" }, /url must look like mysql:.*got 'localhost'/],
    ["a url that is no text", { url: 7 }, /url must look like mysql:/],
    ["another scheme", { url: "postgres://u:s3cret@h/d" }, /url must look like mysql:.*\*\*\*@h/],
    ["no database", { url: "mysql://u:s3cret@h:3306" }, /must name a host and a database/],
    ["no host", { url: "mysql:///d" }, /must name a host and a database/],
    [
      "a password that is not encoded",
      { url: "mysql://u:s3cret%@h/d" },
      /url must have its password percent-/,
    ],
    ["a port that cannot be", { url: "mysql://u:s3cret@h:99999/d" }, /url must look like mysql:/],
    ["an unknown option", { url: "mysql://h/d?tls=yes" }, /unknown option 'tls': it may have ssl-mode/],
    ["a wrong ssl-mode", { url: "mysql://h/d?ssl-mode=on" }, /ssl-mode must be one of DISABLED, REQUIRED/],
    ["a table with a quote", { url: "mysql://h/d", table: "a`b" }, /table must have 1 to 58 letters/],
    ["a pool that is none", { pool: {} }, /pool must be a pool of mysql2/],
    ["no pool", { pool: null }, /pool must be a pool of mysql2/],
    [
      "no time",
      { url: "mysql://127.0.0.1:1/d", timeoutMs: 0 },
      /timeoutMs must be a whole number from 1 to 2147483647, got '0'/,
    ],
    ["half a poll", { url: "mysql://127.0.0.1:1/d", pollMs: 0.5 }, /pollMs must be a whole number from 1/],
  ];

  it.each(WRONG)("%s", async (_, options, words) => {
    const error = await rejection(openMysqlStore(options as never));
    expect(error).toMatchObject({ name: "StoreError", kind: "config", outcome: "not-applied" });
    expect(error.message).toMatch(words);
    expect(error.message).not.toContain("s3cret");
  });
});

describe("opening a MySQL store", () => {
  it("says who does not answer", async () => {
    const error = await rejection(openMysqlStore({ url: "mysql://u:s3cret@127.0.0.1:1/d" }));
    expect(error).toMatchObject({ kind: "unreachable", outcome: "not-applied" });
    expect(error.message).toMatch(/ECONNREFUSED.*start the server or correct the URL/);
    expect(error.message).not.toContain("s3cret");
  });

  it("gives up on a server that says nothing", async () => {
    const mute = await startMariadb();
    await mute.pause();
    const error = await rejection(openMysqlStore({ url: mute.url, timeoutMs: 200 }));
    expect(error).toMatchObject({ outcome: "not-applied" });
    expect(error.kind).toMatch(/timeout|unreachable/);
    await mute.resume();
    await mute.stop();
  });

  it("tells a wrong password and a missing database apart", async () => {
    const { host } = new URL(server.url);
    const wrong = await rejection(openMysqlStore({ url: `mysql://solehold:wrong@${host}/solehold` }));
    expect(wrong).toMatchObject({
      kind: "auth",
      message: expect.stringContaining("check user and password"),
    });
    const missing = await rejection(openMysqlStore({ url: `mysql://solehold:solehold@${host}/nowhere` }));
    expect(missing).toMatchObject({
      kind: "config",
      message: expect.stringContaining("create the database"),
    });
  });

  it("says what an account needs that may not create the table, and works once somebody created it", async () => {
    const url = await account("lowly", "select, insert, update, delete");
    const table = "made_by_hand";
    const error = await rejection(openMysqlStore({ url, table }));
    expect(error).toMatchObject({ kind: "auth", outcome: "not-applied" });
    expect(error.message).toMatch(/may not create table 'made_by_hand': grant it CREATE.*mysqlSchema\(\)/);
    await admin.query(mysqlSchema(table));
    const store = await openMysqlStore({ url, table });
    await create(store, recordOf("by/hand"));
    await store.close();
  });

  it("works with the statements of the page", async () => {
    const statements = pageBlock("mysql.md", "Rights of a dedicated user", "sql");
    await admin.query(mysqlSchema());
    await admin.query(statements.replaceAll("yourdatabase", "solehold"));
    const { host } = new URL(server.url);
    const store = await openMysqlStore({ url: `mysql://leases:password@${host}/solehold` });
    await create(store, recordOf("by/the/page"));
    await store.close();
  });

  it("does without the view where the account may not create one", async () => {
    const url = await account("viewless", "select, insert, update, delete, create");
    const store = await openMysqlStore({ url, table: "viewless" });
    await create(store, recordOf("viewless"));
    await store.close();
  });

  it("says what is missing to an account that may read but not write", async () => {
    await admin.query(mysqlSchema("readable"));
    const url = await account("reader", "select");
    const error = await rejection(openMysqlStore({ url, table: "readable" }));
    expect(error).toMatchObject({ kind: "auth", outcome: "not-applied" });
    expect(error.message).toContain("grant the account SELECT, INSERT, UPDATE and DELETE");
  });

  it("refuses a table of somebody else and leaves it as it is", async () => {
    await admin.query(
      "create table theirs (id int primary key) engine = InnoDB; insert into theirs values (7)",
    );
    const error = await rejection(openMysqlStore({ url: server.url, table: "theirs" }));
    expect(error).toMatchObject({
      kind: "config",
      message: expect.stringContaining("choose another `table`"),
    });
    const [rows] = await admin.query("select * from theirs");
    expect(rows).toEqual([{ id: 7 }]);
  });

  it("refuses a table that is not kept by InnoDB", async () => {
    await admin.query(mysqlSchema("unsafe").replace("InnoDB", "Aria"));
    const error = await rejection(openMysqlStore({ url: server.url, table: "unsafe" }));
    expect(error).toMatchObject({ kind: "config", message: expect.stringContaining("use an InnoDB table") });
  });

  it("refuses a pool without a database, and one that is closed", async () => {
    const { hostname: host, port } = new URL(server.url);
    const pool = createPool({ host, port: Number(port), user: "solehold", password: "solehold" });
    const homeless = await rejection(openMysqlStore({ pool }));
    expect(homeless).toMatchObject({ kind: "config", message: expect.stringContaining("has no database") });
    await pool.end();
    const closed = await rejection(openMysqlStore({ pool }));
    expect(closed).toMatchObject({ kind: "unreachable", outcome: "not-applied" });
  });

  it("leaves a pool open that it was given", async () => {
    const store = await openMysqlStore({ pool: admin });
    await store.close();
    await expect(admin.query("select 1")).resolves.toBeDefined();
  });

  it("shares a pool with many other stores without a warning of listeners that pile up", async () => {
    const warnings: Error[] = [];
    const note = (warning: Error): void => void warnings.push(warning);
    process.on("warning", note);
    for (let count = 0; count < 12; count += 1) await (await openMysqlStore({ pool: admin })).close();
    await new Promise((resolve) => setImmediate(resolve));
    process.off("warning", note);
    expect(warnings).toEqual([]);
  });

  it("can be opened by many at once where nothing exists yet", async () => {
    const stores = await Promise.all(
      Array.from({ length: 6 }, () => openMysqlStore({ url: server.url, table: "at_once", concurrency: 2 })),
    );
    await create(stores[0]!, recordOf("first"));
    for (const store of stores) await store.close();
  });

  it("shows leases to people in a view", async () => {
    const store = await openMysqlStore({ url: server.url, table: "seen" });
    await create(store, recordOf("höher/🦊", { holder: "Zoë", note: "in the night" }));
    await store.close();
    const [rows] = await admin.query("select * from seen_view");
    expect(rows).toMatchObject([
      {
        tenant: "default",
        name: "höher/🦊",
        holder: "Zoë",
        state: "held",
        note: "in the night",
        ended_at: null,
      },
    ]);
    const [[{ expires }]] = (await admin.query(
      "select unix_timestamp(expires_at) * 1000 as expires from seen_view",
    )) as unknown as [[{ expires: string }]];
    expect(Number(expires)).toBe(1_750_000_030_000);
  });

  it("says that writes are safe only where every commit is synced and no replica could lack them", async () => {
    const durable = async (url: string): Promise<boolean> => {
      const store = await openMysqlStore({ url });
      await store.close();
      return store.capabilities.durable;
    };
    expect(await durable(server.url)).toBe(true);
    await admin.query("set global innodb_flush_log_at_trx_commit = 2");
    expect(await durable(server.url)).toBe(false);
    await admin.query("set global innodb_flush_log_at_trx_commit = 1");
    const logging = await startMariadb({ settings: ["log-bin=log", "server-id=7", "sync-binlog=1"] });
    expect(await durable(logging.url)).toBe(true);
    const watcher = createPool({ uri: logging.url });
    // Without PROCESS it could not see a replica.
    await watcher.query("create user 'blind'@'%' identified by 'blind'");
    await watcher.query("grant select, insert, update, delete on solehold.* to 'blind'@'%'");
    expect(await durable(logging.url.replace("solehold:solehold@", "blind:blind@"))).toBe(false);
    await watcher.query("set global sync_binlog = 0");
    expect(await durable(logging.url)).toBe(false);
    await watcher.end();
    await logging.stop();
  });

  it("says which package is missing", async () => {
    vi.doMock("mysql2/promise", () => {
      throw new Error("Cannot find package 'mysql2'");
    });
    const error = await rejection(openMysqlStore({ url: server.url }));
    vi.doUnmock("mysql2/promise");
    expect(error).toMatchObject({ kind: "config", message: expect.stringContaining("npm install mysql2") });
  });
});
