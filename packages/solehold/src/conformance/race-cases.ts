/** Many writers, one key: for every version exactly one of them wins, and nobody wins on an old one. */
import { deepStrictEqual, ok } from "node:assert/strict";
import type { LeaseStore, StoredRecord, WriteResult } from "../store/index.ts";
import { claimApplied, claimConflict, claimFound } from "./assertions.ts";
import { applyOne, type BenchCase, nth, readOne, type StoreBench } from "./store-fixture.ts";

/** All race for the same version through both clients; the winner's index. */
async function race(
  bench: StoreBench,
  clients: readonly LeaseStore[],
  expected: string | null,
  generation: bigint,
): Promise<{ readonly winner: number; readonly results: readonly WriteResult[]; readonly nonces: string[] }> {
  const key = bench.key("contended");
  const records = Array.from({ length: bench.amount(64, 16) }, (_, index) =>
    bench.record(key, { holder: `racer-${index}`, generation }),
  );
  const results = await Promise.all(
    records.map((next, index) => applyOne(nth(clients, index % clients.length), key, expected, next)),
  );
  const winners = results.flatMap((result, index) => (result.kind === "applied" ? [index] : []));
  ok(winners.length === 1, `${winners.length} of ${results.length} racers won version ${expected}`);
  return { winner: nth(winners, 0), results, nonces: records.map(({ nonce }) => nonce) };
}

export const raceCases: readonly BenchCase[] = [
  {
    title: "64 racers for one version have exactly one winner, round after round, over two clients",
    run: async (bench) => {
      const store = await bench.open();
      const clients = [store, await bench.openSecond(store)];
      let expected: string | null = null;
      for (let round = 1; round <= bench.amount(10, 3); round += 1) {
        const { winner, results, nonces } = await race(bench, clients, expected, BigInt(round));
        expected = claimApplied(nth(results, winner), "the winner");
        for (const [index, result] of results.entries()) {
          if (index === winner) continue;
          const current: StoredRecord = claimConflict(result, `racer ${index}`);
          ok(current.kind === "found", `racer ${index} lost to ${current.kind}, not to a record`);
          ok(current.record.nonce === nonces[winner], `racer ${index} was shown a record that did not win`);
        }
        const stored = await readOne(store, bench.key("contended"));
        ok(stored.kind === "found" && stored.record.nonce === nonces[winner], "the winner is not stored");
        ok(stored.version === expected, "the winner's version is not the stored one");
      }
    },
  },
  {
    title: "a counter raised by two clients at once loses no update",
    run: async (bench) => {
      const store = await bench.open();
      const clients = [store, await bench.openSecond(store)];
      const key = bench.key("counter");
      const perWriter = bench.amount(25, 5);
      const writers = Array.from({ length: 8 }, async (_, index) => {
        const client = nth(clients, index % clients.length);
        for (let done = 0; done < perWriter; ) {
          const stored = await readOne(client, key);
          const [version, value] =
            stored.kind === "found" ? [stored.version, stored.record.generation] : [null, 0n];
          const next = bench.record(key, { generation: value + 1n, holder: `writer-${index}` });
          if ((await applyOne(client, key, version, next)).kind === "applied") done += 1;
        }
      });
      await Promise.all(writers);
      const stored = await readOne(store, key);
      ok(stored.kind === "found", "the counter is gone");
      deepStrictEqual(stored.record.generation, BigInt(8 * perWriter));
    },
  },
  {
    title: "batches that overlap from two clients keep every key's own winner",
    run: async (bench) => {
      const store = await bench.open();
      const clients = [store, await bench.openSecond(store)];
      const count = Math.min(bench.amount(100, 20), store.capabilities.maxBatch);
      const keys = Array.from({ length: count }, (_, index) => bench.key(`overlap/${index}`));
      const batches = clients.map((_, client) =>
        keys.map((key) => ({ key, expected: null, next: bench.record(key, { holder: `client-${client}` }) })),
      );
      const replies = await Promise.all(clients.map((client, index) => client.apply(nth(batches, index))));
      for (const [index, key] of keys.entries()) {
        const kinds = replies.map(({ results }) => nth(results, index).kind).sort();
        deepStrictEqual(kinds, ["applied", "conflict"], `the outcomes for '${key.name}'`);
        const winner = replies.findIndex(({ results }) => nth(results, index).kind === "applied");
        claimFound(await readOne(store, key), nth(nth(batches, winner), index).next, key.name);
      }
    },
  },
];
