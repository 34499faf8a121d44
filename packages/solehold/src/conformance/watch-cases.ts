/**
 * Watching: once `watch` has resolved, every change in its scope is announced sooner or later, from
 * whichever client it came. News is a hint, so the cases never count it nor look at its order.
 */
import { ok } from "node:assert/strict";
import type { LeaseStore } from "../store/index.ts";
import { claimApplied, claimCreated, claimDeleted } from "./assertions.ts";
import { applyOne, type BenchCase, type StoreBench } from "./store-fixture.ts";
import { WatchLog } from "./watch-log.ts";

/** The two clients, or null when the store says that it cannot be watched. */
async function watched(bench: StoreBench): Promise<readonly [LeaseStore, LeaseStore] | null> {
  const store = await bench.open();
  const { watch } = store.capabilities;
  ok((store.watch !== undefined) === watch, `capabilities.watch is ${watch}, watch() must fit it`);
  return watch ? [store, await bench.openSecond(store)] : null;
}

export const watchCases: readonly BenchCase[] = [
  {
    title: "every create, update and delete is announced, whichever client made it",
    run: async (bench) => {
      const clients = await watched(bench);
      if (clients === null) return;
      const log = await WatchLog.open(bench, clients[0], { tenant: bench.tenant, prefix: "" });
      for (const [index, writer] of clients.entries()) {
        const key = bench.key(`watched/${index}`);
        const created = await claimCreated(writer, bench.record(key));
        await log.announced(key);
        log.forget();
        const ended = bench.record(key, { state: "released", endedAtMs: 1_750_000_000_000 });
        const version = claimApplied(await applyOne(writer, key, created, ended), "the update");
        await log.announced(key);
        log.forget();
        if (!writer.capabilities.conditionalDelete) continue;
        claimDeleted(await applyOne(writer, key, version, null), "the delete");
        await log.announced(key);
        log.forget();
      }
      await log.close();
    },
  },
  {
    title: "every key of a large batch is announced",
    run: async (bench) => {
      const clients = await watched(bench);
      if (clients === null) return;
      const [store, second] = clients;
      const log = await WatchLog.open(bench, store, { tenant: bench.tenant, prefix: "" });
      const count = Math.min(bench.amount(500, 50), store.capabilities.maxBatch);
      const records = Array.from({ length: count }, (_, index) => bench.record(bench.key(`many/${index}`)));
      await second.apply(records.map((next) => ({ key: next.key, expected: null, next })));
      for (const { key } of records) await log.announced(key);
      await log.close();
    },
  },
  {
    title: "a watch announces its own tenant and prefix only, hostile names included",
    run: async (bench) => {
      const clients = await watched(bench);
      if (clients === null) return;
      const [store, second] = clients;
      const scoped = await WatchLog.open(bench, store, { tenant: bench.tenant, prefix: "in/[*" });
      const everything = await WatchLog.open(bench, store, { tenant: null, prefix: "" });
      const outside = [
        bench.key("out"),
        bench.key("in/x"),
        { tenant: bench.newTenant(), name: "in/[*a" },
        { tenant: `${bench.tenant}-x`, name: "in/[*a" },
      ];
      const inside = bench.key("in/[*\u{1F98A} 'quoted' {brace}");
      for (const key of [...outside, inside]) await claimCreated(second, bench.record(key));
      await scoped.announced(inside);
      for (const key of [...outside, inside]) await everything.announced(key);
      for (const key of outside) ok(!scoped.has(key), `'${key.name}' was announced outside its scope`);
      await scoped.close();
      await everything.close();
    },
  },
  {
    title: "a closed watch says nothing more, and the others go on",
    run: async (bench) => {
      const clients = await watched(bench);
      if (clients === null) return;
      const [store, second] = clients;
      const scope = { tenant: bench.tenant, prefix: "" };
      const closed = await WatchLog.open(bench, store, scope);
      const open = await WatchLog.open(bench, store, scope);
      await claimCreated(second, bench.record(bench.key("before")));
      await closed.announced(bench.key("before"));
      await closed.close();
      await closed.close();
      closed.forget();
      await claimCreated(second, bench.record(bench.key("after")));
      await open.announced(bench.key("after"));
      ok(closed.count === 0, "a watch that was closed announced a later change");
      await open.close();
    },
  },
];
