/** How news arrives: announced only when somebody listens, after breaks a reset, by looking where nothing is heard. */
import { connect, createServer, type Socket } from "node:net";
import pg from "pg";
import postgres from "postgres";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { Leases } from "../../../src/client/index.ts";
import type { LeaseRecord } from "../../../src/core/index.ts";
import { type Env, ManualEnv, realEnv } from "../../../src/env/index.ts";
import { StoreLeaseManager } from "../../../src/manager/index.ts";
import type { LeaseStore, StoreEvent } from "../../../src/stores/index.ts";
import { openPostgresStore, type PostgresStoreOptions } from "../../../src/stores/postgres/index.ts";
import { tableNames } from "../../../src/stores/postgres/names.ts";
import { type Engine, startPostgres, startProxy } from "../../engines/index.ts";
import { applyOne, create, Events, eventually, key, readOne, record } from "./support.ts";

const EVERYTHING = { tenant: null, prefix: "" };

let server: Engine;
let admin: pg.Pool;
const stores: LeaseStore[] = [];

beforeAll(async () => {
  server = await startPostgres();
  admin = new pg.Pool({ connectionString: server.url });
});

afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()));
});

afterAll(async () => {
  await admin?.end();
  await server?.stop();
});

async function open(options: PostgresStoreOptions = {}): Promise<LeaseStore> {
  const source = options.pool === undefined ? { url: server.url } : {};
  const store = await openPostgresStore({ ...source, ...options });
  stores.push(store);
  return store;
}

async function watchAll(store: LeaseStore): Promise<Events> {
  const events = new Events();
  await store.watch?.(EVERYTHING, events.listener);
  return events;
}

/** A bystander's ear on the channel of a table, which no writer knows of. */
async function overhear(table: string): Promise<{ readonly heard: string[]; end(): Promise<void> }> {
  const client = new pg.Client(server.url);
  const heard: string[] = [];
  await client.connect();
  client.on("error", () => undefined);
  client.on("notification", ({ payload = "" }) => {
    // A store that begins to listen asks itself whether it hears.
    if (!payload.startsWith("?")) heard.push(payload);
  });
  await client.query(`listen "${tableNames({ table }).channel}"`);
  return { heard, end: () => client.end() };
}

/** The last line of what is announced tells holders apart, the one before how leases ended. */
function withoutMarks(payload: string): string {
  return payload.replace(/(\n[\w:,-]+,)?\n[\w-]+$/, "");
}

function freed(events: Events): Extract<StoreEvent, { kind: "changed" }> | undefined {
  return events.seen.flatMap((event) => (event.kind === "changed" && event.held === "no" ? event : []))[0];
}

