/** A PostgreSQL of a test file's own, which it may kill or reconfigure; the stores opened on it end with each test. */
import pg from "pg";
import { afterAll, afterEach, beforeAll } from "vitest";
import type { LeaseStore } from "../../../src/store/index.ts";
import { openPostgresStore, type PostgresStoreOptions } from "../../../src/stores/postgres/index.ts";
import { type Engine, startPostgres } from "../../engines/index.ts";

export interface OwnServer {
  readonly engine: Engine;
  readonly url: string;
  /** Connections beside those of the stores, to look and to meddle. */
  readonly admin: pg.Pool;
  open(options?: PostgresStoreOptions): Promise<LeaseStore>;
}

/** To be called once at the top of a test file: it is there from the file's first test to its last. */
export function ownServer(settings: readonly string[] = []): OwnServer {
  let engine: Engine | undefined;
  let admin: pg.Pool | undefined;
  const stores: LeaseStore[] = [];

  beforeAll(async () => {
    engine = await startPostgres({ settings });
    admin = new pg.Pool({ connectionString: engine.url });
    // A server that is killed takes idle connections with it.
    admin.on("error", () => undefined);
  });

  afterEach(async () => {
    await Promise.all(stores.splice(0).map((store) => store.close()));
  });

  afterAll(async () => {
    await admin?.end();
    await engine?.stop();
  });

  const started = (): Engine => {
    if (engine === undefined) throw new Error("the server has not been started yet");
    return engine;
  };
  return {
    get engine() {
      return started();
    },
    get url() {
      return started().url;
    },
    get admin() {
      if (admin === undefined) throw new Error("the server has not been started yet");
      return admin;
    },
    open: async (options = {}) => {
      const source = options.pool === undefined ? { url: started().url } : {};
      const store = await openPostgresStore({ ...source, ...options });
      stores.push(store);
      return store;
    },
  };
}
