/** Listings: filtered, in order of name, in pages that neither skip nor repeat, without reserved names. */
import { deepStrictEqual, ok } from "node:assert/strict";
import type { LeaseRecord } from "../core/index.ts";
import type { LeaseStore, ListPage, ListQuery } from "../store/index.ts";
import { applyAll, type BenchCase, nth, type StoreBench } from "./bench.ts";
import { claimApplied, claimCreated, claimSameRecord } from "./claims.ts";

/** More pages than any listing of the kit can have: a cursor that does not move is a failure, not a hang. */
const MAX_PAGES = 2_000;
const RESERVED_NAME = "$reserved";

export async function listPage(store: LeaseStore, query: ListQuery): Promise<ListPage> {
  if (store.list === undefined) throw new Error("the store cannot list");
  return await store.list(query);
}

export async function listAll(store: LeaseStore, query: Omit<ListQuery, "after">): Promise<LeaseRecord[]> {
  const records: LeaseRecord[] = [];
  let after: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const reply = await listPage(store, after === undefined ? query : { ...query, after });
    ok(
      reply.records.length <= query.limit,
      `a page of at most ${query.limit} has ${reply.records.length} records`,
    );
    records.push(...reply.records);
    if (reply.next === null) return records;
    after = reply.next;
  }
  throw new Error(`the listing did not end after ${MAX_PAGES} pages: does its cursor move?`);
}

const names = (records: readonly LeaseRecord[]): string[] => records.map(({ key }) => key.name);

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
      const page = await listPage(store, { tenant: bench.tenant, prefix: "", limit: 10 });
      deepStrictEqual([page.records.length, page.corrupt.length, page.next], [0, 0, null]);
    },
  },
  {
    title: "a listing is in order of name and shows whole records",
    run: async (bench) => {
      const store = await bench.open();
      const records = await fill(bench, store, 25);
      const listed = await listAll(store, { tenant: bench.tenant, prefix: "", limit: 1_000 });
      const expected = records.sort((a, b) => (a.key.name < b.key.name ? -1 : 1));
      deepStrictEqual(names(listed), names(expected));
      for (const [index, record] of expected.entries()) {
        claimSameRecord(nth(listed, index), record, `listed ${record.key.name}`);
      }
    },
  },
  {
    title: "pages of every size neither skip nor repeat a record",
    run: async (bench) => {
      const store = await bench.open();
      const records = await fill(bench, store, bench.amount(60, 20));
      const expected = names(records).sort();
      for (const limit of [1, 2, 7, records.length - 1, records.length, records.length + 1]) {
        const listed = await listAll(store, { tenant: bench.tenant, prefix: "", limit });
        deepStrictEqual(names(listed), expected, `in pages of ${limit}`);
      }
    },
  },
  {
    title: "many pages are walked to the end, and every record is met once",
    run: async (bench) => {
      const store = await bench.open();
      const records = await fill(bench, store, bench.amount(2_500, 250));
      const listed = await listAll(store, { tenant: bench.tenant, prefix: "", limit: bench.amount(100, 50) });
      deepStrictEqual(names(listed), names(records).sort());
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
        const listed = await listAll(store, { tenant: bench.tenant, ...filter, limit: 4 });
        deepStrictEqual(names(listed), names(expected).sort(), `with ${JSON.stringify(filter)}`);
      }
    },
  },
  {
    title: "reserved names are hidden from listings unless they are asked for",
    run: async (bench) => {
      const store = await bench.open();
      await claimCreated(store, bench.record(bench.key(RESERVED_NAME), { generation: 9n }));
      await claimCreated(store, bench.record(bench.key("job")));
      const plain = await listAll(store, { tenant: bench.tenant, prefix: "", limit: 1 });
      deepStrictEqual(names(plain), ["job"]);
      const reserved = await listAll(store, { tenant: bench.tenant, prefix: "$", limit: 10 });
      deepStrictEqual(names(reserved), [RESERVED_NAME]);
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
      const listed = await listAll(store, { tenant: bench.tenant, prefix: "", limit: 10 });
      deepStrictEqual(names(listed), deletes ? [one.key.name] : [one.key.name, two.key.name]);
      claimSameRecord(nth(listed, 0), next, "the listed record");
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
