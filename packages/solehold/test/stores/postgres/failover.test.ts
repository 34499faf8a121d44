/** Another server takes over: clients learn when, notice what is lost, and never believe a standby. */
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { LeaseStore } from "../../../src/store/index.ts";
import { openPostgresStore, type PostgresStoreOptions } from "../../../src/stores/postgres/index.ts";
import { type Engine, startPostgres } from "../../engines/index.ts";
import { type Address, addressOf, type Standby, standbyOf } from "./standby.ts";
import { applyOne, create, ended, eventually, key, readOne, record } from "./support.ts";

let primary: Engine;
let standby: Standby;
let address: Address;
const stores: LeaseStore[] = [];

beforeAll(async () => {
  primary = await startPostgres({ settings: ["wal_keep_size=64"] });
});

beforeEach(async () => {
  standby = await standbyOf(primary, "standby");
  await standby.start();
  address = await addressOf(primary.url);
});

afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()));
  await address.close();
  await standby.remove();
  await primary.restart();
});

afterAll(() => primary?.stop());

async function open(options: PostgresStoreOptions = {}): Promise<LeaseStore> {
  const store = await openPostgresStore({ url: address.url, ...options });
  stores.push(store);
  return store;
}

async function failOver(): Promise<void> {
  await primary.kill();
  await standby.promote();
  address.lead(standby.url);
}

/** What the store answers once its lost connections are behind it. */
function answered<Answer>(ask: () => Promise<Answer>): Promise<Answer | Error> {
  return eventually(async () => {
    const answer = await ask().catch((error: Error & { kind?: string }) => error);
    const isLost = answer instanceof Error && "kind" in answer && answer.kind === "unreachable";
    return isLost ? null : answer;
  });
}

describe("a failover that loses nothing", () => {
  it("is known with the first answer after it, on the new server's clock, to all who come", async () => {
    const [store, other] = [await open({ table: "known" }), await open({ table: "known" })];
    const version = await create(store, key("job"));
    expect((await store.read([key("job")])).serverChangedAtMs).toBeNull();
    await standby.catchUp();
    await failOver();
    const reply = await answered(() => store.read([key("job")]));
    if (reply instanceof Error) throw reply;
    expect(reply.records).toMatchObject([{ kind: "found", version }]);
    const { serverChangedAtMs: changedAtMs, storeTimeMs } = reply;
    expect(typeof changedAtMs).toBe("number");
    expect(storeTimeMs! - changedAtMs!).toBeLessThan(60_000);
    const write = await answered(() => other.apply([{ key: key("job"), expected: version, next: null }]));
    expect(write).toMatchObject({ serverChangedAtMs: changedAtMs, results: [{ kind: "applied" }] });
    const late = await open({ table: "known" });
    expect((await late.read([])).serverChangedAtMs).toBe(changedAtMs);
  });
});

describe("a failover that loses acknowledged writes", () => {
  it("is reported once to each client that saw them, although others have written more since", async () => {
    const [witness, reader] = [await open({ table: "lossy" }), await open({ table: "lossy" })];
    const version = await create(witness, key("job"));
    await standby.catchUp();
    await standby.stop();
    await applyOne(witness, key("job"), version, record(key("job"), { generation: 2n }));
    await primary.kill();
    await standby.start();
    await failOver();
    const newcomer = await open({ table: "lossy" });
    for (let index = 0; index < 20; index += 1) await create(newcomer, key(`more/${index}`));
    const loss = await answered(() => witness.read([key("job")]));
    expect(loss).toMatchObject({
      name: "StoreError",
      kind: "data-loss",
      outcome: "not-applied",
      message: expect.stringMatching(
        /lost data .*last acknowledged writes are gone.*: leases may be granted again/,
      ),
    });
    expect(await witness.read([key("job")])).toMatchObject({ records: [{ version }] });
    expect(await applyOne(witness, key("job"), version, record(key("job")))).toMatchObject({
      kind: "applied",
    });
    // This one wrote nothing, so it can have lost nothing that it relies on.
    expect(await answered(() => readOne(reader, key("more/1")))).toMatchObject({ kind: "found" });
  });

  it("is reported by a write with an unknown outcome: it may have been done", async () => {
    const witness = await open({ table: "lossy_write" });
    const version = await create(witness, key("kept"));
    await standby.catchUp();
    await standby.stop();
    await create(witness, key("lost"));
    await primary.kill();
    await standby.start();
    await failOver();
    const next = record(key("kept"), { generation: 2n });
    const loss = await answered(() => applyOne(witness, key("kept"), version, next));
    expect(loss).toMatchObject({ kind: "data-loss", outcome: "unknown" });
    expect(await readOne(witness, key("kept"))).toMatchObject({ record: { nonce: next.nonce } });
  });
});

describe("a standby", () => {
  it("is refused by name, and never believed, also by a store that was led to it later", async () => {
    const store = await open({ table: "stale" });
    const version = await create(store, key("job"));
    await standby.catchUp();
    await expect(openPostgresStore({ url: standby.url, table: "stale" })).rejects.toMatchObject({
      kind: "config",
      message: expect.stringMatching(/read-only .*connect to the primary/),
    });
    address.lead(standby.url);
    const calls: readonly (() => Promise<unknown>)[] = [
      () => readOne(store, key("job")),
      () => applyOne(store, key("job"), version, record(key("job"))),
      () => store.list!({ tenant: "default", prefix: "", limit: 1 }),
    ];
    for (const call of calls)
      expect(await answered(call)).toMatchObject({
        kind: "config",
        outcome: "not-applied",
        message: expect.stringMatching(/connect to the primary/),
      });
    // The connections to the standby were not kept.
    address.lead(primary.url);
    expect(await answered(() => readOne(store, key("job")))).toMatchObject({ version });
  });

  it("that may take over without the last writes makes a store not durable", async () => {
    const durable = async (): Promise<boolean> => {
      const store = await open({ table: "durable" });
      return store.capabilities.durable;
    };
    expect(await durable()).toBe(false);
    await settings("alter system set synchronous_standby_names = 'standby'");
    expect(await durable()).toBe(true);
    await settings("alter system set synchronous_commit = 'local'");
    expect(await durable()).toBe(false);
    await settings("alter system reset synchronous_commit", "alter system reset synchronous_standby_names");
    await standby.stop();
    await eventually(durable);
  });
});

async function settings(...statements: readonly string[]): Promise<void> {
  const client = new pg.Client(primary.url);
  await client.connect();
  for (const statement of statements) await client.query(statement);
  await client.query("select pg_reload_conf()");
  await client.end();
}

describe("a role that may not ask which server it is", () => {
  it("uses the store all the same, which then knows of no change", async () => {
    await settings(
      "create role unprivileged login password 'secret'",
      "grant create on database postgres to unprivileged",
      "revoke execute on function pg_control_system() from public",
    );
    const url = new URL(primary.url);
    [url.username, url.password] = ["unprivileged", "secret"];
    const store = await open({ url: url.href, schema: "unprivileged" });
    await create(store, key("job"));
    expect(await ended(store.read([key("job")]))).toMatchObject({ serverChangedAtMs: null });
  });
});
