/** How changes are announced: only while somebody listens, with the record, and none forgotten. */
import pg from "pg";
import { describe, expect, it } from "vitest";
import { keyId, MAX_NOTE_LENGTH } from "../../../src/core/index.ts";
import { ManualEnv } from "../../../src/env/index.ts";
import type { LeaseStore } from "../../../src/store/index.ts";
import { tableNames } from "../../../src/stores/postgres/names.ts";
import { startProxy } from "../../engines/index.ts";
import { ownServer } from "./own-server.ts";
import {
  applyOne,
  create,
  EVERYTHING,
  Events,
  eventually,
  key,
  readOne,
  record,
  watchAll,
} from "./support.ts";

const server = ownServer();

/** A bystander on the channel of a table, whom no writer knows of. */
async function overhear(table: string): Promise<{ readonly payloads: string[]; end(): Promise<void> }> {
  const client = new pg.Client(server.url);
  const payloads: string[] = [];
  await client.connect();
  client.on("notification", ({ payload = "" }) => {
    // A store that begins to listen sends something to itself.
    if (!payload.startsWith("?")) payloads.push(payload);
  });
  await client.query(`listen "${await channelOf(table)}"`);
  return { payloads, end: () => client.end() };
}

async function channelOf(table: string): Promise<string> {
  const { rows } = await server.admin.query(`select value from solehold.${table} where tenant = ''`);
  return `solehold_${JSON.parse(rows[0].value).dataId}`;
}

async function listeners(table: string): Promise<number> {
  const { listenerLock } = tableNames({ table });
  const text = `select from pg_locks where locktype = 'advisory' and granted and mode = 'ShareLock' and (classid::bigint << 32) | objid::bigint = $1`;
  return (await server.admin.query(text, [listenerLock])).rowCount ?? 0;
}

