/** Listings: filtered, in order of name, in pages that neither skip nor repeat, without reserved names. */
import { deepStrictEqual } from "node:assert/strict";
import type { LeaseRecord } from "../core/index.ts";
import type { LeaseStore, ListQuery } from "../store/index.ts";
import { claimApplied, claimCreated, claimSameRecord } from "./assertions.ts";
import { claimListed, claimListing, namesOf } from "./listing.ts";
import { applyAll, type BenchCase, nth, type StoreBench } from "./store-fixture.ts";

const RESERVED_NAME = "$reserved";

async function fill(bench: StoreBench, store: LeaseStore, count: number): Promise<LeaseRecord[]> {
  const records = Array.from({ length: count }, (_, index) =>
    bench.record(bench.key(`${index % 2 === 0 ? "even" : "odd"}/${String(index).padStart(4, "0")}`), {
      holder: `holder-${index % 3}`,
      generation: BigInt(index + 1),
      ...(index % 5 === 0 ? { state: "released", endedAtMs: 1_750_000_000_000 } : {}),
    }),
  );
  const size = Math.min(100, store.capabilities.maxBatch);
  for (let start = 0; start < count; start += size) {
    const part = records.slice(start, start + size);
    const results = await applyAll(
      store,
      part.map((next) => ({ key: next.key, expected: null, next })),
    );
    for (const result of results) claimApplied(result, "a record to list");
  }
  return records;
}

const CASES: readonly BenchCase[] = [
  {
    title: "a listing of an empty tenant is empty and ends",
    run: async (bench) => {
      const store = await bench.open();
      const query = { tenant: bench.tenant, prefix: "", limit: 10 };
      await claimListing(bench, store, query, (listing) =>
        deepStrictEqual(listing, { records: [], corrupt: [] }),
      );
    },
  },
  {
    title: "a listing is in order of name and shows whole records",
    run: async (bench) => {
      const store = await bench.open();
      const records = await fill(bench, store, 25);
      const expected = records.sort((a, b) => (a.key.name < b.key.name ? -1 : 1));
      const query = { tenant: bench.tenant, prefix: "", limit: 1_000 };
      await claimListing(bench, store, query, ({ records: listed }) => {
        deepStrictEqual(namesOf(listed), namesOf(expected));
        for (const [index, record] of expected.entries()) {
          claimSameRecord(nth(listed, index), record, `listed ${record.key.name}`);
        }
      });
    },
  },
  {
    title: "pages of every size neither skip nor repeat a record",
    run: async (bench) => {
      const store = await bench.open();
      const records = await fill(bench, store, bench.amount(60, 20));
      for (const limit of [1, 2, 7, records.length - 1, records.length, records.length + 1]) {
        await claimListed(bench, store, { tenant: bench.tenant, prefix: "", limit }, namesOf(records));
      }
    },
  },
  {
    title: "many pages are walked to the end, and every record is met once",
    run: async (bench) => {
      const store = await bench.open();
      const records = await fill(bench, store, bench.amount(2_500, 250));
      const query = { tenant: bench.tenant, prefix: "", limit: bench.amount(100, 50) };
      await claimListed(bench, store, query, namesOf(records));
    },
  },
  {
    title: "prefix, holder and state each narrow a listing, alone and together, over pages",
    run: async (bench) => {
      const store = await bench.open();
      const records = await fill(bench, store, 60);
      const filters: readonly Pick<ListQuery, "prefix" | "holder" | "state">[] = [
        { prefix: "even/" },
        { prefix: "even/000" },
        { prefix: "nothing" },
        { prefix: "", holder: "holder-1" },
        { prefix: "", holder: "nobody" },
        { prefix: "", state: "released" },
        { prefix: "", state: "revoked" },
        { prefix: "odd/", holder: "holder-2", state: "held" },
      ];
      for (const filter of filters) {
        const expected = records.filter(
          ({ key, holder, state }) =>
            key.name.startsWith(filter.prefix) &&
            (filter.holder === undefined || filter.holder === holder) &&
            (filter.state === undefined || filter.state === state),
        );
        await claimListed(bench, store, { tenant: bench.tenant, ...filter, limit: 4 }, namesOf(expected));
      }
    },
  },
  {
    title: "reserved names are hidden from listings unless they are asked for",
    run: async (bench) => {
      const store = await bench.open();
      await claimCreated(store, bench.record(bench.key(RESERVED_NAME), { generation: 9n }));
      await claimCreated(store, bench.record(bench.key("job")));
      await claimListed(bench, store, { tenant: bench.tenant, prefix: "", limit: 1 }, ["job"]);
      await claimListed(bench, store, { tenant: bench.tenant, prefix: "$", limit: 10 }, [RESERVED_NAME]);
    },
  },
  {
    title: "a listing shows a record's latest state, and a deleted one no more",
    run: async (bench) => {
      const store = await bench.open();
      const [one, two] = await fill(bench, store, 2);
      if (one === undefined || two === undefined) throw new Error("the fixture has two records");
      const { records } = await store.read([one.key, two.key]);
      const versions = records.map((stored) => (stored.kind === "found" ? stored.version : ""));
      const next = bench.record(one.key, { holder: "someone new", generation: 7n });
      const deletes = store.capabilities.conditionalDelete;
      await applyAll(store, [
        { key: one.key, expected: nth(versions, 0), next },
        ...(deletes ? [{ key: two.key, expected: nth(versions, 1), next: null }] : []),
      ]);
      const query = { tenant: bench.tenant, prefix: "", limit: 10 };
      await claimListing(bench, store, query, ({ records: listed }) => {
        deepStrictEqual(namesOf(listed), deletes ? [one.key.name] : [one.key.name, two.key.name]);
        claimSameRecord(nth(listed, 0), next, "the listed record");
      });
    },
  },
];

/** Nothing to check where a store cannot list. */
export const listCases: readonly BenchCase[] = CASES.map((each) => ({
  ...each,
  run: async (bench) => {
    if ((await bench.open()).list !== undefined) await each.run(bench);
  },
}));
