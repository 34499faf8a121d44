/** The table: created once however many begin, checked before use, and guarded by the database itself. */
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leaseIdOf } from "../../../src/core/index.ts";
import { openPostgresStore, postgresSchema } from "../../../src/stores/postgres/index.ts";
import { type Engine, startPostgres } from "../../engines/index.ts";
import { pageBlock } from "../page-block.ts";
import { applyOne, create, eventually, key, readOne, record } from "./support.ts";

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

const open = (options: object = {}) => openPostgresStore({ url: server.url, ...options });

/** A role that may connect and nothing else, and its URL. */
async function plainRole(name: string): Promise<string> {
  await admin.query(`create role ${name} login password 'secret'`);
  const url = new URL(server.url);
  url.username = name;
  url.password = "secret";
  return url.href;
}

describe("creating the table", () => {
  it("works for eight clients that begin at once on an empty database", async () => {
    await admin.query("create database empty");
    const url = server.url.replace(/\/[^/]*$/, "/empty");
    const stores = await Promise.all(Array.from({ length: 8 }, () => open({ url })));
    const keys = stores.map((_, index) => key(`from/${index}`));
    await Promise.all(stores.map((store, index) => create(store, keys[index]!)));
    const { records } = await stores[0]!.read(keys);
    expect(records.map(({ kind }) => kind)).toEqual(Array(8).fill("found"));
    await Promise.all(stores.map((store) => store.close()));
  });

  it("can be done by hand with the printed statements, twice, and then needs no right to create", async () => {
    const statements = postgresSchema({ schema: "by_hand", table: "leases" });
    await admin.query(statements);
    await admin.query(statements);
    const url = await plainRole("user_only");
    await admin.query("grant usage on schema by_hand to user_only");
    await admin.query("grant select, insert, update, delete on by_hand.leases to user_only");
    const store = await open({ url, schema: "by_hand", table: "leases", create: "never" });
    await create(store, key("job"));
    expect((await readOne(store, key("job"))).kind).toBe("found");
    await store.close();
  });

  it("uses a schema that is there, without the right to create one", async () => {
    const url = await plainRole("schema_owner");
    await admin.query("create schema given authorization schema_owner");
    const store = await open({ url, schema: "given" });
    await create(store, key("job"));
    await store.close();
  });

  it("is refused with the fix when the table is missing and must not be created", async () => {
    await expect(open({ table: "nowhere", create: "never" })).rejects.toMatchObject({
      kind: "config",
      outcome: "not-applied",
      message: expect.stringMatching(
        /"solehold.nowhere" does not exist: run the statements of postgresSchema/,
      ),
    });
  });

  it("refuses a table of somebody else's, naming what it lacks", async () => {
    await admin.query(
      "create schema if not exists solehold; create table solehold.foreign_table (tenant_id text)",
    );
    await expect(open({ table: "foreign_table" })).rejects.toMatchObject({
      kind: "config",
      message: expect.stringMatching(/column .* does not exist: .*give the store another 'table'/),
    });
  });

  it("names the rights that the role lacks", async () => {
    const url = await plainRole("reader");
    await admin.query(postgresSchema({ schema: "readable" }));
    await admin.query("grant usage on schema readable to reader");
    await admin.query("grant select on readable.work_order_leases to reader");
    await expect(open({ url, schema: "readable" })).rejects.toMatchObject({
      kind: "auth",
      message: expect.stringMatching(
        /permission denied for table .*: grant this role select, insert, update/,
      ),
    });
  });

  it.each([
    ["schema", { schema: 'x"; drop table y; --' }],
    ["table", { table: "" }],
    ["table", { table: "t".repeat(49) }],
    ["timeoutMs", { timeoutMs: 0 }],
    ["watch", { watch: "sometimes" }],
    ["maxConnections", { maxConnections: 1.5 }],
  ])("refuses a bad option '%s' before it connects", async (option, options) => {
    const url = "postgres://127.0.0.1:1/nowhere";
    await expect(open({ url, ...options })).rejects.toMatchObject({
      kind: "config",
      message: expect.stringContaining(`postgres: ${option} must be`),
    });
  });

  it("asks for either a URL or a pool", async () => {
    const message = expect.stringContaining("give either 'url'");
    await expect(openPostgresStore({})).rejects.toMatchObject({ kind: "config", message });
    await expect(open({ pool: admin })).rejects.toMatchObject({ kind: "config", message });
  });
});