describe("announcements", () => {
  it("are not forgotten by a writer that found nobody listening a moment ago", async () => {
    const table = "calm";
    // Its clock stands still, so that a moment ago lasts.
    const env: Env = {
      monotonicMs: () => 1_000,
      wallMs: () => realEnv.wallMs(),
      timer: (delayMs, callback, options) => realEnv.timer(delayMs, callback, options),
      defer: (callback) => realEnv.defer(callback),
      randomBytes: (length) => realEnv.randomBytes(length),
      random: () => realEnv.random(),
    };
    const [writer, watcher] = [await open({ table, env }), await open({ table })];
    const times: (number | null)[] = [];
    const write = async (name: string): Promise<void> => {
      const { storeTimeMs, results } = await writer.apply([
        { key: key(name), expected: null, next: record(key(name)) },
      ]);
      expect(results[0]!.kind).toBe("applied");
      times.push(storeTimeMs);
    };
    await write("first");
    await write("unheard");
    const events = await watchAll(watcher);
    await write("heard");
    await events.until(() => events.names().includes("default/heard"));
    expect(times.map((time) => time === null)).toEqual([false, true, false]);
  });

  it("are sent while somebody watches, and not otherwise", async () => {
    const table = "announced";
    const [writer, watcher] = [await open({ table }), await open({ table })];
    const bystander = await overhear(table);
    await create(writer, key("before"));
    const events = new Events();
    const watch = await watcher.watch!(EVERYTHING, events.listener);
    await create(writer, key("during"));
    await events.until(() => events.names().includes("default/during"));
    await watch.close();
    await create(writer, key("after"));
    await admin.query("select pg_notify($1, 'the end')", [tableNames({ table }).channel]);
    await eventually(async () => bystander.heard.includes("the end"));
    expect(bystander.heard.map(withoutMarks)).toEqual(["+\ndefault/during", "the end"]);
    await bystander.end();
  });

  it("say whether a key is held, which a watch that wants to know no more is told without a read", async () => {
    const table = "holding";
    const writer = await open({ table });
    const reads = new pg.Pool({ connectionString: server.url });
    const watcher = await open({ table, pool: reads });
    const [holding, records] = [new Events(), new Events()];
    const watch = await watcher.watch!({ ...EVERYTHING, wants: "holding" }, holding.listener);
    const statements = vi.spyOn(pg.Client.prototype, "query");
    const held = record(key("job"));
    const version = await create(writer, key("job"), held);
    const next: LeaseRecord = { ...held, state: "released", endedAtMs: 1 };
    const released = await applyOne(writer, key("job"), version, next, held);
    await holding.until(() => holding.seen.length === 2);
    const texts = statements.mock.calls.map(([query]) => (query as { text?: string }).text ?? "");
    statements.mockRestore();
    expect(texts.filter((text) => text.includes('from "solehold"'))).toEqual([]);
    const told = {
      kind: "changed",
      key: key("job"),
      record: null,
      by: expect.any(String),
      grant: expect.any(String),
    };
    expect(holding.seen).toEqual([
      { ...told, held: "yes" },
      { ...told, held: "no", stored: expect.any(Function) },
    ]);
    await watcher.watch!(EVERYTHING, records.listener);
    if (released.kind !== "applied") throw new Error(released.kind);
    await applyOne(writer, key("job"), released.version, record(key("job")));
    await records.until(() => records.seen.length === 1);
    await holding.until(() => holding.seen.length === 3);
    expect(records.seen).toMatchObject([{ record: { state: "held" } }]);
    expect(holding.seen[2]).toEqual({ ...told, held: "yes" });
    await watch.close();
    await stores.pop()?.close();
    await reads.end();
  });

  it.each([
    ["released", record(key("job"), { state: "released", endedAtMs: 1 })],
    ["revoked", record(key("job"), { state: "revoked", endedAtMs: 1 })],
    ["deleted", null],
  ])("of an end (%s) are sent once if it was done, and not if it was not", async (how, next) => {
    const table = `told_${how}`;
    const [writer, watcher] = [await open({ table }), await open({ table })];
    await watchAll(watcher);
    const bystander = await overhear(table);
    const of = key("job");
    const version = await create(writer, of);
    expect(await applyOne(writer, of, version, next)).toMatchObject({ kind: "applied" });
    expect(await applyOne(writer, of, version, next)).toMatchObject({ kind: "conflict" });
    await create(writer, key("last"));
    await eventually(async () => bystander.heard.some((payload) => payload.includes("last")));
    // They come over several connections, so in any order.
    await eventually(async () => bystander.heard.length >= 3);
    expect(bystander.heard.map(withoutMarks).toSorted()).toEqual(
      ["+\ndefault/job", "-\ndefault/job", "+\ndefault/last"].toSorted(),
    );
    await bystander.end();
  });

  it("of an end bring all that there is to know to who has seen the row before, and nothing to others", async () => {
    const table = "ends";
    const [writer, seeing, late] = [await open({ table }), await open({ table }), await open({ table })];
    const of = key("job");
    const version = await create(writer, of);
    const events = await Promise.all(
      [seeing, late].map(async (store) => {
        const each = new Events();
        await store.watch!({ ...EVERYTHING, wants: "holding" }, each.listener);
        return each;
      }),
    );
    // The other one last saw what was there before it was renewed.
    await readOne(late, of);
    const renewed = record(of, { renewals: 1 });
    const again = await applyOne(writer, of, version, renewed);
    if (again.kind !== "applied") throw new Error(again.kind);
    await readOne(seeing, of);
    const next: LeaseRecord = { ...renewed, state: "released", endedAtMs: 1, nonce: "the-end" };
    await applyOne(writer, of, again.version, next, renewed);
    await Promise.all(events.map((each) => each.until(() => freed(each) !== undefined)));
    const [told, nothing] = events.map((each) => freed(each)?.stored?.());
    expect(told).toMatchObject({ kind: "found", record: next });
    expect(told).toEqual(await readOne(writer, of));
    expect(nothing).toBeNull();
  });

  it("of an end let the next one take it without a look", async () => {
    const table = "without_a_look";
    const [held, wanted] = [await open({ table }), await open({ table })];
    const reads = vi.spyOn(wanted, "read");
    const mine = new Leases({ manager: new StoreLeaseManager({ store: held }) });
    const theirs = new Leases({ manager: new StoreLeaseManager({ store: wanted }) });
    const lease = await mine.acquire("job");
    const waiting = theirs.acquire("job", { wait: "20s" });
    // Once because it is held, and once more when it has begun to listen.
    await eventually(async () => reads.mock.results.length === 2);
    await reads.mock.results[1]?.value;
    await lease.release();
    await (await waiting).release();
    expect(reads).toHaveBeenCalledTimes(2);
  });

  it("of a batch travel in few payloads, each below the server's limit", async () => {
    const table = "batched";
    const [writer, watcher] = [await open({ table }), await open({ table })];
    const events = await watchAll(watcher);
    const bystander = await overhear(table);
    const keys = Array.from({ length: 200 }, (_, index) => key(`${index}/`.padEnd(200, "ü")));
    await writer.apply(keys.map((each) => ({ key: each, expected: null, next: record(each) })));
    await events.until(() => new Set(events.names()).size === keys.length);
    await eventually(async () => bystander.heard.length > 0);
    expect(bystander.heard.length).toBeLessThan(20);
    await bystander.end();
  });

  it("of a write whose outcome was unknown are made up for", async () => {
    const table = "made_up";
    const proxy = await startProxy({ targetPort: Number(new URL(server.url).port) });
    const writer = await open({ table, url: proxy.through(server.url), timeoutMs: 1_000 });
    const events = await watchAll(await open({ table }));
    const version = await create(writer, key("job"));
    await events.until(() => events.names().length === 1);
    // The announcement may still be under way on its connection; after this there is one that is free.
    await writer.read([]);
    proxy.dropReplies();
    const next = record(key("job"), { state: "released", endedAtMs: 1 });
    await expect(applyOne(writer, key("job"), version, next)).rejects.toMatchObject({ outcome: "unknown" });
    proxy.heal();
    await events.until(() =>
      events.seen.some((each) => each.kind === "changed" && each.record?.state === "released"),
    );
    await writer.close();
    await proxy.close();
  });

  it("are relied on only when every older write is over", async () => {
    const table = "overlapping";
    const [writer, watcher] = [await open({ table }), await open({ table, timeoutMs: 60_000 })];
    const version = await create(writer, key("job"));
    const blocker = new pg.Client(server.url);
    await blocker.connect();
    await blocker.query("begin");
    await blocker.query(`select from solehold.${table} for update`);
    const write = applyOne(writer, key("job"), version, record(key("job"), { generation: 2n }));
    await eventually(
      async () => (await admin.query("select from pg_locks where not granted")).rowCount === 1,
    );
    let began = false;
    const events = new Events();
    const watching = watcher.watch!(EVERYTHING, events.listener).then((watch) => {
      began = true;
      return watch;
    });
    const lock = "select from pg_locks where locktype = 'advisory' and mode = 'ShareLock' and granted";
    await eventually(async () => (await admin.query(lock)).rowCount === 1);
    await eventually(async () => {
      const { rows } = await admin.query(
        "select from pg_stat_activity where query like '%pg_snapshot_xmin%' and pid <> pg_backend_pid()",
      );
      return rows.length === 1;
    });
    // A write that looked for listeners before this one came would not announce itself.
    expect(began).toBe(false);
    await blocker.query("rollback");
    await blocker.end();
    expect(await write).toMatchObject({ kind: "applied" });
    await watching;
  });
});

