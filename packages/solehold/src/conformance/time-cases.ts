/** The store is the clock: its replies carry its time, whole milliseconds that never go back. */
import { ok } from "node:assert/strict";
import type { LeaseStore } from "../store/index.ts";
import { claimCreated } from "./assertions.ts";
import { type BenchCase, readOne, type StoreBench } from "./store-fixture.ts";

async function timesOf(bench: StoreBench, store: LeaseStore, round: number): Promise<(number | null)[]> {
  const key = bench.key(`time/${round}`);
  const next = bench.record(key);
  const read = await store.read([key]);
  const done = await store.apply([{ key, expected: null, next }]);
  const conflict = await store.apply([{ key, expected: null, next }]);
  const page = await store.list?.({ tenant: bench.tenant, prefix: "", limit: 1 });
  return [read, done, conflict, ...(page === undefined ? [] : [page])].map(({ storeTimeMs }) => storeTimeMs);
}

export const timeCases: readonly BenchCase[] = [
  {
    title: "replies carry the store's time, or none does where the store has no clock",
    run: async (bench) => {
      const store = await bench.open();
      const { clock, clockGranularityMs, clockSkewMs } = store.capabilities;
      ok(Number.isSafeInteger(clockSkewMs) && clockSkewMs >= 0, `clockSkewMs is ${clockSkewMs}`);
      ok(
        Number.isSafeInteger(clockGranularityMs) && clockGranularityMs >= 1,
        `clockGranularityMs must be a whole number from 1, got ${clockGranularityMs}`,
      );
      for (const time of await timesOf(bench, store, 0)) {
        if (clock === "none") ok(time === null, `a store without a clock replied the time ${time}`);
        else ok(Number.isSafeInteger(time), `a reply's time must be whole milliseconds, got ${String(time)}`);
      }
    },
  },
  {
    title: "the time in replies never goes back, through either of two clients",
    run: async (bench) => {
      const store = await bench.open();
      const second = await bench.openSecond(store);
      let last = 0;
      for (let round = 0; round < 20; round += 1) {
        for (const time of await timesOf(bench, round % 2 === 0 ? store : second, round)) {
          ok(time === null || time >= last, `the store's time went back from ${last} to ${time}`);
          last = time ?? last;
        }
      }
    },
  },
  {
    title: "now() exists exactly where the clock is exact, and agrees with the replies",
    run: async (bench) => {
      const store = await bench.open();
      const exact = store.capabilities.clock === "exact";
      ok((store.now !== undefined) === exact, `clock is "${store.capabilities.clock}", now() must fit it`);
      if (store.now === undefined) return;
      const before = store.now();
      const { storeTimeMs } = await store.read([bench.key("clock")]);
      const after = store.now();
      ok(
        storeTimeMs !== null && before <= storeTimeMs && storeTimeMs <= after,
        `a reply's time ${storeTimeMs} is outside now() before and after the call: ${before}, ${after}`,
      );
    },
  },
  {
    title: "a read that starts after an acknowledged write sees it, through another client too",
    run: async (bench) => {
      const store = await bench.open();
      const second = await bench.openSecond(store);
      for (let round = 0; round < bench.amount(50, 10); round += 1) {
        const record = bench.record(bench.key(`fresh/${round}`));
        const [writer, reader] = round % 2 === 0 ? [store, second] : [second, store];
        await claimCreated(writer, record);
        const stored = await readOne(reader, record.key);
        ok(stored.kind === "found", `round ${round}: an acknowledged write was not seen by a later read`);
      }
    },
  },
];
