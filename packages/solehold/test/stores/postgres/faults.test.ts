/** A server that stands still, dies, restarts or loses connections: outcomes stay honest and calls end in time. */
import pg from "pg";
import postgres from "postgres";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { LeaseStore, WriteResult } from "../../../src/store/index.ts";
import { openPostgresStore, type PostgresStoreOptions } from "../../../src/stores/postgres/index.ts";
import { type Engine, startPostgres, startProxy } from "../../engines/index.ts";
import { applyOne, create, ended, eventually, key, readOne, record } from "./support.ts";
import { startWire } from "./wire.ts";

const COMMAND_COMPLETE = "C".charCodeAt(0);

let server: Engine;
const stores: LeaseStore[] = [];
const unhandled: unknown[] = [];
const onUnhandled = (error: unknown): void => void unhandled.push(error);

beforeAll(async () => {
  process.on("unhandledRejection", onUnhandled);
  process.on("uncaughtException", onUnhandled);
  server = await startPostgres();
});

afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()));
  expect(unhandled.splice(0)).toEqual([]);
});

afterAll(async () => {
  await server?.stop();
  process.off("unhandledRejection", onUnhandled);
  process.off("uncaughtException", onUnhandled);
});

async function open(options: PostgresStoreOptions = {}): Promise<LeaseStore> {
  const source = options.pool === undefined ? { url: server.url } : {};
  const store = await openPostgresStore({ ...source, ...options });
  stores.push(store);
  return store;
}

/** Somebody else's transaction that keeps a row locked until it is rolled back. */
async function lockRow(name: string): Promise<pg.Client> {
  const client = new pg.Client(server.url);
  await client.connect();
  await client.query("begin");
  await client.query("select from solehold.work_order_leases where name = $1 for update", [name]);
  return client;
}

/** The server process that waits for that lock. */
function waitingFor(blocker: pg.Client): Promise<number> {
  return eventually<number>(async () => {
    const { rows } = await blocker.query("select pid from pg_locks where not granted");
    return rows[0]?.pid;
  });
}

describe("a server that stands still", () => {
  it("leaves a write unknown, and the late write is found by its nonce", async () => {
    const store = await open({ timeoutMs: 1_000 });
    const version = await create(store, key("frozen"));
    await server.pause();
    const next = record(key("frozen"), { generation: 2n });
    const [write, read] = await Promise.all([
      ended(applyOne(store, key("frozen"), version, next)),
      ended(readOne(store, key("frozen"))),
    ]);
    await server.resume();
    expect(write).toMatchObject({ name: "StoreError", kind: "timeout", outcome: "unknown" });
    // It needed a new connection: its own patience and that of connecting end at the same moment.
    expect(read).toMatchObject({
      name: "StoreError",
      kind: expect.stringMatching(/^(timeout|unreachable)$/),
    });
    await eventually(async () => {
      const stored = await readOne(await open(), key("frozen"));
      return stored.kind === "found" && stored.record.nonce === next.nonce;
    });
  });

  it("does not keep close() waiting, nor a new store", async () => {
    const store = await open({ timeoutMs: 1_000 });
    await create(store, key("closing"));
    await store.watch?.({ tenant: null, prefix: "" }, () => undefined);
    await server.pause();
    const opening = ended(openPostgresStore({ url: server.url, timeoutMs: 1_000 }));
    await store.close();
    expect(await opening).toMatchObject({ outcome: "not-applied" });
    await server.resume();
  });
});

