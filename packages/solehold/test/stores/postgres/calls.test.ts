/** What a call costs the server, and what it answers when the second of its statements fails. */
import pg from "pg";
import { describe, expect, it } from "vitest";
import type { LeaseStore } from "../../../src/store/index.ts";
import type { PgPool } from "../../../src/stores/postgres/index.ts";
import { ownServer } from "./own-server.ts";
import { applyOne, create, EVERYTHING, ended, eventually, key, readOne, record } from "./support.ts";

const server = ownServer(["autovacuum=off", "checkpoint_timeout=1h", "bgwriter_lru_maxpages=0"]);

async function logPosition(): Promise<string> {
  return (await server.admin.query("select pg_current_wal_insert_lsn() as position")).rows[0].position;
}

describe("a look", () => {
  it("at a released lease writes nothing to the server's log, nor does any other", async () => {
    const store = await server.open();
    const released = record(key("released"), { state: "released", endedAtMs: 1 });
    await create(store, released.key, released);
    await create(store, key("held"));
    const looks: readonly (() => Promise<unknown>)[] = [
      () => readOne(store, released.key),
      () => store.read([released.key, key("held"), key("absent")]),
      () => store.list!({ tenant: "default", prefix: "", limit: 10 }),
      () => applyOne(store, key("held"), "00000000-0000-4000-8000-000000000000", record(key("held"))),
      () => applyOne(store, key("absent"), null, null),
    ];
    // The first readers set hint bits, and an idle server logs its running transactions now and then.
    for (const look of looks) await look();
    for (const [index, look] of looks.entries()) expect(await untilQuiet(look), `look ${index}`).toBe(true);
  });

  /** Whether one of a few tries left the log as it was: others write to it as well. */
  async function untilQuiet(look: () => Promise<unknown>): Promise<boolean> {
    for (let round = 0; round < 5; round += 1) {
      const before = await logPosition();
      await look();
      if ((await logPosition()) === before) return true;
    }
    return false;
  }
});

describe("a batch", () => {
  it("is one statement, with the time and every outcome in its answer", async () => {
    const pool = new pg.Pool({ connectionString: server.url });
    const texts: string[] = [];
    const store = await server.open({ pool: noting(pool, texts), table: "counted" });
    const versions = await Promise.all(["updated", "deleted"].map((name) => create(store, key(name))));
    texts.length = 0;
    const { results, storeTimeMs } = await store.apply([
      { key: key("updated"), expected: versions[0]!, next: record(key("updated")) },
      { key: key("deleted"), expected: versions[1]!, next: null },
      ...Array.from({ length: 100 }, (_, index) => key(`new/${index}`)).map((of) => ({
        key: of,
        expected: null,
        next: record(of),
      })),
    ]);
    expect(results.every(({ kind }) => kind === "applied")).toBe(true);
    expect(Math.abs(storeTimeMs! - Date.now())).toBeLessThan(60_000);
    expect(texts).toHaveLength(1);
    await store.close();
    await pool.end();
  });
});

/** The same pool, but each text is noted, and refused if it is one of those. */
function noting(
  pool: pg.Pool,
  texts: string[],
  refuses: (text: string) => boolean = () => false,
  refusal = new Error("planted"),
): PgPool {
  return {
    on: (event: "error", listener: () => void) => pool.on(event, listener),
    connect: async () => {
      const client = await pool.connect();
      return {
        on: (event: "error", listener: () => void) => client.on(event, listener),
        release: (failure?: Error) => client.release(failure),
        query: async (config: { readonly text: string }) => {
          texts.push(config.text);
          if (refuses(config.text)) throw refusal;
          return client.query(config as pg.QueryArrayConfig);
        },
      };
    },
  } as unknown as PgPool;
}

describe("a conflict that nobody can look at", () => {
  async function open(): Promise<{ store: LeaseStore; refuse(): void; end(): Promise<void> }> {
    const pool = new pg.Pool({ connectionString: server.url });
    let isRefused = false;
    const refuses = (text: string): boolean => isRefused && text.includes("with ordinality");
    const store = await server.open({ pool: noting(pool, [], refuses), table: "unseen" });
    const refuse = (): void => {
      isRefused = true;
    };
    const end = async (): Promise<void> => {
      await store.close();
      await pool.end();
    };
    return { store, refuse, end };
  }

  it("rejects the call as not applied when nothing else was done", async () => {
    const { store, refuse, end } = await open();
    await create(store, key("taken"));
    refuse();
    expect(await ended(applyOne(store, key("taken"), null, record(key("taken"))))).toMatchObject({
      name: "StoreError",
      outcome: "not-applied",
    });
    await end();
  });

  it("is unknown by itself when other writes of the call were done, and those are answered", async () => {
    const { store, refuse, end } = await open();
    await create(store, key("occupied"));
    refuse();
    const { results, storeTimeMs } = await store.apply(
      ["free", "occupied"].map((name) => ({ key: key(name), expected: null, next: record(key(name)) })),
    );
    expect(results).toMatchObject([{ kind: "applied" }, { kind: "unknown" }]);
    expect(Number.isSafeInteger(storeTimeMs)).toBe(true);
    await end();
  });
});

describe("a write that meets a restarted server", () => {
  it("is unknown when nobody can look whether the data is still the same: it was done", async () => {
    const pool = new pg.Pool({ connectionString: server.url });
    const refused = Object.assign(new Error("planted"), { code: "55P03" });
    let isRefused = false;
    const refuses = (text: string): boolean => isRefused && text.includes("pg_control_system");
    const store = await server.open({ pool: noting(pool, [], refuses, refused), table: "restarted" });
    const version = await create(store, key("job"));
    await server.engine.restart();
    isRefused = true;
    const next = record(key("job"), { generation: 2n });
    const write = await eventually(async () => {
      const answer = await ended(applyOne(store, key("job"), version, next));
      return String(answer).includes("planted") ? answer : null;
    });
    expect(write).toMatchObject({ name: "StoreError", outcome: "unknown" });
    isRefused = false;
    expect(await readOne(store, key("job"))).toMatchObject({ record: { nonce: next.nonce } });
    await store.close();
    await pool.end();
  });
});

describe("a watch", () => {
  it("that nobody needs any more costs writers nothing", async () => {
    const table = "unwatched";
    const pool = new pg.Pool({ connectionString: server.url });
    const texts: string[] = [];
    const store = await server.open({ pool: noting(pool, texts), table });
    await create(store, key("one"));
    expect(texts.filter((text) => text.includes("pg_notify"))).toEqual([]);
    const watcher = await server.open({ table });
    await watcher.watch!(EVERYTHING, () => undefined);
    await create(store, key("two"));
    expect(texts.filter((text) => text.includes("pg_notify"))).toHaveLength(1);
    await store.close();
    await pool.end();
  });
});