describe("announcements", () => {
  it("are sent while somebody listens, and not otherwise", async () => {
    const table = "announced";
    const [writer, watcher] = [await server.open({ table }), await server.open({ table })];
    const bystander = await overhear(table);
    await create(writer, key("before"));
    const events = await watchAll(watcher);
    await create(writer, key("during"));
    await events.until(() => events.names().includes("default/during"));
    await watcher.close();
    await eventually(async () => (await listeners(table)) === 0);
    await create(writer, key("after"));
    await server.admin.query("select pg_notify($1, 'the end')", [await channelOf(table)]);
    await eventually(async () => bystander.payloads.includes("the end"));
    expect(bystander.payloads).toHaveLength(2);
    expect(bystander.payloads[0]).toContain("during");
    await bystander.end();
  });

  it("end a while after the last watch was closed, without the store being closed", async () => {
    const table = "left_alone";
    const env = new ManualEnv();
    const store = await server.open({ table, env });
    const watch = await store.watch!(EVERYTHING, () => undefined);
    await watch.close();
    expect(await listeners(table)).toBe(1);
    await env.advance(15_000);
    await eventually(async () => (await listeners(table)) === 0);
    const again = await watchAll(store);
    await create(await server.open({ table }), key("again"));
    await again.until(() => again.names().includes("default/again"));
  });

  it("carry the record and its version, as a read would show them, and that a key is gone", async () => {
    const table = "carrying";
    const [writer, watcher] = [await server.open({ table }), await server.open({ table })];
    const events = await watchAll(watcher);
    const of = key("job", "tenant-1");
    const version = await create(writer, of, record(of, { note: "quotes \" ' \\ and 漢字 🦊" }));
    const stored = await readOne(writer, of);
    await applyOne(writer, of, version, null);
    await events.until(() => events.seen.length === 2);
    expect(events.seen).toEqual([
      { kind: "changed", key: of, stored },
      { kind: "changed", key: of, stored: { kind: "absent" } },
    ]);
  });

  it("name the key alone when the record does not fit into a notification", async () => {
    const table = "too_long";
    const [writer, watcher] = [await server.open({ table }), await server.open({ table })];
    const events = await watchAll(watcher);
    const long = { op: "acquire", keyHash: "h", fingerprint: "f", sealedToken: "s".repeat(8_000) };
    await create(writer, key("long"), record(key("long"), { idempotency: long }));
    await create(writer, key("note"), record(key("note"), { note: "n".repeat(MAX_NOTE_LENGTH) }));
    await events.until(() => events.seen.length === 2);
    expect(events.seen).toMatchObject([
      { key: key("long"), stored: null },
      { key: key("note"), stored: { kind: "found" } },
    ]);
  });

  it("of a batch are of those writes only that were done", async () => {
    const table = "batched";
    const [writer, watcher] = [await server.open({ table }), await server.open({ table })];
    const stale = await create(writer, key("stale"));
    await applyOne(writer, key("stale"), stale, record(key("stale")));
    const events = await watchAll(watcher);
    const created = ["a", "b", "c"]
      .map((name) => key(name))
      .map((of) => ({ key: of, expected: null, next: record(of) }));
    await writer.apply([...created, { key: key("stale"), expected: stale, next: null }]);
    await create(writer, key("last"));
    await events.until(() => events.names().includes("default/last"));
    expect(events.names().toSorted()).toEqual(["default/a", "default/b", "default/c", "default/last"]);
  });

  it("cannot be listened to by a role that may not read the table", async () => {
    const table = "private";
    const [writer, watcher] = [await server.open({ table }), await server.open({ table })];
    const events = await watchAll(watcher);
    await server.admin.query("create role stranger login password 'secret'");
    const url = new URL(server.url);
    [url.username, url.password] = ["stranger", "secret"];
    const stranger = new pg.Client(url.href);
    await stranger.connect();
    const { rows } = await stranger.query(
      "select query from pg_stat_activity where query like '%solehold_%'",
    );
    await create(writer, key("job"));
    await events.until(() => events.names().length === 1);
    const channel = await channelOf(table);
    expect(rows.filter(({ query }) => query.includes(channel))).toEqual([]);
    await expect(stranger.query(`select value from solehold.${table}`)).rejects.toMatchObject({
      code: "42501",
    });
    await stranger.end();
  });

  it("that are none are ignored", async () => {
    const table = "garbled";
    const [writer, watcher] = [await server.open({ table }), await server.open({ table })];
    const events = await watchAll(watcher);
    for (const payload of ["", "[", "{}", "null", "[1,2,3,4]", '["default"]'])
      await server.admin.query("select pg_notify($1, $2)", [await channelOf(table), payload]);
    await create(writer, key("job"));
    await events.until(() => events.names().includes("default/job"));
    expect(events.seen).toHaveLength(1);
  });

  it("that are under way are sent before the store is closed", async () => {
    for (const pool of ["own", "given"] as const) {
      const table = `closing_${pool}`;
      const given = new pg.Pool({ connectionString: server.url });
      const events = await watchAll(await server.open({ table }));
      for (let round = 0; round < 10; round += 1) {
        const writer = await server.open({ table, ...(pool === "given" && { pool: given }) });
        await create(writer, key(`${round}`));
        await writer.close();
        await events.until(() => events.names().includes(`default/${round}`));
      }
      await given.end();
    }
  });

  it("of a write whose outcome was unknown are made up for by a reset", async () => {
    const table = "made_up";
    const proxy = await startProxy({ targetPort: Number(new URL(server.url).port) });
    const writer = await server.open({ table, url: proxy.through(server.url), timeoutMs: 3_000 });
    const events = await watchAll(await server.open({ table }));
    const version = await create(writer, key("job"));
    await events.until(() => events.names().length === 1);
    // The announcement may still be under way on its connection; after this there is one that is free.
    await writer.read([]);
    proxy.dropReplies();
    const next = record(key("job"), { state: "released", endedAtMs: 1 });
    await expect(applyOne(writer, key("job"), version, next)).rejects.toMatchObject({ outcome: "unknown" });
    proxy.heal();
    await events.until(() => events.resets > 0);
    await writer.close();
    await proxy.close();
  });

  it("are relied on only when every older write is over", async () => {
    const table = "overlapping";
    const [writer, watcher] = [await server.open({ table }), await server.open({ table, timeoutMs: 60_000 })];
    const version = await create(writer, key("job"));
    const blocker = new pg.Client(server.url);
    await blocker.connect();
    await blocker.query("begin");
    await blocker.query(`select from solehold.${table} for update`);
    const write = applyOne(writer, key("job"), version, record(key("job"), { generation: 2n }));
    await eventually(
      async () => (await server.admin.query("select from pg_locks where not granted")).rowCount === 1,
    );
    let began = false;
    const events = new Events();
    const watching = watcher.watch!(EVERYTHING, events.listener).then((watch) => {
      began = true;
      return watch;
    });
    await eventually(async () => (await listeners(table)) === 1);
    await eventually(async () => {
      const { rows } = await server.admin.query(
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

  it("miss nothing that is written after a watch began, while many write and watches come and go", async () => {
    const table = "coming_and_going";
    const writers = await Promise.all(Array.from({ length: 4 }, () => server.open({ table })));
    let lastName = 0;
    const createNext = async (writer: LeaseStore): Promise<string> => {
      lastName += 1;
      const of = key(`${lastName}`);
      await create(writer, of);
      return keyId(of);
    };
    for (let turn = 0; turn < 8; turn += 1) {
      const store = await server.open({ table });
      const watching = watchAll(store);
      let isWatched = false;
      const onWatched = (): void => {
        isWatched = true;
      };
      watching.then(onWatched, onWatched);
      const write = async (writer: LeaseStore): Promise<readonly string[]> => {
        for (let round = 0; round < 100 && !isWatched; round += 1) await createNext(writer);
        await watching;
        const names: string[] = [];
        while (names.length < 10) names.push(await createNext(writer));
        return names;
      };
      // Each writes so much and ends, also when the watch or another one fails: none outlives the test's stores.
      const written = await Promise.allSettled(writers.map(write));
      const failed = written.find(({ status }) => status === "rejected");
      expect(failed).toBeUndefined();
      const expected = written.flatMap((each) => (each.status === "fulfilled" ? each.value : []));
      const events = await watching;
      await events.until(() => events.resets > 0 || expected.every((name) => events.names().includes(name)));
      expect(events.resets).toBe(0);
      await store.close();
    }
  });
});
