import pg from "pg";
import postgres from "postgres";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  FENCE_TABLE_SQL,
  fenceSetting,
  fenceTriggerSql,
  type PostgresConnection,
  withFence,
} from "../../src/guards/index.ts";
import { type Engine, startPostgres } from "../engines/index.ts";
import { ATTEMPTS, newTerm, successor, zombie } from "./zombie.ts";

let server: Engine;
let one: PostgresConnection;
let two: PostgresConnection;

interface Driver {
  readonly title: string;
  /** Two connections, and their end. */
  connect(url: string): Promise<{
    readonly connections: readonly [PostgresConnection, PostgresConnection];
    close(): Promise<unknown>;
  }>;
}

const DRIVERS: readonly Driver[] = [
  {
    title: "the package pg",
    connect: async (connectionString) => {
      const clients = [new pg.Client({ connectionString }), new pg.Client({ connectionString })] as const;
      await Promise.all(clients.map((client) => client.connect()));
      return { connections: clients, close: () => Promise.all(clients.map((client) => client.end())) };
    },
  },
  {
    title: "postgres.js in its shape",
    connect: async (url) => {
      const sql = postgres(url, { max: 2, onnotice: () => undefined });
      const reserve = async (): Promise<PostgresConnection> => {
        const reserved = await sql.reserve();
        return { query: async (text, values = []) => ({ rows: [...(await reserved.unsafe(text, values))] }) };
      };
      return { connections: [await reserve(), await reserve()], close: () => sql.end({ timeout: 1 }) };
    },
  },
];

beforeAll(async () => {
  server = await startPostgres();
}, 120_000);

afterAll(() => server?.stop());

describe.each(DRIVERS)("through $title", ({ connect }) => {
  let close: () => Promise<unknown> = async () => undefined;

  beforeAll(async () => {
    const connected = await connect(server.url);
    [one, two] = connected.connections;
    close = connected.close;
  });

  afterAll(() => close());

  beforeEach(async () => {
    await one.query("drop table if exists solehold_fences, report");
    await one.query(FENCE_TABLE_SQL);
    await one.query("create table report (text text not null)");
  });

  const append = (client: PostgresConnection, text: string) => () =>
    client.query("insert into report values ($1)", [text]);
  const texts = async () => (await one.query("select text from report")).rows.map(({ text }) => text);

  describe("a transaction with a fence", () => {
    it("is refused every time once a newer fence was seen, and leaves nothing", async () => {
      await withFence(one, zombie, append(one, "first"));
      await withFence(two, successor, append(two, "second"));
      for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
        await expect(withFence(one, zombie, append(one, "zombie"))).rejects.toMatchObject({
          code: "STALE_FENCE",
          newestFence: successor.fence,
        });
      }
      await withFence(two, newTerm, append(two, "third"));
      await expect(withFence(two, successor, append(two, "zombie"))).rejects.toMatchObject({
        code: "STALE_FENCE",
      });
      expect(await texts()).toEqual(["first", "second", "third"]);
    });

    it("that began before the newer one but comes to its fence later waits, and is refused", async () => {
      let zombieEnds: Promise<unknown> = Promise.resolve();
      await withFence(two, successor, async () => {
        zombieEnds = withFence(one, zombie, append(one, "zombie")).catch(
          (error: { code: string }) => error.code,
        );
        // Seen by the server: the zombie waits for the row that this transaction holds.
        for (;;) {
          const { rows } = await two.query("select 1 from pg_locks where not granted");
          if (rows.length > 0) break;
        }
        await append(two, "second")();
      });
      expect(await zombieEnds).toBe("STALE_FENCE");
      expect(await texts()).toEqual(["second"]);
    });

    it("whose work fails is undone, its fence too", async () => {
      const fails = withFence(one, successor, async () => {
        await append(one, "half")();
        throw new Error("broken");
      });
      await expect(fails).rejects.toThrow("broken");
      await withFence(one, zombie, append(one, "still allowed"));
      expect(await texts()).toEqual(["still allowed"]);
    });
  });

  describe("a table with the trigger", () => {
    beforeEach(async () => {
      await one.query(fenceTriggerSql({ table: "public.report", key: zombie.key }));
    });

    const writeAs = async (client: PostgresConnection, by: typeof zombie, sql: string) => {
      const setting = fenceSetting(by);
      await client.query("begin");
      try {
        await client.query(setting.text, [...setting.values]);
        await client.query(sql);
        await client.query("commit");
      } catch (error) {
        await client.query("rollback");
        throw error;
      }
    };

    it.each([
      "insert into report values ('zombie')",
      "update report set text = 'zombie'",
      "delete from report",
      "truncate report",
    ])("refuses a zombie's %s every time", async (sql) => {
      await writeAs(one, successor, "insert into report values ('kept')");
      for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
        await expect(writeAs(two, zombie, sql)).rejects.toMatchObject({ code: "SH002" });
      }
      expect(await texts()).toEqual(["kept"]);
    });

    it("refuses a writer that says no fence, also after one that did on the same connection", async () => {
      await writeAs(one, successor, "insert into report values ('kept')");
      await expect(one.query("delete from report")).rejects.toMatchObject({ code: "SH001" });
    });

    it("lets withFence write", async () => {
      await withFence(one, zombie, append(one, "guarded"));
      expect(await texts()).toEqual(["guarded"]);
    });

    it("is made for plain table names only", () => {
      expect(() => fenceTriggerSql({ table: "report; drop table x", key: zombie.key })).toThrow(RangeError);
    });
  });
});
