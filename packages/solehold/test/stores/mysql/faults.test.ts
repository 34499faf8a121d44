/** Servers that end, freeze, lock, go read-only and come back: what a write becomes, and that the store recovers. */
import { createPool, type Pool } from "mysql2/promise";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { LeaseStore, StoreError } from "../../../src/store/index.ts";
import { openMysqlStore } from "../../../src/stores/mysql/index.ts";
import { type Engine, startMariadb, startProxy } from "../../engines/index.ts";
import { applyOne, create, recordOf, rejection, until, writeOf } from "../records.ts";

let server: Engine;
let admin: Pool;
const open: LeaseStore[] = [];
const uncaught: unknown[] = [];
const note = (error: unknown): void => void uncaught.push(error);

beforeAll(async () => {
  process.on("uncaughtException", note).on("unhandledRejection", note);
  server = await startMariadb();
  admin = createPool({ uri: server.url });
});

afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
  expect(uncaught.splice(0)).toEqual([]);
});

afterAll(async () => {
  await admin?.end();
  await server?.stop();
  process.off("uncaughtException", note).off("unhandledRejection", note);
});

type Options = Partial<Parameters<typeof openMysqlStore>[0]>;

async function storeOn(url: string, options: Options = {}): Promise<LeaseStore> {
  const store = await openMysqlStore({ url, timeoutMs: 2_000, ...options });
  open.push(store);
  return store;
}

const isBack = (store: LeaseStore) => until("the store works again", () => store.read([recordOf("any").key]));

