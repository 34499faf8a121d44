/** An end for which others wait: they hear of it, and may build upon it, before it is safe; its own client does not. */
import pg from "pg";
import { afterEach, describe, expect, it } from "vitest";
import { Leases } from "../../../src/client/index.ts";
import type { LeaseRecord } from "../../../src/core/index.ts";
import { StoreLeaseManager } from "../../../src/manager/index.ts";
import type { LeaseStore, WriteResult } from "../../../src/store/index.ts";
import { ownServer } from "./own-server.ts";
import { applyOne, create, Events, eventually, isFreed, key, readOne, record, underWay } from "./support.ts";

const server = ownServer();

afterEach(goOn);

/** From now on nothing becomes safe: the server waits for a standby that does not exist. Who does not wait goes on. */
async function standStill(): Promise<void> {
  await server.admin.query("alter system set synchronous_standby_names = 'nobody'");
  await server.admin.query("select pg_reload_conf()");
  // The server takes notice of it in its own time: until then this is answered.
  const probe = new pg.Client(server.url);
  await probe.connect();
  let isStill = false;
  while (!isStill) {
    let isAnswered = false;
    const answer = probe.query("select pg_logical_emit_message(true, 'probe', '')").finally(() => {
      isAnswered = true;
    });
    await eventually(async () => isAnswered || (await waiting()) > 0);
    isStill = !isAnswered;
    if (isStill)
      await server.admin.query(
        "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'",
      );
    await answer;
  }
  await probe.end();
}

/** How many wait until what they wrote is safe. */
async function waiting(): Promise<number> {
  const { rowCount } = await server.admin.query("select from pg_stat_activity where wait_event = 'SyncRep'");
  return rowCount ?? 0;
}

async function goOn(): Promise<void> {
  await server.admin.query("alter system reset synchronous_standby_names");
  await server.admin.query("select pg_reload_conf()");
  await eventually(async () => (await waiting()) === 0);
}

/** A lease that is held, of which somebody else waits to hear that it ends. */
async function watchedLease(
  holder: LeaseStore,
  name: string,
): Promise<{ readonly other: LeaseStore; readonly heard: Events; release(): Promise<WriteResult> }> {
  const other = await server.open();
  const heard = new Events();
  await other.watch!({ tenant: null, prefix: name, wants: "holding" }, heard.listener);
  const held = record(key(name));
  const version = await create(holder, key(name), held);
  const released: LeaseRecord = { ...held, state: "released", endedAtMs: 1, nonce: "released" };
  return { other, heard, release: () => applyOne(holder, key(name), version, released, held) };
}

/** What stands there, safe or not, as nobody is answered with. */
async function seenOf(store: LeaseStore, name: string): Promise<LeaseRecord | undefined> {
  const { records } = await store.list({ tenant: key(name).tenant, prefix: name, limit: 1 });
  return records[0];
}

describe("an end for which others wait", () => {
  it("is heard of and seen before it is safe, and answered once it is", async () => {
    const { other, heard, release } = await watchedLease(await server.open(), "job");
    await standStill();
    const releasing = underWay(release());
    await heard.until(() => isFreed(heard));
    expect(await seenOf(other, "job")).toMatchObject({ state: "released" });
    await eventually(async () => (await waiting()) === 1);
    expect(releasing.isOver()).toBe(false);
    await goOn();
    expect(await releasing.how).toMatchObject({ kind: "applied" });
  });

  it("can be built upon at once, and what is built is answered when it is safe, too", async () => {
    const [mine, theirs] = await Promise.all(
      ["mine", "theirs"].map(async (holder) => {
        return new Leases({ manager: new StoreLeaseManager({ store: await server.open() }), holder });
      }),
    );
    const lease = await mine!.acquire("shared");
    const granting = underWay(theirs!.acquire("shared", { wait: "20s" }));
    const reader = await server.open();
    // Whether anybody listens is told with each write.
    await eventually(async () => {
      const { rowCount } = await server.admin.query(
        "select from pg_locks where locktype = 'advisory' and mode = 'ShareLock'",
      );
      await (await mine!.acquire("other")).release();
      return (rowCount ?? 0) > 0;
    });
    await standStill();
    const releasing = underWay(lease.release());
    // The one who waits has written its grant, and waits with it.
    await eventually(async () => (await waiting()) === 2);
    expect([releasing.isOver(), granting.isOver()]).toEqual([false, false]);
    expect(await seenOf(reader, "shared")).toMatchObject({ state: "released", holder: "mine" });
    await goOn();
    expect(await releasing.how).toMatchObject({ released: true });
    expect(await granting.how).toMatchObject({ holder: "theirs", fence: lease.fence + 1n });
  });

  it.each(["who got no answer", "anybody else"])("is found by %s only once it is safe", async (who) => {
    const holder = await server.open({ timeoutMs: 400 });
    const { other, release } = await watchedLease(holder, who);
    const finder = who === "anybody else" ? await server.open({ timeoutMs: 400 }) : holder;
    await standStill();
    expect(await underWay(release()).how).toMatchObject({ name: "StoreError", outcome: "unknown" });
    expect(await seenOf(other, who)).toMatchObject({ nonce: "released" });
    expect(await underWay(readOne(finder, key(who))).how).toMatchObject({ kind: "timeout" });
    await goOn();
    expect(await readOne(finder, key(who))).toMatchObject({ record: { nonce: "released" } });
  });

  it("is not seen early where the role may not ask when it is safe", async () => {
    await server.open();
    await server.admin.query("create role app login password 'app'");
    await server.admin.query("grant usage on schema solehold to app");
    await server.admin.query("grant select, insert, update, delete on all tables in schema solehold to app");
    await server.admin.query(
      "revoke execute on function pg_logical_emit_message(boolean, text, text) from public",
    );
    const url = new URL(server.url);
    Object.assign(url, { username: "app", password: "app" });
    const { other, release } = await watchedLease(await server.open({ url: url.href }), "denied");
    await standStill();
    const releasing = underWay(release());
    await eventually(async () => (await waiting()) === 1);
    expect(await readOne(other, key("denied"))).toMatchObject({ record: { state: "held" } });
    await goOn();
    expect(await releasing.how).toMatchObject({ kind: "applied" });
  });
});