describe("a watch whose connection breaks", () => {
  const endListeners =
    "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and mode = 'ShareLock'";

  it("is told of a reset when it listens again, and hears of what comes later", async () => {
    const [writer, watcher] = [await open(), await open()];
    const events = await watchAll(watcher);
    await admin.query(endListeners);
    await events.until(() => events.resets === 1);
    await create(writer, key("after the break"));
    await events.until(() => events.names().includes("default/after the break"));
  });

  it("is told of a reset through a caller's pool and through postgres.js, too", async () => {
    const pool = new pg.Pool({ connectionString: server.url });
    const sql = postgres(server.url, { backoff: () => 0.05 });
    for (const client of [pool, sql]) {
      const store = await open({ pool: client, table: "by_clients" });
      const events = await watchAll(store);
      await admin.query(endListeners);
      await admin.query("select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen%'");
      await events.until(() => events.resets > 0);
      await create(store, key("later"));
      await events.until(() => events.names().includes("default/later"));
      await store.close();
      await admin.query("truncate solehold.by_clients");
    }
    await pool.end();
    await sql.end({ timeout: 1 });
  });

  it("notices a connection that fell silent", async () => {
    const env = new ManualEnv();
    const proxy = await startProxy({ targetPort: Number(new URL(server.url).port) });
    const opening = open({ url: proxy.through(server.url), env });
    const events = await watchAll(await opening);
    proxy.freeze();
    await eventually(async () => {
      await env.advance(1_000);
      return proxy.connections > 2;
    });
    proxy.heal();
    await eventually(async () => {
      await env.advance(500);
      return events.resets > 0;
    });
    await stores.pop()?.close();
    await proxy.close();
  });
});

