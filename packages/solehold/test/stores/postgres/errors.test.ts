/** What is wrong with the server, the URL or the role is said in one line, with what to do about it. */
import { once } from "node:events";
import { createServer } from "node:net";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { StoreError } from "../../../src/store/index.ts";
import { openPostgresStore } from "../../../src/stores/postgres/index.ts";
import { type Engine, startPostgres } from "../../engines/index.ts";
import { applyOne, create, key, readOne, record } from "./support.ts";

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

type UrlPart = "username" | "password" | "hostname" | "port" | "pathname" | "search";

function changed(part: UrlPart, value: string): string {
  const url = new URL(server.url);
  url[part] = value;
  return url.href;
}

const OPENINGS: readonly (readonly [string, () => string, string, RegExp])[] = [
  ["a wrong password", () => changed("password", "wrong"), "auth", /correct the password/],
  ["an unknown user", () => changed("username", "nobody"), "auth", /correct the password/],
  ["an unknown database", () => changed("pathname", "/nowhere"), "config", /create the database/],
  ["a port where nothing listens", () => changed("port", "1"), "unreachable", /start the server/],
  ["an unknown host", () => changed("hostname", "no.such.invalid"), "unreachable", /correct the host/],
  ["another kind of URL", () => "mysql://localhost/db", "config", /must begin with postgres:\/\//],
  ["what is no URL", () => "localhost", "config", /must begin with postgres:\/\//],
  [
    "a port that cannot be",
    () => "postgres://user:s@wrong@host:99999/db",
    "config",
    /must look like .* port/,
  ],
  [
    "an option of the store",
    () => changed("search", "?table=x"),
    "config",
    /'table': pass it to open.* pooler$/,
  ],
  ["an unknown pooler", () => changed("search", "?pooler=session"), "config", /pooler must be "none" or/],
  ["TLS that the server lacks", () => changed("search", "?sslmode=verify-full"), "config", /sslmode/],
];

/** The server's ErrorResponse to a connection that it does not want. */
function refusal(code: string, message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${message}\0\0`);
  const head = Buffer.from("E\0\0\0\0");
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}

describe("opening a store", () => {
  it.each(OPENINGS)("says what to do about %s, without the password", async (_, url, kind, message) => {
    const error = await openPostgresStore({ url: url() }).catch((thrown: Error) => thrown);
    expect(error).toMatchObject({ name: "StoreError", kind, outcome: "not-applied" });
    expect((error as Error).message).toMatch(message);
    expect((error as Error).message).not.toMatch(/\n|wrong\b|:solehold@/);
  });

  it.each([
    ["RDS Proxy", "0A000", "RDS Proxy currently doesn't support command-line options."],
    ["PgBouncer", "08P01", "unsupported startup parameter: lock_timeout"],
    ["PgBouncer", "08P01", "unsupported startup parameter in options: enable_seqscan"],
  ])(
    "says which option a refusal by %s (%s) asks for, and with it sends no settings",
    async (_, code, message) => {
      const startups: string[] = [];
      const pooler = createServer((client) => {
        client.on("error", () => undefined);
        client.once("data", (startup) => {
          startups.push(startup.toString());
          client.end(refusal(code, message));
        });
      }).listen(0, "127.0.0.1");
      await once(pooler, "listening");
      const address = pooler.address();
      const port = typeof address === "object" ? address?.port : 0;
      const url = `postgres://user:secret@127.0.0.1:${port}/db`;
      await expect(openPostgresStore({ url })).rejects.toMatchObject({
        kind: "config",
        outcome: "not-applied",
        message: expect.stringMatching(
          /is a pooler; set the option pooler: "transaction", or add \?pooler=tr/,
        ),
      });
      for (const options of [{ url, pooler: "transaction" as const }, { url: `${url}?pooler=transaction` }])
        await expect(openPostgresStore(options)).rejects.toMatchObject({ kind: "config" });
      const settings = startups.map((startup) => /lock_timeout|enable_seqscan|pooler/.test(startup));
      expect(settings).toEqual([true, false, false]);
      pooler.close();
    },
  );

  it("refuses a lone Client of pg, which it could not open again", async () => {
    const client = new pg.Client(server.url);
    await expect(openPostgresStore({ pool: client as unknown as pg.Pool })).rejects.toMatchObject({
      kind: "config",
      message: expect.stringMatching(/pool must be a Pool of pg, got a Client/),
    });
  });

  it("refuses a database whose encoding cannot hold every name", async () => {
    await admin.query("create database latin encoding 'LATIN1' template template0");
    const url = changed("pathname", "/latin");
    await expect(openPostgresStore({ url })).rejects.toMatchObject({
      kind: "config",
      message: expect.stringMatching(/encoding must be UTF8, it is LATIN1/),
    });
  });

  it("refuses a server that only reads", async () => {
    await admin.query("create database standby");
    await admin.query("alter database standby set default_transaction_read_only = on");
    const url = changed("pathname", "/standby");
    await expect(openPostgresStore({ url })).rejects.toMatchObject({
      kind: "config",
      message: expect.stringMatching(/read-only .*: connect to the primary/),
    });
  });

  it("says that writes are not durable where the server does not wait for the disk", async () => {
    const careless = new pg.Pool({ connectionString: server.url, options: "-c synchronous_commit=off" });
    const [store, durable] = [
      await openPostgresStore({ pool: careless }),
      await openPostgresStore({ url: server.url }),
    ];
    expect([store.capabilities.durable, durable.capabilities.durable]).toEqual([false, true]);
    await store.close();
    await durable.close();
    await careless.end();
  });
});

describe("a store in use", () => {
  it("says that a server became read-only, and that nothing was written", async () => {
    await admin.query("create database demoted");
    const url = changed("pathname", "/demoted");
    const pool = new pg.Pool({ connectionString: url });
    const store = await openPostgresStore({ pool });
    await create(store, key("job"));
    await admin.query("alter database demoted set default_transaction_read_only = on");
    await admin.query("select pg_terminate_backend(pid) from pg_stat_activity where datname = 'demoted'");
    const failure = () =>
      applyOne(store, key("job"), null, record(key("job"))).catch((error: unknown) => error);
    // The first answer may still be that of an ended connection.
    const first = await failure();
    const error = first instanceof StoreError && first.kind === "unreachable" ? await failure() : first;
    expect(error).toMatchObject({
      kind: "config",
      outcome: "not-applied",
      message: expect.stringMatching(/connect to the primary/),
    });
    await store.close();
    await pool.end();
  });

  it("says that the table is gone, and that nothing was written", async () => {
    const store = await openPostgresStore({ url: server.url, table: "dropped" });
    await admin.query("drop table solehold.dropped cascade");
    await expect(readOne(store, key("job"))).rejects.toMatchObject({ kind: "config" });
    await expect(applyOne(store, key("job"), null, record(key("job")))).rejects.toMatchObject({
      kind: "config",
      outcome: "not-applied",
      message: expect.stringMatching(/run the statements of postgresSchema/),
    });
    await store.close();
  });

  it("takes a version that it never gave out for another one", async () => {
    const store = await openPostgresStore({ url: server.url });
    await create(store, key("versioned"));
    const result = await applyOne(store, key("versioned"), "42-of-another-store", record(key("versioned")));
    expect(result).toMatchObject({ kind: "conflict", current: { kind: "found" } });
    await store.close();
  });
});
