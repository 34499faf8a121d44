/**
 * Whatever a server does to its connections, the process of the store's user goes on. The clients report broken
 * connections by "error" events, and one without a listener ends the process.
 *
 * Connections are disturbed for SOLEHOLD_FAULT_SECONDS through each client (default 1.5).
 */
import pg from "pg";
import postgres from "postgres";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type LeaseStore, StoreError } from "../../../src/store/index.ts";
import { openPostgresStore, type PostgresStoreOptions } from "../../../src/stores/postgres/index.ts";
import { type FaultProxy, startProxy } from "../../engines/index.ts";
import { ownServer } from "./own-server.ts";
import { applyOne, create, EVERYTHING, ended, eventually, key, readOne, record } from "./support.ts";
import { startWire } from "./wire.ts";

const FAULT_MS = Number(process.env.SOLEHOLD_FAULT_SECONDS ?? 1.5) * 1_000;

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

/** Uses a store until told otherwise: opens, watches, writes, reads, lists, and closes in the middle of it. */
async function useStores(subject: Subject, isOver: () => boolean): Promise<number> {
  let done = 0;
  const note = (answer: unknown): void => {
    if (answer instanceof Error && !(answer instanceof StoreError)) throw answer;
    if (!(answer instanceof Error)) done += 1;
  };
  while (!isOver()) {
    const store = await openPostgresStore({ ...subject.options, table: "disturbed" }).catch(
      (error: unknown) => error,
    );
    if (!(store instanceof Object && "apply" in store)) {
      note(store);
      await new Promise((resolve) => setTimeout(resolve, 2));
      continue;
    }
    done += await useStore(store as LeaseStore, note);
  }
  return done;
}

async function useStore(store: LeaseStore, note: (answer: unknown) => void): Promise<number> {
  const calls: Promise<void>[] = [];
  const call = (answer: Promise<unknown>): void => void calls.push(ended(answer).then(note));
  call(store.watch!(EVERYTHING, () => undefined));
  for (let round = 0; round < 6; round += 1) {
    const keys = Array.from({ length: 4 }, (_, index) => key(`${round}/${index}`));
    call(store.apply(keys.map((of) => ({ key: of, expected: null, next: record(of) }))));
    call(store.read(keys));
    call(store.list!({ tenant: "default", prefix: "", limit: 10 }));
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 20));
  }
  await store.close();
  await Promise.all(calls);
  return 1;
}

describe("connections that are terminated and reset in every state", () => {
  async function disturb(proxy: FaultProxy, faults: { count: number }, isOver: () => boolean): Promise<void> {
    const terminate =
      "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend' and application_name <> 'admin' and random() < 0.5";
    const admin = new pg.Client({ connectionString: server.url, application_name: "admin" });
    await admin.connect();
    while (!isOver()) {
      faults.count += 1;
      if (faults.count % 2 === 0) await admin.query(terminate);
      else if (faults.count % 5 === 0) proxy.dropReplies();
      else proxy.cut();
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 15));
      proxy.heal();
    }
    await admin.end();
  }

  it.each<Client>(["url", "pool", "postgres.js", "pooler"])(
    "end no process, through %s",
    async (client) => {
      await server.open({ table: "disturbed" });
      const proxy = await startProxy({ targetPort: Number(new URL(server.url).port) });
      const subject = subjectOn(client, proxy.through(server.url));
      const endMs = performance.now() + FAULT_MS;
      const faults = { count: 0 };
      // A slow machine takes longer for its share of faults.
      const isOver = (): boolean => performance.now() > endMs && faults.count > 10;
      const [, ...done] = await Promise.all([
        disturb(proxy, faults, isOver),
        ...Array.from({ length: 3 }, () => useStores(subject, isOver)),
      ]);
      expect(done.reduce((sum, each) => sum + each, 0)).toBeGreaterThan(0);
      proxy.heal();
      const store = await eventually(() =>
        openPostgresStore({ ...subject.options, table: "disturbed" }).catch(() => null),
      );
      await eventually(() => readOne(store, key("0/0")).catch(() => null));
      await store.close();
      await subject.end();
      await proxy.close();
    },
    FAULT_MS + 60_000,
  );

  it("end no process when the whole server is killed again and again", async () => {
    const clients: readonly Client[] = ["url", "pool", "postgres.js"];
    const subjects = clients.map((client) => subjectOn(client, server.url));
    let isOver = false;
    const using = subjects.map((subject) => useStores(subject, () => isOver));
    for (let round = 0; round < 3; round += 1) {
      await new Promise((resolve) => setTimeout(resolve, 200));
      await server.engine.kill();
      await server.engine.restart();
    }
    isOver = true;
    await Promise.all(using);
    await Promise.all(subjects.map((subject) => subject.end()));
  });
});
