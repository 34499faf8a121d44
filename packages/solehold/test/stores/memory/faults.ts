/** Memory stores with one planted fault each, and the title of a case that must catch it. */

import { ShiftedEnv } from "../../../src/conformance/shifted-env.ts";
import { keyId } from "../../../src/core/index.ts";
import { realEnv } from "../../../src/env/index.ts";
import {
  type ApplyReply,
  type ConditionalWrite,
  type LeaseStore,
  type ListPage,
  type ListQuery,
  MemoryStore,
  type ReadReply,
  type StoreEvent,
  type StoreWatch,
  type WatchScope,
} from "../../../src/store/index.ts";
import {
  NeverListingUpdates,
  NeverUnlisting,
  RepeatingLatePages,
  SilentlyLate,
  SkippingLatePages,
} from "./late-listings.ts";

interface Fault {
  readonly fault: string;
  readonly breaks: string;
  open(): Promise<LeaseStore>;
  jumpClock?(byMs: number): void;
}

function plant(fault: string, breaks: string, store: new () => LeaseStore): Fault {
  return { fault, breaks, open: async () => new store() };
}

/** Whatever the caller expects, the write is done on what is there. */
class WithoutComparing extends MemoryStore {
  override async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    const { records } = await this.read(writes.map(({ key }) => key));
    return super.apply(
      writes.map((write, index) => {
        const stored = records[index]!;
        return { ...write, expected: stored.kind === "found" ? stored.version : null };
      }),
    );
  }
}

/** Compares, then writes, with a gap between: as a client that reads first and puts later. */
class WithAGap extends MemoryStore {
  override async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    const { records, storeTimeMs } = await this.read(writes.map(({ key }) => key));
    await new Promise((resolve) => setImmediate(resolve));
    const current = (await this.read(writes.map(({ key }) => key))).records;
    const results = await Promise.all(
      writes.map(async (write, index) => {
        const seen = records[index]!;
        if ((seen.kind === "found" ? seen.version : null) !== write.expected)
          return { kind: "conflict", current: seen } as const;
        const now = current[index]!;
        const expected = now.kind === "found" ? now.version : null;
        return (await super.apply([{ ...write, expected }])).results[0]!;
      }),
    );
    return { storeTimeMs, results };
  }
}

/** The version is the generation, as in a store that names versions by content. */
class WithVersionsByContent extends MemoryStore {
  readonly #real = new Map<string, string>();

  override async read(keys: Parameters<MemoryStore["read"]>[0]): Promise<ReadReply> {
    const reply = await super.read(keys);
    const records = reply.records.map((stored) =>
      stored.kind === "found" ? { ...stored, version: `g${stored.record.generation}` } : stored,
    );
    return { ...reply, records };
  }

  override async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    const results = [];
    for (const write of writes) {
      const stored = (await this.read([write.key])).records[0]!;
      const matches = (stored.kind === "found" ? stored.version : null) === write.expected;
      if (!matches) {
        results.push({ kind: "conflict", current: stored } as const);
        continue;
      }
      const id = keyId(write.key);
      const [result] = (await super.apply([{ ...write, expected: this.#real.get(id) ?? null }])).results;
      if (result?.kind === "applied" && result.version !== null) this.#real.set(id, result.version);
      else this.#real.delete(id);
      const version = write.next === null ? null : `g${write.next.generation}`;
      results.push({ kind: "applied", version } as const);
    }
    return { storeTimeMs: this.now(), results };
  }
}

/** Says of the last write of a batch that it was done, and forgets it. */
class LosingABatchItem extends MemoryStore {
  override async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    if (writes.length < 2) return super.apply(writes);
    const reply = await super.apply(writes.slice(0, -1));
    return { ...reply, results: [...reply.results, { kind: "applied", version: "lost" }] };
  }
}

/** One refused write refuses the whole batch. */
class AllOrNothing extends MemoryStore {
  override async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    const { records, storeTimeMs } = await this.read(writes.map(({ key }) => key));
    const fits = writes.every((write, index) => {
      const stored = records[index]!;
      return (stored.kind === "found" ? stored.version : null) === write.expected;
    });
    if (fits) return super.apply(writes);
    return { storeTimeMs, results: records.map((current) => ({ kind: "conflict", current })) };
  }
}

/** Answers conflicts without the current record. */
class WithEmptyConflicts extends MemoryStore {
  override async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    const reply = await super.apply(writes);
    const results = reply.results.map((result) =>
      result.kind === "conflict" ? ({ kind: "conflict", current: { kind: "absent" } } as const) : result,
    );
    return { ...reply, results };
  }
}

