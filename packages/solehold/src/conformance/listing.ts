/**
 * Listings as the cases look at them: all pages, walked to the end. One that says it may be stale is asked again until it
 * shows what is claimed of it, within the kit's patience, and its order is its own. Where a store cannot list, nothing
 * is claimed.
 */
import { deepStrictEqual, ok } from "node:assert/strict";
import type { LeaseRecord } from "../core/index.ts";
import { delay } from "../env/index.ts";
import type { LeaseStore, ListQuery } from "../store/index.ts";
import type { StoreBench } from "./store-fixture.ts";

/** More pages than any listing of the kit can have: a cursor that does not move is a failure, not a hang. */
const MAX_PAGES = 2_000;
const PAUSE_MS = 10;

export type WholeQuery = Omit<ListQuery, "after">;

export interface Listing {
  readonly records: readonly LeaseRecord[];
  /** The names of values that cannot be read. */
  readonly corrupt: readonly string[];
}

export async function claimListing(
  bench: StoreBench,
  store: LeaseStore,
  query: WholeQuery,
  claim: (listing: Listing) => void,
): Promise<void> {
  const list = store.list?.bind(store);
  if (list === undefined) return;
  const deadlineMs = bench.env.monotonicMs() + bench.patienceMs;
  for (;;) {
    const { isStale, ...listing } = await walk(list, query);
    try {
      return claim(isStale ? inOrderOfName(listing) : listing);
    } catch (error) {
      if (!isStale || bench.env.monotonicMs() > deadlineMs) throw error;
    }
    await delay(bench.env, PAUSE_MS);
  }
}

/** That exactly these names are listed, in order, each once. */
export function claimListed(
  bench: StoreBench,
  store: LeaseStore,
  query: WholeQuery,
  expected: readonly string[],
): Promise<void> {
  return claimListing(bench, store, query, ({ records }) =>
    deepStrictEqual(namesOf(records), [...expected].sort(), `listed with ${JSON.stringify(query)}`),
  );
}

/** As `claimListed`, for names of which stores have orders of their own: by byte, by UTF-16 unit, as escaped. */
export function claimListedInAnyOrder(
  bench: StoreBench,
  store: LeaseStore,
  query: WholeQuery,
  expected: readonly string[],
): Promise<void> {
  return claimListing(bench, store, query, ({ records }) => {
    const said = `listed with ${JSON.stringify(query)}`;
    deepStrictEqual(namesOf(records).sort(), [...expected].sort(), said);
    for (const { key } of records)
      ok(key.tenant === query.tenant, `${said}: a lease of tenant ${key.tenant}`);
  });
}

export function namesOf(records: readonly LeaseRecord[]): string[] {
  return records.map(({ key }) => key.name);
}

function inOrderOfName({ records, corrupt }: Listing): Listing {
  const sorted = [...records].sort((a, b) => (a.key.name < b.key.name ? -1 : 1));
  return { records: sorted, corrupt: [...corrupt].sort() };
}

async function walk(
  list: NonNullable<LeaseStore["list"]>,
  query: WholeQuery,
): Promise<Listing & { readonly isStale: boolean }> {
  const records: LeaseRecord[] = [];
  const corrupt: string[] = [];
  let isStale = false;
  let after: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const reply = await list(after === undefined ? query : { ...query, after });
    ok(
      reply.records.length <= query.limit,
      `a page of at most ${query.limit} has ${reply.records.length} records`,
    );
    records.push(...reply.records);
    corrupt.push(...reply.corrupt.map(({ key }) => key.name));
    isStale ||= reply.stale === true;
    if (reply.next === null) return { records, corrupt, isStale };
    after = reply.next;
  }
  throw new Error(`the listing did not end after ${MAX_PAGES} pages: does its cursor move?`);
}