describe("a server that dies", () => {
  it("has every write that it acknowledged when it is back, grants and releases alike", async () => {
    const [store, watcher] = [await open(), await open()];
    await watcher.watch?.({ tenant: null, prefix: "" }, () => undefined);
    const acknowledged = new Map<string, number>();
    const writing = Array.from({ length: 8 }, async (_, index) => {
      const of = key(`durable/${index}`);
      let version: string | null = null;
      for (let renewals = 0; ; renewals += 1) {
        const isHeld = renewals % 2 === 0;
        const next = record(of, { renewals, ...(!isHeld && { state: "released", endedAtMs: 1 }) });
        const result: WriteResult | null = await applyOne(store, of, version, next).catch(() => null);
        if (result?.kind !== "applied" || result.version === null) return;
        version = result.version;
        acknowledged.set(of.name, renewals);
      }
    });
    await eventually(async () => acknowledged.size === 8);
    await server.kill();
    await Promise.all(writing);
    await server.restart();
    for (const [name, renewals] of acknowledged) {
      const stored = await eventually(() => readOne(store, key(name)).catch(() => null));
      if (stored.kind !== "found") throw new Error(`${name} is ${stored.kind}`);
      // The one that was under way may have been done, too.
      expect(stored.record.renewals).toBeGreaterThanOrEqual(renewals);
    }
  });

  it("refuses calls while it is away, and serves the same store when it is back", async () => {
    const store = await open();
    const version = await create(store, key("killed"));
    await server.kill();
    const refused = await eventually(async () => {
      const error = await ended(applyOne(store, key("killed"), version, record(key("killed"))));
      return (error as { outcome?: string }).outcome === "not-applied" ? error : null;
    });
    expect(refused).toMatchObject({
      kind: "unreachable",
      message: expect.stringMatching(/start the server/),
    });
    await server.restart();
    const stored = await eventually(() => readOne(store, key("killed")).catch(() => null));
    expect(stored).toMatchObject({ kind: "found", version });
  });

  it("kills nobody's process through the idle connections of a caller's pool", async () => {
    const pool = new pg.Pool({ connectionString: server.url });
    const store = await open({ pool });
    await create(store, key("idle"));
    await store.watch?.({ tenant: null, prefix: "" }, () => undefined);
    await server.kill();
    await server.restart();
    await eventually(() => readOne(store, key("idle")).catch(() => null));
    await store.close();
    await pool.end();
  });
});

describe("a connection whose answer did not come", () => {
  it("is not used again: the next call does not wait behind the old one", async () => {
    // As behind a pooler the server sets no limit of its own.
    const store = await open({ timeoutMs: 1_000, pooler: "transaction" });
    const version = await create(store, key("silent"));
    const blocker = await lockRow("silent");
    const write = await ended(applyOne(store, key("silent"), version, record(key("silent"))));
    expect(write).toMatchObject({ kind: "timeout", outcome: "unknown" });
    expect(await readOne(store, key("silent"))).toMatchObject({ kind: "found", version });
    await blocker.query("rollback");
    await blocker.end();
  });
});

describe("a connection that is lost", () => {
  it("leaves the statement that was under way unknown", async () => {
    const proxy = await startProxy({ targetPort: Number(new URL(server.url).port) });
    const store = await open({ url: proxy.through(server.url) });
    const version = await create(store, key("cut"));
    const blocker = await lockRow("cut");
    const call = ended(applyOne(store, key("cut"), version, record(key("cut"), { generation: 2n })));
    await waitingFor(blocker);
    proxy.cut();
    expect(await call).toMatchObject({ kind: "unreachable", outcome: "unknown" });
    await blocker.query("rollback");
    await blocker.end();
    await store.close();
    await proxy.close();
  });

  it("leaves it unknown, too, when the server said that it ends the connection", async () => {
    const store = await open();
    const version = await create(store, key("ended"));
    const blocker = await lockRow("ended");
    const call = ended(applyOne(store, key("ended"), version, record(key("ended"), { generation: 2n })));
    await blocker.query("select pg_terminate_backend($1)", [await waitingFor(blocker)]);
    expect(await call).toMatchObject({ kind: "unreachable", outcome: "unknown" });
    await blocker.query("rollback");
    await blocker.end();
  });

  it("leaves every write of a batch unknown, because the batch is one statement", async () => {
    const store = await open();
    const version = await create(store, key("half/updated"));
    const deleted = await create(store, key("half/deleted"));
    const blocker = await lockRow("half/updated");
    const call = ended(
      store.apply([
        { key: key("half/updated"), expected: version, next: record(key("half/updated")) },
        { key: key("half/deleted"), expected: deleted, next: null },
        { key: key("half/created"), expected: null, next: record(key("half/created")) },
      ]),
    );
    await blocker.query("select pg_terminate_backend($1)", [await waitingFor(blocker)]);
    expect(await call).toMatchObject({ kind: "unreachable", outcome: "unknown" });
    await blocker.query("rollback");
    await blocker.end();
    const { records } = await store.read(
      ["updated", "deleted", "created"].map((name) => key(`half/${name}`)),
    );
    expect(records).toMatchObject([{ version }, { version: deleted }, { kind: "absent" }]);
  });
});