/** Folds case, as some file systems and collations do. */
class FoldingCase extends MemoryStore {
  override read(keys: Parameters<MemoryStore["read"]>[0]): Promise<ReadReply> {
    return super.read(keys.map(({ tenant, name }) => ({ tenant, name: name.toLowerCase() })));
  }

  override apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    return super.apply(
      writes.map((write) => ({ ...write, key: { ...write.key, name: write.key.name.toLowerCase() } })),
    );
  }
}

/** Takes the prefix for a pattern. */
class LeakingPrefix extends MemoryStore {
  override async list(query: ListQuery): Promise<ListPage> {
    const page = await super.list({
      ...query,
      prefix: query.prefix.startsWith("$") ? "$" : "",
      limit: 1_000,
    });
    const pattern = new RegExp(`^${query.prefix.replaceAll("*", ".*").replaceAll(/[[\\?{]/g, ".")}`);
    return { ...page, records: page.records.filter(({ key }) => pattern.test(key.name)), next: null };
  }
}

/** Its cursor skips one record. */
class SkippingPages extends MemoryStore {
  override async list(query: ListQuery): Promise<ListPage> {
    const page = await super.list({ ...query, limit: query.limit + 1 });
    if (page.records.length <= query.limit) return page;
    return { ...page, records: page.records.slice(0, query.limit) };
  }
}

class ListingReservedNames extends MemoryStore {
  override async list(query: ListQuery): Promise<ListPage> {
    const page = await super.list(query);
    const reserved = await super.list({ ...query, prefix: "$" });
    if (query.prefix.startsWith("$")) return page;
    return { ...page, records: [...reserved.records, ...page.records].slice(0, query.limit) };
  }
}

class NeverAnnouncing extends MemoryStore {
  override async watch(): Promise<StoreWatch> {
    return { close: async () => undefined };
  }
}

/** Hides what was deleted, which waiters would sleep over. */
class HidingDeletes extends MemoryStore {
  override watch(scope: WatchScope, listener: (event: StoreEvent) => void): Promise<StoreWatch> {
    return super.watch(scope, (event) => {
      if (event.kind === "reset" || event.stored?.kind !== "absent") listener(event);
    });
  }
}

class WatchingForEver extends MemoryStore {
  override async watch(scope: WatchScope, listener: (event: StoreEvent) => void): Promise<StoreWatch> {
    await super.watch(scope, listener);
    return { close: async () => undefined };
  }
}

class WatchingEveryone extends MemoryStore {
  override watch(_scope: WatchScope, listener: (event: StoreEvent) => void): Promise<StoreWatch> {
    return super.watch({ tenant: null, prefix: "" }, listener);
  }
}

/** Keeps numbers as doubles. */
class RoundingGenerations extends MemoryStore {
  override async read(keys: Parameters<MemoryStore["read"]>[0]): Promise<ReadReply> {
    const reply = await super.read(keys);
    const records = reply.records.map((stored) =>
      stored.kind === "found"
        ? { ...stored, record: { ...stored.record, generation: BigInt(Number(stored.record.generation)) } }
        : stored,
    );
    return { ...reply, records };
  }
}

class GoingBackInTime extends MemoryStore {
  #calls = 0;