describe("a MySQL store", () => {
  it("ends a write whose row is locked as not applied, and does it later when asked again", async () => {
    const store = await storeOn(server.url);
    const first = recordOf("locked");
    const version = await create(store, first);
    const locker = await admin.getConnection();
    await locker.query("start transaction");
    await locker.query("select * from solehold_leases where name = 'locked' for update");
    const error = await rejection(store.apply([writeOf(recordOf("locked"), version)]));
    expect(error).toMatchObject({ kind: "timeout", outcome: "not-applied" });
    expect(error.message).toContain("another transaction held the row");
    await locker.query("rollback");
    locker.release();
    expect(await applyOne(store, writeOf(recordOf("locked"), version))).toMatchObject({ kind: "applied" });
  });

  it("sends the victim of a deadlock again: of two creates one is done and one is a conflict", async () => {
    const stores = [await storeOn(server.url), await storeOn(server.url)];
    const other = await admin.getConnection();
    await other.query("start transaction");
    await other.query("insert into solehold_leases values ('default', 'dead', 'version', 'value', 0)");
    const creates = stores.map((store) => applyOne(store, writeOf(recordOf("dead"))));
    await until("both wait for the row", async () => {
      const [rows] = await admin.query("select 1 from information_schema.innodb_lock_waits");
      return (rows as unknown[]).length >= 2 ? true : null;
    });
    // Both are granted a shared lock on the gap, and each then waits for the other's to end.
    await other.query("rollback");
    other.release();
    const kinds = (await Promise.all(creates)).map(({ kind }) => kind);
    expect(kinds.sort()).toEqual(["applied", "conflict"]);
  });

  it("refuses a pool whose connections do not commit by themselves, and writes nothing through it", async () => {
    await storeOn(server.url);
    const pool = createPool({ uri: server.url });
    pool.on("connection", (connection) => void connection.query("set autocommit = 0"));
    const store = await openMysqlStore({ pool }).catch((error) => error);
    expect(store).toMatchObject({ capabilities: expect.anything() });
    const record = recordOf("uncommitted");
    const error = await rejection(store.apply([writeOf(record)]));
    expect(error).toMatchObject({ kind: "config", outcome: "not-applied" });
    expect(error.message).toContain("must be in autocommit mode");
    const other = await storeOn(server.url);
    expect((await other.read([record.key])).records).toEqual([{ kind: "absent" }]);
    await pool.end();
  });

  it("says of a write that was cut off on its way that nobody knows, and works again by itself", async () => {
    const proxy = await startProxy({ targetPort: Number(new URL(server.url).port) });
    const store = await storeOn(proxy.through(server.url));
    const record = recordOf("cut");
    proxy.dropReplies();
    const lost = proxy.nextDroppedReply();
    const failed = rejection(store.apply([writeOf(record)]));
    await lost;
    proxy.cut();
    expect(await failed).toMatchObject({ kind: "unreachable", outcome: "unknown" });
    proxy.heal();
    const { records } = await isBack(store);
    expect(records).toHaveLength(1);
    expect((await store.read([record.key])).records[0]).toMatchObject({ record: { nonce: record.nonce } });
    await store.close();
    await proxy.close();
  });

  it("survives that its connections are killed, idle and busy", async () => {
    const store = await storeOn(server.url);
    for (let round = 0; round < 5; round += 1) {
      const writes = Array.from({ length: 12 }, (_, index) =>
        store.apply([writeOf(recordOf(`killed/${round}/${index}`))]).catch((error) => error),
      );
      if (round % 2 === 0) await killOthers(admin);
      for (const ended of await Promise.all(writes)) {
        if (ended instanceof Error) expect(ended).toMatchObject({ name: "StoreError" });
      }
      await killOthers(admin);
      await isBack(store);
    }
  });

  it("comes back after its server was killed, with everything that was acknowledged", async () => {
    const own = await startMariadb();
    const store = await storeOn(own.url);
    const record = recordOf("kept");
    await create(store, record);
    await own.kill();
    const error = await rejection(store.apply([writeOf(recordOf("too late"))]));
    expect(error).toMatchObject({ name: "StoreError", kind: "unreachable" });
    await own.restart();
    await isBack(store);
    expect((await store.read([record.key])).records[0]).toMatchObject({ record: { nonce: record.nonce } });
    await store.close();
    await own.stop();
  });

  it("closes in time although its server is frozen, and leaves no socket behind", async () => {
    const own = await startMariadb();
    const before = openSockets();
    const store = await openMysqlStore({ url: own.url, timeoutMs: 1_500 });
    await Promise.all(Array.from({ length: 4 }, (_, index) => create(store, recordOf(`thaw/${index}`))));
    await own.pause();
    const error = await rejection(store.read([recordOf("frozen").key]));
    expect(error).toMatchObject({ kind: "timeout", outcome: "not-applied" });
    await store.close();
    await until("its sockets are closed", async () => (openSockets() <= before ? true : null));
    await own.resume();
    await own.stop();
  });

  it("gives a connection up that leads to a server which is read-only now", async () => {
    const proxies = await startProxy({ targetPort: Number(new URL(server.url).port) });
    await admin.query("create user if not exists 'plain'@'%' identified by 'plain'");
    await admin.query("grant all privileges on solehold.* to 'plain'@'%'");
    const url = proxies.through(server.url).replace("solehold:solehold@", "plain:plain@");
    const store = await storeOn(url, { concurrency: 1 });
    const before = proxies.connections;
    await admin.query("set global read_only = 1");
    const error = await rejection(store.apply([writeOf(recordOf("read-only"))]));
    await admin.query("set global read_only = 0");
    expect(error).toMatchObject({ kind: "unreachable", outcome: "not-applied" });
    expect(error.message).toContain("the server is read-only");
    await until("the connection is closed", async () => (proxies.connections < before ? true : null));
    await create(store, recordOf("writable again"));
    await store.close();
    await proxies.close();
  });

  it("reports a table that was dropped, and data that began anew, once", async () => {
    const table = "dropped";
    const store = await storeOn(server.url, { table });
    const { key } = recordOf("lost");
    await create(store, recordOf("lost"));
    await admin.query(`drop table ${table}`);
    const gone = await rejection(store.read([key]));
    expect(gone).toMatchObject({ kind: "config", message: expect.stringContaining("open the store anew") });
    await storeOn(server.url, { table });
    await killOthers(admin);
    // Several new connections at a time find the other data.
    const errors: unknown[] = [];
    await until("all reads are answered", async () => {
      const reads = Array.from({ length: 6 }, () =>
        store.read([key]).catch((error) => void errors.push(error)),
      );
      return (await Promise.all(reads)).every((reply) => reply !== undefined) ? true : null;
    });
    const losses = errors.filter((error) => (error as StoreError).kind === "data-loss");
    expect(losses).toMatchObject([{ outcome: "not-applied" }]);
    expect(String(losses[0])).toContain("its data was deleted or replaced");
    expect((await store.read([key])).records).toEqual([{ kind: "absent" }]);
  });

  it("says since when another server answers for the data", async () => {
    const table = "moved";
    const store = await storeOn(server.url, { table });
    expect((await store.read([recordOf("any").key])).serverChangedAtMs ?? null).toBeNull();
    await admin.query("set global server_id = 4711");
    const { storeTimeMs, serverChangedAtMs } = await (await storeOn(server.url, { table })).read([
      recordOf("any").key,
    ]);
    await admin.query("set global server_id = 1");
    expect(serverChangedAtMs).toBeLessThanOrEqual(storeTimeMs!);
    expect(storeTimeMs! - serverChangedAtMs!).toBeLessThan(60_000);
  });
});

function openSockets(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === "TCPSocketWrap").length;
}

async function killOthers(pool: Pool): Promise<void> {
  const [rows] = await pool.query(
    "select id from information_schema.processlist where id <> connection_id()",
  );
  for (const { id } of rows as { id: number }[]) await pool.query(`kill ${id}`).catch(() => undefined);
}