/** Passes everything but notifications from the server, as a transaction pooler does. */
async function withoutNotifications(): Promise<{ readonly url: string; end(): void }> {
  const sockets = new Set<Socket>();
  const listener = createServer((client) => {
    const upstream = connect(Number(new URL(server.url).port), "127.0.0.1");
    let pending = Buffer.alloc(0);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => void [client.destroy(), upstream.destroy()]);
    }
    client.pipe(upstream);
    upstream.on("data", (data: Buffer) => {
      pending = Buffer.concat([pending, data]);
      while (pending.length >= 5 && pending.length >= 1 + pending.readInt32BE(1)) {
        const length = 1 + pending.readInt32BE(1);
        if (pending[0] !== "A".charCodeAt(0)) client.write(pending.subarray(0, length));
        pending = pending.subarray(length);
      }
    });
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const address = listener.address();
  const url = new URL(server.url);
  url.port = String(typeof address === "object" ? address?.port : "");
  return {
    url: url.href,
    end: () => {
      for (const socket of sockets) socket.destroy();
      listener.close();
    },
  };
}

describe("where notifications do not arrive", () => {
  it("the store finds out by itself and looks instead", async () => {
    const deaf = await withoutNotifications();
    const [writer, watcher] = [await open(), await open({ url: deaf.url, pollIntervalMs: 20 })];
    const events = await watchAll(watcher);
    const version = await create(writer, key("seen"));
    await events.until(() => events.names().includes("default/seen"));
    await applyOne(writer, key("seen"), version, null);
    await events.until(() => events.resets > 0);
    const held = await admin.query("select from pg_locks where locktype = 'advisory'");
    expect(held.rowCount).toBe(0);
    await stores.pop()?.close();
    deaf.end();
  });
});

describe("looking", () => {
  it("misses no write that was under way during a look, and tells of none twice", async () => {
    const env = new ManualEnv();
    const store = await open({ table: "looked_at", watch: "poll", env, pollIntervalMs: 1_000 });
    const writer = await open({ table: "looked_at" });
    const version = await create(writer, key("slow"));
    const events = await watchAll(store);
    const slow = new pg.Client(server.url);
    await slow.connect();
    await slow.query("begin");
    await slow.query(
      "update solehold.looked_at set version = gen_random_uuid(), changed_xid = pg_current_xact_id()",
    );
    await create(writer, key("quick"));
    const look = async (names: readonly string[]): Promise<void> => {
      await eventually(async () => {
        await env.advance(300);
        return events.names().length >= names.length;
      });
      expect(events.names()).toEqual(names);
    };
    await look(["default/quick"]);
    await slow.query("commit");
    await slow.end();
    await look(["default/quick", "default/slow"]);
    await create(writer, key("last"));
    await look(["default/quick", "default/slow", "default/last"]);
    expect(version).not.toBe("");
  });

  it("takes one statement a time, however many watches there are", async () => {
    const env = new ManualEnv();
    const store = await open({ table: "counted", watch: "poll", env, pollIntervalMs: 1_000 });
    for (let index = 0; index < 20; index += 1)
      await store.watch?.({ tenant: "default", prefix: `job/${index}` }, () => undefined);
    const statements = vi.spyOn(pg.Client.prototype, "query");
    for (let second = 0; second < 10; second += 1) await env.advance(1_000);
    const looks = statements.mock.calls.length;
    statements.mockRestore();
    expect(looks).toBeGreaterThan(0);
    expect(looks).toBeLessThanOrEqual(13);
  });

  it("ends with the last watch", async () => {
    const env = new ManualEnv();
    const store = await open({ table: "ended", watch: "poll", env });
    const [one, two] = [
      await store.watch!(EVERYTHING, () => undefined),
      await store.watch!(EVERYTHING, () => undefined),
    ];
    await one.close();
    await one.close();
    await two.close();
    await store.close();
    expect(env.pendingTimers).toBe(0);
  });
});