  override async read(keys: Parameters<MemoryStore["read"]>[0]): Promise<ReadReply> {
    this.#calls += 1;
    const reply = await super.read(keys);
    return { ...reply, storeTimeMs: (reply.storeTimeMs ?? 0) - (this.#calls % 2) * 1_000 };
  }
}

class AnsweringWhenClosed extends MemoryStore {
  override async close(): Promise<void> {}
}

/** Deletes whatever version the caller names. */
class DeletingBlindly extends MemoryStore {
  override async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    const { records } = await this.read(writes.map(({ key }) => key));
    return super.apply(
      writes.map((write, index) => {
        const stored = records[index]!;
        return write.next === null && stored.kind === "found"
          ? { ...write, expected: stored.version }
          : write;
      }),
    );
  }
}

const PAGES = "pages of every size neither skip nor repeat a record";
const LATEST = "a listing shows a record's latest state, and a deleted one no more";
const RACE = "64 racers for one version have exactly one winner, round after round, over two clients";

export const FAULTS: readonly Fault[] = [
  plant(
    "writes without comparing",
    "a create fails where a record exists, and the conflict shows that record",
    WithoutComparing,
  ),
  plant("compares and writes in two steps", RACE, WithAGap),
  plant(
    "uses a version twice",
    "a version never comes back, not even when equal content is written again",
    WithVersionsByContent,
  ),
  plant(
    "loses an item of a batch",
    "a batch as large as the store takes is written and read whole",
    LosingABatchItem,
  ),
  plant(
    "refuses a whole batch for one conflict",
    "the writes of a batch succeed or fail each on its own, answered in the order given",
    AllOrNothing,
  ),
  plant(
    "hides the record that a write lost to",
    "an update of the current version is applied, and an older version is refused ever after",
    WithEmptyConflicts,
  ),
  plant("folds the case of names", "hostile names are keys like any other and never collide", FoldingCase),
  plant(
    "takes a prefix for a pattern",
    "a prefix in a listing is plain text, whatever it contains",
    LeakingPrefix,
  ),
  plant("skips a record between pages", PAGES, SkippingPages),
  plant("lists late and never shows an update", LATEST, NeverListingUpdates),
  plant("lists late and never drops what was deleted", LATEST, NeverUnlisting),
  plant("lists late and skips a record between pages", PAGES, SkippingLatePages),
  plant("lists late and repeats a record", PAGES, RepeatingLatePages),
  plant("lists late and does not say so", LATEST, SilentlyLate),
  plant(
    "lists reserved names",
    "reserved names are hidden from listings unless they are asked for",
    ListingReservedNames,
  ),
  plant(
    "never announces anything",
    "every create, update and delete is announced, whichever client made it",
    NeverAnnouncing,
  ),
  plant(
    "does not announce deletes",
    "every create, update and delete is announced, whichever client made it",
    HidingDeletes,
  ),
  plant("cannot stop a watch", "a closed watch says nothing more, and the others go on", WatchingForEver),
  plant(
    "announces other tenants' changes",
    "a watch announces its own tenant and prefix only, hostile names included",
    WatchingEveryone,
  ),
  plant("rounds large generations", "every field of a record comes back unchanged", RoundingGenerations),
  plant(
    "lets its time go back",
    "the time in replies never goes back, through either of two clients",
    GoingBackInTime,
  ),
  plant(
    "answers after it was closed",
    "after close() every call rejects with a StoreError of kind closed, and a second close is fine",
    AnsweringWhenClosed,
  ),
  plant(
    "deletes any version",
    "a delete on condition happens only on the current version, or is not offered at all",
    DeletingBlindly,
  ),
];

/** Its clock runs twenty times too fast. */
class Galloping extends MemoryStore {
  readonly #startMs = super.now();

  override now(): number {
    return this.#startMs + 20 * (super.now() - this.#startMs);
  }
}

const settable = new ShiftedEnv(realEnv, 0);

/** Takes its time from the wall clock, which somebody may set. */
class FollowingTheWall extends MemoryStore {
  override now(): number {
    return Math.floor(settable.wallMs());
  }
}

/** Faults that show one level up, in leases. */
export const LEASE_FAULTS: readonly Fault[] = [
  plant(
    "compares and writes in two steps",
    "of many acquires at once exactly one is granted, and the others learn who holds it",
    WithAGap,
  ),
  plant(
    "has a clock that gallops",
    "clients whose wall clocks are ten minutes off wait for the store's clock like everyone else",
    Galloping,
  ),
  ...["ahead ends no lease, neither for its holder nor for others", "back prolongs no lease"].map((what) => ({
    ...plant("follows a clock that is set", `a store clock that jumps ten minutes ${what}`, FollowingTheWall),
    jumpClock: (byMs: number) => settable.step(byMs),
  })),
];
