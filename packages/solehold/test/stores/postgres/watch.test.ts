/** Watches that are disturbed: after each break a reset, and polling where notifications do not arrive. */
import pg from "pg";
import postgres from "postgres";
import { describe, expect, it, vi } from "vitest";
import { ManualEnv } from "../../../src/env/index.ts";
import { startProxy } from "../../engines/index.ts";
import { ownServer } from "./own-server.ts";
import { applyOne, create, EVERYTHING, eventually, key, watchAll } from "./support.ts";
import { startWire } from "./wire.ts";

const server = ownServer();

describe("a watch whose connection breaks", () => {
  const endListeners =
    "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and mode = 'ShareLock'";

  it("gets a reset when it listens again, and the events that come later", async () => {
    const [writer, watcher] = [await server.open(), await server.open()];
    const events = await watchAll(watcher);
    await server.admin.query(endListeners);
    await events.until(() => events.resets === 1);
    await create(writer, key("after the break"));
    await events.until(() => events.names().includes("default/after the break"));
  });

  it("gets a reset through a caller's pool and through postgres.js, too", async () => {
    const pool = new pg.Pool({ connectionString: server.url });
    const sql = postgres(server.url, { backoff: () => 0.05 });
    for (const client of [pool, sql]) {
      const store = await server.open({ pool: client, table: "by_clients" });
      const events = await watchAll(store);
      await server.admin.query(endListeners);
      await server.admin.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen%'",
      );
      await events.until(() => events.resets > 0);
      await create(store, key("later"));
      await events.until(() => events.names().includes("default/later"));
      await store.close();
      await server.admin.query("truncate solehold.by_clients");
    }
    await pool.end();
    await sql.end({ timeout: 1 });
  });

  it("notices a connection that fell silent", async () => {
    const env = new ManualEnv();
    const proxy = await startProxy({ targetPort: Number(new URL(server.url).port) });
    const store = await server.open({ url: proxy.through(server.url), env });
    const events = await watchAll(store);
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
    await store.close();
    await proxy.close();
  });
});

/** Of the server's messages, as the protocol names it. */
const NOTIFICATION = "A".charCodeAt(0);

describe("where notifications do not arrive", () => {
  it("the store finds out by itself and polls instead", async () => {
    // As behind a transaction pooler.
    const deaf = await startWire(server.url, { passes: ([type]) => type !== NOTIFICATION });
    const [writer, watcher] = [await server.open(), await server.open({ url: deaf.url, pollIntervalMs: 20 })];
    const events = await watchAll(watcher);
    const version = await create(writer, key("seen"));
    await events.until(() => events.names().includes("default/seen"));
    await applyOne(writer, key("seen"), version, null);
    await events.until(() => events.names().length === 2);
    expect(events.names()).toEqual(["default/seen", "default/seen"]);
    const held = await server.admin.query("select from pg_locks where locktype = 'advisory'");
    expect(held.rowCount).toBe(0);
    await watcher.close();
    await deaf.close();
  });
});

describe("polling", () => {
  it("misses no write that was under way during a poll, reports none twice, and notices deletions", async () => {
    const env = new ManualEnv();
    const store = await server.open({ table: "looked_at", watch: "poll", env, pollIntervalMs: 1_000 });
    const writer = await server.open({ table: "looked_at" });
    await create(writer, key("slow"));
    const events = await watchAll(store);
    const slow = new pg.Client(server.url);
    await slow.connect();
    await slow.query("begin");
    await slow.query("update solehold.looked_at set version = gen_random_uuid() where name = 'slow'");
    await create(writer, key("quick"));
    const poll = async (names: readonly string[]): Promise<void> => {
      await eventually(async () => {
        await env.advance(300);
        return events.names().length >= names.length;
      });
      expect(events.names()).toEqual(names);
    };
    await poll(["default/quick"]);
    await slow.query("commit");
    await slow.end();
    await poll(["default/quick", "default/slow"]);
    const last = await create(writer, key("last"));
    await poll(["default/quick", "default/slow", "default/last"]);
    await applyOne(writer, key("last"), last, null);
    await poll(["default/quick", "default/slow", "default/last", "default/last"]);
  });

  it("takes one statement a time, however many watches there are", async () => {
    const env = new ManualEnv();
    const store = await server.open({ table: "counted", watch: "poll", env, pollIntervalMs: 1_000 });
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
    const store = await server.open({ table: "ended", watch: "poll", env });
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
