/** How changes are announced: only while somebody listens, with what an end brings, in few payloads, and none forgotten. */
import pg from "pg";
import { describe, expect, it, vi } from "vitest";
import { Leases } from "../../../src/client/index.ts";
import type { LeaseRecord } from "../../../src/core/index.ts";
import { type Env, realEnv } from "../../../src/env/index.ts";
import { StoreLeaseManager } from "../../../src/manager/index.ts";
import type { StoreEvent } from "../../../src/store/index.ts";
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
    const [writer, watcher] = [await server.open({ table, env }), await server.open({ table })];
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
    const [writer, watcher] = [await server.open({ table }), await server.open({ table })];
    const bystander = await overhear(table);
    await create(writer, key("before"));
    const events = new Events();
    const watch = await watcher.watch!(EVERYTHING, events.listener);
    await create(writer, key("during"));
    await events.until(() => events.names().includes("default/during"));
    await watch.close();
    await create(writer, key("after"));
    await server.admin.query("select pg_notify($1, 'the end')", [tableNames({ table }).channel]);
    await eventually(async () => bystander.heard.includes("the end"));
    expect(bystander.heard.map(withoutMarks)).toEqual(["+\ndefault/during", "the end"]);
    await bystander.end();
  });

  it("say whether a key is held, which a watch that wants to know no more is told without a read", async () => {
    const table = "holding";
    const writer = await server.open({ table });
    const reads = new pg.Pool({ connectionString: server.url });
    const watcher = await server.open({ table, pool: reads });
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
    await watcher.close();
    await reads.end();
  });

  it.each([
    ["released", record(key("job"), { state: "released", endedAtMs: 1 })],
    ["revoked", record(key("job"), { state: "revoked", endedAtMs: 1 })],
    ["deleted", null],
  ])("of an end (%s) are sent once if it was done, and not if it was not", async (how, next) => {
    const table = `told_${how}`;
    const [writer, watcher] = [await server.open({ table }), await server.open({ table })];
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
    const [writer, seeing, late] = [
      await server.open({ table }),
      await server.open({ table }),
      await server.open({ table }),
    ];
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
    const [held, wanted] = [await server.open({ table }), await server.open({ table })];
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
    const [writer, watcher] = [await server.open({ table }), await server.open({ table })];
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
    const writer = await server.open({ table, url: proxy.through(server.url), timeoutMs: 1_000 });
    const events = await watchAll(await server.open({ table }));
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
    const lock = "select from pg_locks where locktype = 'advisory' and mode = 'ShareLock' and granted";
    await eventually(async () => (await server.admin.query(lock)).rowCount === 1);
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
});
