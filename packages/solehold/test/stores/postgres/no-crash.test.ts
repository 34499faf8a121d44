/**
 * Whatever a server does to its connections, the process of the store's user goes on. The clients report broken
 * connections by "error" events, and one without a listener ends the process.
 */
import pg from "pg";
import postgres from "postgres";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { openPostgresStore, type PostgresStoreOptions } from "../../../src/stores/postgres/index.ts";
import { disturbStores, FAULT_MS } from "../../faults/disturbance.ts";
import { startSaboteur } from "../../faults/saboteur.ts";
import { ownServer } from "./own-server.ts";
import { applyOne, create, EVERYTHING, ended, eventually, key, readOne } from "./support.ts";
import { startWire } from "./wire.ts";

const server = ownServer();
const crashes: unknown[] = [];
const onCrash = (error: unknown): void => void crashes.push(error);

beforeAll(() => {
  process.on("uncaughtException", onCrash);
  process.on("unhandledRejection", onCrash);
});

afterEach(async () => {
  // Unhandled rejections are reported after a turn.
  await new Promise((resolve) => setImmediate(resolve));
  expect(crashes.splice(0)).toEqual([]);
});

afterAll(() => {
  process.off("uncaughtException", onCrash);
  process.off("unhandledRejection", onCrash);
});

const READY = "Z".charCodeAt(0);

/** FATAL 57P01, as of an administrator who ends the connection. */
function farewell(): Buffer {
  const fields = Buffer.from(
    "SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0",
  );
  const head = Buffer.from("E\0\0\0\0");
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}

describe("a server that says ready and farewell in one piece", () => {
  it.each(["by URL", "through a given pool"])("does not end the process %s", async (how) => {
    let isLeaving = false;
    const wire = await startWire(server.url, {
      replaces: (message) =>
        isLeaving && message[0] === READY ? Buffer.concat([message, farewell()]) : message,
    });
    const pool = new pg.Pool({ connectionString: wire.url, idleTimeoutMillis: 20 });
    const store = await openPostgresStore({
      ...(how === "by URL" ? { url: wire.url } : { pool }),
      table: "leaving",
    });
    const version = await create(store, key("job"));
    isLeaving = true;
    // On a connection that is there, on new ones, and for a session that listens.
    for (let round = 0; round < 5; round += 1) {
      await Promise.all(Array.from({ length: 4 }, () => ended(readOne(store, key("job")))));
      await ended(store.watch!(EVERYTHING, () => undefined));
    }
    isLeaving = false;
    expect(await eventually(() => readOne(store, key("job")).catch(() => null))).toMatchObject({ version });
    isLeaving = true;
    const last = ended(readOne(store, key("job")));
    await store.close();
    await last;
    await wire.close();
    await pool.end();
    await applyOne(await server.open({ table: "leaving" }), key("job"), version, null);
  });
});

describe("a caller's pool without a listener of its own", () => {
  it("does not end the process after the store was closed", async () => {
    const pool = new pg.Pool({ connectionString: server.url, max: 4, application_name: "left behind" });
    const store = await server.open({ pool, table: "left_behind" });
    await Promise.all(Array.from({ length: 4 }, (_, index) => create(store, key(`${index}`))));
    await store.close();
    await server.admin.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'left behind'",
    );
    await eventually(async () => pool.totalCount === 0);
    await pool.end();
  });
});

type Client = "url" | "pool" | "postgres.js" | "pooler";

interface Subject {
  readonly options: PostgresStoreOptions;
  end(): Promise<void>;
}

function subjectOn(client: Client, url: string): Subject {
  const own = { url, timeoutMs: 500, pollIntervalMs: 20 };
  if (client === "url") return { options: own, end: async () => {} };
  if (client === "pooler") return { options: { ...own, pooler: "transaction" }, end: async () => {} };
  if (client === "pool") {
    const pool = new pg.Pool({ connectionString: url, connectionTimeoutMillis: 500 });
    return { options: { pool, timeoutMs: 500 }, end: () => pool.end() };
  }
  // Without it postgres.js leaves a rejection of its own unhandled when a connection breaks while it asks for types.
  const sql = postgres(url, { connect_timeout: 1, backoff: () => 0.02, max: 6, fetch_types: false });
  return { options: { pool: sql, timeoutMs: 500 }, end: () => sql.end({ timeout: 1 }) };
}

describe("connections that are terminated and reset in every state", () => {
  const terminate =
    "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend' and random() < 0.5";

  it.each<Client>(["url", "pool", "postgres.js", "pooler"])(
    "end no process, through %s",
    async (client) => {
      const saboteur = await startSaboteur(Number(new URL(server.url).port));
      const subject = subjectOn(client, saboteur.through(server.url));
      await disturbStores({
        open: () => openPostgresStore({ ...subject.options, table: "disturbed" }),
        saboteur,
        terminate: () => server.admin.query(terminate),
      });
      await subject.end();
      await saboteur.close();
    },
    FAULT_MS + 60_000,
  );

  it.each<Client>(["url", "pool", "postgres.js"])(
    "end no process when the whole server is killed again and again, through %s",
    async (client) => {
      const subject = subjectOn(client, server.url);
      let killsLeft = 3;
      const kill = async (): Promise<void> => {
        killsLeft -= 1;
        if (killsLeft < 0) return;
        await server.engine.kill();
        await server.engine.restart();
      };
      const nobody = { through: String, fault: () => {}, calm: () => {}, close: async () => {} };
      await disturbStores({
        open: () => openPostgresStore({ ...subject.options, table: "disturbed" }),
        saboteur: nobody,
        terminate: kill,
      });
      await subject.end();
    },
    FAULT_MS + 60_000,
  );
});