describe("a row that somebody else keeps locked", () => {
  it("ends the wait with a clear not-applied before the caller gives up", async () => {
    const store = await open({ timeoutMs: 2_000 });
    const version = await create(store, key("locked"));
    const blocker = await lockRow("locked");
    expect(await ended(applyOne(store, key("locked"), version, record(key("locked"))))).toMatchObject({
      kind: "timeout",
      outcome: "not-applied",
    });
    await blocker.query("rollback");
    await blocker.end();
  });
});

describe("a pool with no free connection", () => {
  it("ends the wait with not-applied, because nothing was sent", async () => {
    const pool = new pg.Pool({ connectionString: server.url, max: 1 });
    const store = await open({ pool, timeoutMs: 1_000 });
    const taken = await pool.connect();
    expect(await ended(applyOne(store, key("queued"), null, record(key("queued"))))).toMatchObject({
      kind: "timeout",
      outcome: "not-applied",
    });
    taken.release();
    await create(store, key("queued"));
    await store.close();
    await pool.end();
  });
});

describe("through postgres.js", () => {
  it("a frozen server leaves a write unknown, a dead one is survived", async () => {
    const sql = postgres(server.url, { connect_timeout: 1, backoff: () => 0.05 });
    const store = await open({ pool: sql, timeoutMs: 1_000 });
    const version = await create(store, key("js"));
    await server.pause();
    const write = await ended(applyOne(store, key("js"), version, record(key("js"), { generation: 2n })));
    await server.resume();
    expect(write).toMatchObject({ kind: "timeout", outcome: "unknown" });
    await server.kill();
    const refused = await eventually(async () => {
      const error = await ended(applyOne(store, key("js/2"), null, record(key("js/2"))));
      return (error as { outcome?: string }).outcome === "not-applied" ? error : null;
    });
    expect(refused).toMatchObject({ kind: "unreachable" });
    await server.restart();
    expect(await eventually(() => readOne(store, key("js")).catch(() => null))).toMatchObject({
      kind: "found",
    });
    await store.close();
    await sql.end({ timeout: 1 });
  });

  it("an answer is whole although the connection before was lost in the middle of one", async () => {
    let state: "sound" | "breaks" | "broken" = "sound";
    const wire = await startWire(server.url, {
      // The rows arrive, and never that they were all.
      passes: (message) => {
        if (state !== "breaks" || message[0] !== COMMAND_COMPLETE) return state !== "broken";
        state = "broken";
        setImmediate(() => wire.cut());
        return false;
      },
    });
    const sql = postgres(wire.url, { max: 2, backoff: () => 0.02, fetch_types: false });
    const store = await open({ pool: sql, watch: "poll" });
    const keys = ["one", "two", "three"].map((name) => key(`js/whole/${name}`));
    for (const each of keys) await create(store, each);
    for (let round = 0; round < 3; round += 1) {
      state = "breaks";
      expect(await ended(store.read(keys))).toMatchObject({ kind: "unreachable", outcome: "not-applied" });
      state = "sound";
      const { records } = await store.read(keys);
      expect(records.map(({ kind }) => kind)).toEqual(["found", "found", "found"]);
    }
    await store.close();
    await sql.end({ timeout: 1 });
    await wire.close();
  });
});

describe("a process that forgot to close its store", () => {
  it("can end: no connection that is idle keeps it alive", async () => {
    const keeping = (): number =>
      process.getActiveResourcesInfo().filter((name) => name !== "TTYWrap").length;
    const sockets = (): number =>
      process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length;
    const before = sockets();
    const store = await open();
    await create(store, key("forgotten"));
    await store.watch?.({ tenant: null, prefix: "" }, () => undefined);
    expect(sockets()).toBe(before);
    const idle = keeping();
    const call = readOne(store, key("forgotten"));
    expect(keeping()).toBeGreaterThan(idle);
    await call;
  });
});
