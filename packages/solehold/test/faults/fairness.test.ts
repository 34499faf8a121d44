/**
 * Three processes want one key without a pause, and one of them is farther from the store: it gets its turns all the
 * same. Without the wait queue the nearer two would have them all, because whoever releases is the first to know.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Leases } from "../../src/client/leases.ts";
import { StoreExecutor } from "../../src/executor/index.ts";
import { type Engine, type FaultProxy, startProxy } from "../engines/index.ts";
import { FAULT_ENGINES } from "./engines.ts";

const WATCHED = new Set(["Redis", "PostgreSQL", "etcd", "NATS"]);
const FARTHER_MS = 2;
const TURNS = 240;

describe.each(FAULT_ENGINES.filter(({ title }) => WATCHED.has(title)))(
  "three processes on one key of $title",
  ({ ttlMs, start, open }) => {
    let server: Engine;
    let proxy: FaultProxy;

    beforeAll(async () => {
      server = await start();
      proxy = await startProxy({ targetPort: Number(new URL(server.url).port) });
    });

    afterAll(async () => {
      await proxy?.close();
      await server?.stop();
    });

    async function client(holder: string, way: "near" | "far"): Promise<Leases> {
      const store = await open(server, way === "far" ? { proxy } : {});
      return new Leases({ executor: new StoreExecutor({ store }), holder });
    }

    it("each get a fair part of the turns, also the one that is farther away", async () => {
      const clients = await Promise.all([client("a", "near"), client("b", "near"), client("far", "far")]);
      proxy.delay(FARTHER_MS);
      const turns = clients.map(() => 0);
      const total = (): number => turns.reduce((sum, each) => sum + each, 0);
      const takeTurns = async (leases: Leases, index: number): Promise<void> => {
        while (total() < TURNS) {
          const lease = await leases.acquire("busy", { ttl: ttlMs * 4, wait: "60s" });
          turns[index] = (turns[index] ?? 0) + 1;
          await lease.release();
        }
      };
      await Promise.all(clients.map(takeTurns));
      for (const leases of clients) await leases.close();
      expect(Math.min(...turns), `turns: ${turns}`).toBeGreaterThan(TURNS / 6);
    });
  },
);
