/** Batches from several clients at once: no deadlock, no lost write, and rivals that abort are tried again. */
import fc from "fast-check";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LeaseKey } from "../../../src/core/index.ts";
import type { ConditionalWrite, LeaseStore, WriteResult } from "../../../src/store/index.ts";
import { openPostgresStore } from "../../../src/stores/postgres/index.ts";
import { type Engine, startPostgres } from "../../engines/index.ts";
import { create, key, readOne, record } from "./support.ts";

let server: Engine;
let admin: pg.Pool;

beforeAll(async () => {
  server = await startPostgres();
  admin = new pg.Pool({ connectionString: server.url });
});

afterAll(async () => {
  await admin?.end();
  await server?.stop();
});

async function deadlocks(): Promise<number> {
  const { rows } = await admin.query(
    "select deadlocks::int as found from pg_stat_database where datname = current_database()",
  );
  return rows[0].found;
}

/** What each client last saw of a key: versions are shared by nobody, so most batches hold stale ones. */
class RandomClient {
  readonly #store: LeaseStore;
  readonly #keys: readonly LeaseKey[];
  readonly #seen = new Map<string, string | null>();
  applied = 0;
  conflicts = 0;

  constructor(store: LeaseStore, keys: readonly LeaseKey[]) {
    this.#store = store;
    this.#keys = keys;
  }

  async round(order: readonly number[], deletes: ReadonlySet<number>): Promise<void> {
    const writes: ConditionalWrite[] = order.map((index) => {
      const of = this.#keys[index]!;
      const expected = this.#seen.get(of.name) ?? null;
      return { key: of, expected, next: deletes.has(index) && expected !== null ? null : record(of) };
    });
    const { results } = await this.#store.apply(writes);
    for (const [position, result] of results.entries()) {
      const { name } = writes[position]!.key;
      if (result.kind === "applied") this.applied += 1;
      else this.conflicts += 1;
      if (result.kind === "applied") this.#seen.set(name, result.version);
      else if (result.kind === "conflict")
        this.#seen.set(name, result.current.kind === "found" ? result.current.version : null);
      else throw result.cause;
    }
  }
}

describe("overlapping batches", () => {
  it("of creates, updates and deletes in any order never deadlock", async () => {
    const table = "overlap";
    const stores = await Promise.all(
      Array.from({ length: 4 }, () => openPostgresStore({ url: server.url, table })),
    );
    const keys = Array.from({ length: 40 }, (_, index) => key(`k/${index}`));
    const clients = stores.map((store) => new RandomClient(store, keys));
    const before = await deadlocks();
    const everyIndex = keys.map((_, index) => index);
    const order = fc.shuffledSubarray(everyIndex, { minLength: 2 });
    const rounds = fc.sample(fc.tuple(order, fc.subarray(everyIndex, { maxLength: 10 })), {
      numRuns: 4 * 60,
      seed: 7,
    });
    await Promise.all(
      clients.map(async (client, which) => {
        for (const [each, deletes] of rounds.filter((_, index) => index % 4 === which))
          await client.round(each, new Set(deletes));
      }),
    );
    expect(clients.every(({ applied, conflicts }) => applied > 0 && conflicts > 0)).toBe(true);
    await Promise.all(stores.map((store) => store.close()));
    expect((await deadlocks()) - before).toBe(0);
  });
});

/** Two clients whose servers visit rows in other ways: one as the batch names them, one as the table holds them. */
async function unlikeClients(
  table: string,
): Promise<{ readonly stores: LeaseStore[]; end(): Promise<void> }> {
  const pools = [
    "-c enable_hashjoin=off -c enable_mergejoin=off -c jit=off",
    "-c enable_nestloop=off -c jit=off",
  ].map((options) => new pg.Pool({ connectionString: server.url, options }));
  const stores: LeaseStore[] = [];
  for (const pool of pools) stores.push(await openPostgresStore({ pool, table }));
  return {
    stores,
    end: async () => {
      await Promise.all(stores.map((store) => store.close()));
      await Promise.all(pools.map((pool) => pool.end()));
    },
  };
}

