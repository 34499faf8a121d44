/** The kit on a real PostgreSQL, through each client that is accepted and each way to learn of changes. */
import pg from "pg";
import postgres from "postgres";
import { afterAll, beforeAll, describe, it } from "vitest";
import { describeLeases, describeStore } from "../../../src/conformance/index.ts";
import type { LeaseKey } from "../../../src/core/index.ts";
import { openPostgresStore, type PostgresStoreOptions } from "../../../src/stores/postgres/index.ts";
import { kitProcess } from "../../conformance/child.ts";
import { EFFORT } from "../../conformance/effort.ts";
import { faultyClient } from "../../conformance/faulty.ts";
import { type Engine, startPostgres } from "../../engines/index.ts";

let server: Engine;
let admin: pg.Pool;
let sql: postgres.Sql;

beforeAll(async () => {
  server = await startPostgres();
  admin = new pg.Pool({ connectionString: server.url });
  sql = postgres(server.url);
});

afterAll(async () => {
  await admin?.end();
  await sql?.end({ timeout: 1 });
  await server?.stop();
});

const open = (options: PostgresStoreOptions = {}) => openPostgresStore({ url: server.url, ...options });

const openFaulty = () => faultyClient(server.url, (url) => open({ url, timeoutMs: 1_000 }));

function damage(table: string): (key: LeaseKey) => Promise<void> {
  return async ({ tenant, name }) => {
    const text = `update solehold.${table} set value = replace(value, 'held', 'hold') where tenant = $1 and name = $2`;
    await admin.query(text, [tenant, name]);
  };
}

describeStore(
  "PostgreSQL by URL",
  { open, openSecond: open, openFaulty, corrupt: damage("work_order_leases") },
  { describe, it },
);

describeLeases(
  "PostgreSQL",
  { open, openSecond: open, openFaulty, child: () => kitProcess(server.url), patienceMs: 100_000 },
  { describe, it },
);

describeStore(
  "PostgreSQL through a pool of the caller",
  {
    open: () => openPostgresStore({ pool: admin, table: "through_pool" }),
    openSecond: () => open({ table: "through_pool" }),
    corrupt: damage("through_pool"),
    effort: EFFORT,
  },
  { describe, it },
);

describeStore(
  "PostgreSQL through postgres.js",
  {
    open: () => openPostgresStore({ pool: sql, table: "through_postgres_js" }),
    openSecond: () => openPostgresStore({ pool: sql, table: "through_postgres_js" }),
    corrupt: damage("through_postgres_js"),
    effort: EFFORT,
  },
  { describe, it },
);

describeStore(
  "PostgreSQL as behind a transaction pooler",
  {
    open: () => open({ table: "through_pooler", pooler: "transaction", pollIntervalMs: 20 }),
    openSecond: () => open({ table: "through_pooler", pooler: "transaction", pollIntervalMs: 20 }),
    corrupt: damage("through_pooler"),
    effort: EFFORT,
  },
  { describe, it },
);
