/** Memory stores that cannot list, or list from an index that lags behind, some of them with a planted fault. */
import { keyId, type LeaseRecord } from "../../../src/core/index.ts";
import {
  type ApplyReply,
  type ConditionalWrite,
  decorateStore,
  type LeaseStore,
  type ListPage,
  type ListQuery,
  MemoryStore,
  nameIsListed,
  recordIsListed,
} from "../../../src/store/index.ts";

const LAG_MS = 15;

export function withoutListing(): LeaseStore {
  const { list: _, ...store } = decorateStore(new MemoryStore(), {});
  return store;
}

/** Its listings show a write some time later, in an order of their own, and say so. Nothing is wrong with it. */
export class ListingLate extends MemoryStore {
  readonly #index = new Map<string, LeaseRecord>();

  override async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    const reply = await super.apply(writes);
    const done = writes.filter((_, index) => reply.results[index]?.kind === "applied");
    setTimeout(() => {
      for (const { key, next } of done) this.index(keyId(key), next);
    }, LAG_MS);
    return reply;
  }

  /** Backwards. */
  override async list(query: ListQuery): Promise<ListPage> {
    await super.read([]); // Rejects once it is closed.
    const found = [...this.#index.values()]
      .filter(({ key }) => key.tenant === query.tenant && nameIsListed(query, key.name))
      .filter((record) => recordIsListed(query, record))
      .sort((a, b) => (a.key.name < b.key.name ? 1 : -1))
      .filter(({ key }) => query.after === undefined || key.name < query.after);
    const records = found.slice(0, query.limit);
    const next = found.length > records.length ? records.at(-1)!.key.name : null;
    return { storeTimeMs: this.now(), records, corrupt: [], next, stale: true };
  }

  protected index(id: string, record: LeaseRecord | null): void {
    if (record === null) this.#index.delete(id);
    else this.#index.set(id, record);
  }
}

/** Its index keeps what it had first. */
export class NeverListingUpdates extends ListingLate {
  readonly #seen = new Set<string>();

  protected override index(id: string, record: LeaseRecord | null): void {
    if (record === null || !this.#seen.has(id)) super.index(id, record);
    this.#seen.add(id);
  }
}

export class NeverUnlisting extends ListingLate {
  protected override index(id: string, record: LeaseRecord | null): void {
    if (record !== null) super.index(id, record);
  }
}

/** Its cursor skips one record. */
export class SkippingLatePages extends ListingLate {
  override async list(query: ListQuery): Promise<ListPage> {
    const page = await super.list({ ...query, limit: query.limit + 1 });
    return page.records.length <= query.limit
      ? page
      : { ...page, records: page.records.slice(0, query.limit) };
  }
}

/** Says "stale" only on its first page, and lists a record twice. */
export class RepeatingLatePages extends ListingLate {
  override async list(query: ListQuery): Promise<ListPage> {
    const page = await super.list(query);
    const [first] = page.records;
    return query.after === undefined || first === undefined || page.records.length === query.limit
      ? page
      : { ...page, records: [...page.records, first] };
  }
}

/** Lags behind, and does not say so. */
export class SilentlyLate extends ListingLate {
  override async list(query: ListQuery): Promise<ListPage> {
    const { stale: _, ...page } = await super.list(query);
    return page;
  }
}
