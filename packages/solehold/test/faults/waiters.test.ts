/**
 * Twenty waiters on one key of a real server: everyone is served, and waiting costs the server little. Its own
 * count of commands is the measure: MONITOR on Redis, the statement log on PostgreSQL.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Leases } from "../../src/client/leases.ts";
import { delay, realEnv } from "../../src/env/index.ts";
import { StoreExecutor, TICKET_PREFIX } from "../../src/executor/index.ts";
import type { LeaseStore } from "../../src/store/index.ts";
import { openPostgresStore } from "../../src/stores/postgres/index.ts";
import { openRedisStore } from "../../src/stores/redis/index.ts";
import { type Engine, startPostgres, startRedis } from "../engines/index.ts";
import { overriding } from "./witness.ts";

const WAITERS = 20;
const COUNTED_SECONDS = 2;
/** Short, so that renewals, which everyone is notified of, count as well. */
const TTL_MS = 4_000;
const MOST_COMMANDS_A_SECOND = 40;

/** How many commands the server has been sent so far. */
interface Counter {
  count(): number;
  stop(): void;
}

interface Counted {
  readonly title: string;
  start(): Promise<Engine>;
  open(engine: Engine): Promise<LeaseStore>;
  counter(engine: Engine): Promise<Counter>;
}

const ENGINES: readonly Counted[] = [
  {
    title: "Redis",
    start: () => startRedis(),
    open: ({ url }) => openRedisStore({ url }),
    counter: async ({ url }) => {
      const client = new Redis(url);
      const monitor = await client.monitor();
      let count = 0;
      // What a script does is part of the one command that called it.
      monitor.on("monitor", (_time: string, args: readonly string[], source: string) => {
        if (source !== "lua" && args[0] !== "monitor") count += 1;
      });
      return {
        count: () => count,
        stop: () => {
          monitor.disconnect();
          client.disconnect();
        },
      };
    },
  },
  {
    title: "PostgreSQL",
    start: () => startPostgres({ settings: ["log_statement=all"] }),
    open: ({ url }) => openPostgresStore({ url }),
    counter: async ({ dataDir }) => ({
      count: () =>
        readFileSync(join(dataDir, "postgres.log"), "utf8").match(/LOG: {2}(statement|execute)/g)?.length ??
        0,
      stop: () => undefined,
    }),
  },
];

/** A store that says when its process has written its ticket: that is the last thing before it only waits. */
class Watched {
  readonly store: LeaseStore;
  readonly #open: Promise<void>;

  constructor(store: LeaseStore) {
    let opened: () => void = () => undefined;
    this.#open = new Promise((resolve) => {
      opened = resolve;
    });
    const apply: LeaseStore["apply"] = async (writes) => {
      const reply = await store.apply(writes);
      if (writes.some(({ key }) => key.name.startsWith(TICKET_PREFIX))) opened();
      return reply;
    };
    this.store = overriding(store, { apply });
  }

  waits(): Promise<void> {
    return this.#open;
  }
}

describe.each(ENGINES)("twenty waiters on one key of $title", ({ start, open, counter }) => {
  let engine: Engine;
  let counted: Counter;
  const opened: Leases[] = [];

  beforeAll(async () => {
    engine = await start();
    counted = await counter(engine);
  });

  afterAll(async () => {
    counted?.stop();
    await engine?.stop();
  });

  afterEach(async () => {
    for (const leases of opened.splice(0)) await leases.close();
  });

  async function client(holder: string): Promise<{ leases: Leases; watched: Watched }> {
    const watched = new Watched(await open(engine));
    const leases = new Leases({ executor: new StoreExecutor({ store: watched.store }), holder });
    opened.push(leases);
    return { leases, watched };
  }

  async function commandsPerSecond(): Promise<number> {
    const [before, beganMs] = [counted.count(), realEnv.monotonicMs()];
    await delay(realEnv, COUNTED_SECONDS * 1_000);
    // On a busy machine the delay is longer than it was asked to be.
    return ((counted.count() - before) * 1_000) / (realEnv.monotonicMs() - beganMs);
  }

  it("with a client each cost few commands while the lease is renewed, and are all served", async () => {
    const { leases: holder } = await client("holder");
    const held = await holder.acquire("busy", { ttl: TTL_MS });
    const clients = await Promise.all(
      Array.from({ length: WAITERS }, (_, index) => client(`waiter-${index}`)),
    );
    const fences: bigint[] = [];
    const serving = clients.map(async ({ leases }) => {
      const lease = await leases.acquire("busy", { ttl: TTL_MS, wait: "2m" });
      fences.push(lease.fence);
      await lease.release();
    });
    await Promise.all(clients.map(({ watched }) => watched.waits()));
    expect(await commandsPerSecond()).toBeLessThan(MOST_COMMANDS_A_SECOND);
    expect(held.isHeld()).toBe(true);
    expect(fences).toEqual([]);
    await held.release();
    await Promise.all(serving);
    expect(fences).toEqual([...new Set(fences)].sort((a, b) => (a < b ? -1 : 1)));
    expect(fences).toHaveLength(WAITERS);
  });

  it("in one process are served in the order of their arrival, and only the first of them looks", async () => {
    const { leases: holder } = await client("holder");
    const held = await holder.acquire("queue", { ttl: TTL_MS });
    const { leases, watched } = await client("waiter");
    const served: number[] = [];
    const serving = Array.from({ length: WAITERS }, async (_, index) => {
      const lease = await leases.acquire("queue", { ttl: TTL_MS, wait: "2m" });
      served.push(index);
      await lease.release();
    });
    await watched.waits();
    // One that looks, one that renews.
    expect(await commandsPerSecond()).toBeLessThan(MOST_COMMANDS_A_SECOND / 4);
    await held.release();
    await Promise.all(serving);
    expect(served).toEqual(Array.from({ length: WAITERS }, (_, index) => index));
  });
});