describe("the table", () => {
  it("lets nobody insert a second active row of a key, not even by hand", async () => {
    const store = await open();
    await create(store, key("guarded"));
    const copy =
      "insert into solehold.work_order_leases (tenant, name, value) select tenant, name, value from solehold.work_order_leases where name = 'guarded'";
    await expect(admin.query(copy)).rejects.toMatchObject({ code: "23505" });
    await store.close();
  });

  it("is searched by its key while the server knows nothing of it, and when it was tiny at the last count", async () => {
    const table = "searched";
    const scans = async (): Promise<{ key: number; other: number }> => {
      const { rows } = await admin.query(
        `select (select idx_scan from pg_stat_user_indexes where indexrelname = '${table}_pkey') as key,
          seq_scan as other
        from pg_stat_user_tables where relname = '${table}'`,
      );
      return { key: Number(rows[0].key), other: Number(rows[0].other) };
    };
    const use = async (name: string): Promise<void> => {
      const before = await scans();
      const store = await open({ table });
      let version = await create(store, key(name));
      for (let turn = 0; turn < 20; turn += 1) {
        const result = await applyOne(store, key(name), version, record(key(name)));
        if (result.kind !== "applied" || result.version === null) throw new Error(result.kind);
        version = result.version;
        await readOne(store, key(name));
        await store.read([key(name), key("none")]);
      }
      await store.close();
      const total = ({ key: byKey, other }: typeof before): number => byKey + other;
      await eventually(async () => total(await scans()) >= total(before) + 80);
      expect((await scans()).other).toBe(before.other);
    };
    // What a connection did is counted when it ends, and to make an index reads the table.
    const creator = new pg.Client(server.url);
    await creator.connect();
    await creator.query(postgresSchema({ table }));
    await creator.end();
    await use("first");
    await admin.query(`analyze solehold.${table}`);
    await use("second");
  });

  it("of the layout before is refused, and left as it is", async () => {
    await admin.query(`create table solehold.earlier (tenant_id text, work_order_id text, version uuid);
      insert into solehold.earlier values ('default', 'job')`);
    await expect(open({ table: "earlier" })).rejects.toMatchObject({
      kind: "config",
      outcome: "not-applied",
      message: expect.stringMatching(/of another version; give the store another 'table'/),
    });
    expect((await admin.query("select from solehold.earlier")).rowCount).toBe(1);
  });

  it("is shown to people by a view with the work-order gate's columns, timestamps and expiry", async () => {
    const store = await open();
    const now = (await store.read([])).storeTimeMs!;
    const ends = { live: now + 600_000, dead: now - 1, done: now + 600_000 };
    const terms: Record<string, bigint> = { live: 2n };
    const idempotency = { op: "acquire", keyHash: "hash-of-key", fingerprint: "f", sealedToken: "s" };
    for (const [name, expiresAtMs] of Object.entries(ends)) {
      const ended = name === "done" ? ({ state: "released", endedAtMs: now } as const) : {};
      const of = key(`view/${name}`);
      await applyOne(
        store,
        of,
        null,
        record(of, { expiresAtMs, term: terms[name] ?? 1n, generation: 7n, idempotency, ...ended }),
      );
    }
    const { rows } =
      await admin.query(`select lease_id, tenant_id, work_order_id, lease_owner_id, lease_token, lease_state,
      lease_expires_at, acquired_at, renewed_at, released_at, idempotency_key
      from solehold.work_order_leases_readable where work_order_id like 'view/%' order by work_order_id`);
    expect(rows.map(({ lease_state }) => lease_state)).toEqual(["EXPIRED", "RELEASED", "ACTIVE"]);
    expect(rows[2]).toMatchObject({
      lease_id: leaseIdOf(record(key("view/live"), { term: 2n, generation: 7n })),
      lease_owner_id: "holder-1",
      lease_expires_at: new Date(ends.live),
      released_at: null,
      idempotency_key: "hash-of-key",
    });
    const asked = await admin.query(pageBlock("postgres.md", "The table", "sql"));
    expect(asked.rows.map(({ lease_state }) => lease_state)).toEqual(
      expect.arrayContaining(["ACTIVE", "EXPIRED"]),
    );
    expect(rows[1].lease_id).toBe("default/view/done@7");
    expect(rows[1].released_at).toEqual(new Date(now));
    await store.close();
  });

  it("is shown by the view even where a row is damaged", async () => {
    const store = await open({ table: "damaged" });
    for (const name of ["bad", "good"]) await create(store, key(name));
    await admin.query("update solehold.damaged set value = 'nonsense' where name = 'bad'");
    const { rows } = await admin.query(
      "select work_order_id, lease_owner_id from solehold.damaged_readable order by 1",
    );
    expect(rows).toEqual([
      { work_order_id: "bad", lease_owner_id: null },
      { work_order_id: "good", lease_owner_id: "holder-1" },
    ]);
    await store.close();
  });

  it("keeps two stores with other tables apart", async () => {
    const [one, two] = [await open({ table: "one" }), await open({ table: "two" })];
    await create(one, key("job"));
    expect((await readOne(two, key("job"))).kind).toBe("absent");
    await one.close();
    await two.close();
  });
});