describe("batches of the same keys in opposite orders", () => {
  const orders = (keys: readonly LeaseKey[]): LeaseKey[][] => [[...keys], keys.toReversed()];
  const writesOf = (keys: readonly LeaseKey[], versions: ReadonlyMap<string, string>): ConditionalWrite[] =>
    keys.map((of) => ({ key: of, expected: versions.get(of.name) ?? null, next: record(of) }));

  it("do not deadlock when they create", async () => {
    const { stores, end } = await unlikeClients("creating");
    const before = await deadlocks();
    for (let round = 0; round < 10; round += 1) {
      const keys = Array.from({ length: 300 }, (_, index) => key(`${round}/${index}`));
      const replies = await Promise.all(
        orders(keys).map((each, client) => stores[client]!.apply(writesOf(each, new Map()))),
      );
      const applied = replies.flatMap(({ results }) => results.filter(({ kind }) => kind === "applied"));
      expect(applied.length).toBe(keys.length);
    }
    await end();
    expect((await deadlocks()) - before).toBe(0);
  });

  it("do not deadlock when they update", async () => {
    const { stores, end } = await unlikeClients("updating");
    const keys = Array.from({ length: 300 }, (_, index) => key(`${index}`));
    const versions = new Map<string, string>();
    const learn = (each: readonly LeaseKey[], results: readonly WriteResult[]): void => {
      for (const [index, result] of results.entries())
        if (result.kind === "applied" && result.version !== null)
          versions.set(each[index]!.name, result.version);
    };
    learn(keys, (await stores[0]!.apply(writesOf(keys, versions))).results);
    const before = await deadlocks();
    for (let round = 0; round < 10; round += 1) {
      const [ascending, descending] = orders(keys) as [LeaseKey[], LeaseKey[]];
      const [one, two] = await Promise.all([
        stores[0]!.apply(writesOf(descending, versions)),
        stores[1]!.apply(writesOf(ascending, versions)),
      ]);
      learn(descending, one.results);
      learn(ascending, two.results);
    }
    await end();
    expect((await deadlocks()) - before).toBe(0);
  });
});

describe("a server whose transactions are serializable", () => {
  it("aborts rivals, and the store tries them again", async () => {
    const pool = new pg.Pool({
      connectionString: server.url,
      options: "-c default_transaction_isolation=serializable",
    });
    const store = await openPostgresStore({ pool, table: "strict" });
    const of = key("contended");
    await create(store, of);
    const raise = async (): Promise<void> => {
      for (;;) {
        const stored = await readOne(store, of);
        if (stored.kind !== "found") throw new Error(`it is ${stored.kind}`);
        const next = record(of, { generation: stored.record.generation + 1n });
        const { results } = await store.apply([
          { key: of, expected: stored.version, next },
          { key: key("other"), expected: "none", next: record(key("other")) },
        ]);
        if (results[0]?.kind === "applied") return;
      }
    };
    await Promise.all(Array.from({ length: 30 }, raise));
    expect(await readOne(store, of)).toMatchObject({ record: { generation: 31n } });
    await store.close();
    await pool.end();
  });
});

describe("a pooler that gives every statement another connection", () => {
  it("makes prepared statements vanish, and the store goes on without them", async () => {
    const pool = new pg.Pool({ connectionString: server.url, max: 1 });
    const store = await openPostgresStore({ pool, table: "unprepared" });
    const version = await create(store, key("job"));
    await pool.query("deallocate all");
    expect(await readOne(store, key("job"))).toMatchObject({ kind: "found", version });
    await pool.query("deallocate all");
    expect(await readOne(store, key("job"))).toMatchObject({ kind: "found", version });
    const { rows } = await pool.query("select from pg_prepared_statements");
    expect(rows).toEqual([]);
    await store.close();
    await pool.end();
  });
});

describe("a batch that is to change a row that is gone", () => {
  it("creates none in its place, and does everything else", async () => {
    const store = await openPostgresStore({ url: server.url, table: "vanished" });
    const gone = await create(store, key("b/gone"));
    const there = await create(store, key("c/there"));
    await admin.query("delete from solehold.vanished where name = 'b/gone'");
    const { results } = await store.apply([
      { key: key("a/new"), expected: null, next: record(key("a/new")) },
      { key: key("b/gone"), expected: gone, next: record(key("b/gone")) },
      { key: key("c/there"), expected: there, next: record(key("c/there"), { generation: 2n }) },
      { key: key("d/unknown"), expected: "no version of ours", next: record(key("d/unknown")) },
    ]);
    expect(results).toMatchObject([
      { kind: "applied" },
      { kind: "conflict", current: { kind: "absent" } },
      { kind: "applied" },
      { kind: "conflict", current: { kind: "absent" } },
    ]);
    const { rows } = await admin.query("select name from solehold.vanished where tenant <> '' order by 1");
    expect(rows.map(({ name }) => name)).toEqual(["a/new", "c/there"]);
    expect(await readOne(store, key("c/there"))).toMatchObject({ record: { generation: 2n } });
    await store.close();
  });
});

describe("keys that must be absent", () => {
  it("are confirmed or contradicted without a write", async () => {
    const store = await openPostgresStore({ url: server.url, table: "absence" });
    await create(store, key("there"));
    const { results } = await store.apply([
      { key: key("there"), expected: null, next: null },
      { key: key("not there"), expected: null, next: null },
    ]);
    expect(results).toMatchObject([
      { kind: "conflict", current: { kind: "found" } },
      { kind: "applied", version: null },
    ]);
    await store.close();
  });
});
