/**
 * Random histories of conditional writes, carried out on the store under test and on MemoryStore: every
 * write must end alike on both, and both must hold the same records in the end. Seeded; a failure names
 * the seed, and `seed` in the subject repeats it.
 */
import { deepStrictEqual, fail, ok } from "node:assert/strict";
import type { LeaseKey, LeaseRecord } from "../core/index.ts";
import { ManualEnv } from "../env/index.ts";
import {
  type ConditionalWrite,
  type LeaseStore,
  MemoryStore,
  type StoredRecord,
  type WriteResult,
} from "../store/index.ts";
import { claimSameRecord, describeResult, describeStored } from "./assertions.ts";
import { claimListing } from "./listing.ts";
import { applyAll, type BenchCase, nth, readAll, type StoreBench } from "./store-fixture.ts";

/** A write as both stores understand it: the version is named by the number of the write that made it. */
interface PlannedWrite {
  readonly name: string;
  readonly expected: number | null;
  readonly next: LeaseRecord | null;
}

const NAMES = ["a", "a/b", "A", "\u00e4", "b"];
const HOLDERS = ["one", "two"];

class History {
  readonly #bench: StoreBench;
  readonly #random: () => number;
  readonly #stores: readonly [MemoryStore, LeaseStore];
  readonly #tenant: string;
  /** For every write so far, the version that it made in each store. */
  readonly #versions: (readonly [string, string] | null)[] = [];
  readonly #writesOf = new Map<string, number[]>();

  constructor(bench: StoreBench, store: LeaseStore, seed: number) {
    const env = new ManualEnv({ seed });
    this.#bench = bench;
    this.#tenant = bench.newTenant();
    this.#random = () => env.random();
    this.#stores = [new MemoryStore({ env }), store];
  }

  /** One batch on both stores. */
  async step(): Promise<void> {
    const names = NAMES.filter(() => this.#random() < 0.5);
    const batch = names.slice(0, this.#stores[1].capabilities.maxBatch).map((name) => this.#plan(name));
    const [reference, tested] = await Promise.all(
      this.#stores.map((store, side) =>
        applyAll(
          store,
          batch.map((planned) => this.#writeFor(planned, side)),
        ),
      ),
    );
    if (reference === undefined || tested === undefined) fail("both stores answer");
    for (const [index, planned] of batch.entries()) {
      this.#compare(planned, nth(reference, index), nth(tested, index));
    }
  }

  /** That both stores hold the same, read one by one and listed. */
  async end(): Promise<void> {
    const keys = NAMES.map((name) => this.#key(name));
    const [reference, tested] = await Promise.all(this.#stores.map((store) => readAll(store, keys)));
    if (reference === undefined || tested === undefined) fail("both stores answer");
    for (const [index] of keys.entries()) claimSameStored(nth(reference, index), nth(tested, index));
    for (const holder of HOLDERS) {
      const query = { tenant: this.#tenant, prefix: "", holder, limit: 10 };
      const expected = (await this.#stores[0].list(query)).records.map(nonceOf);
      await claimListing(this.#bench, this.#stores[1], { ...query, limit: 2 }, ({ records }) =>
        deepStrictEqual(records.map(nonceOf), expected, `the listing of holder ${holder}`),
      );
    }
  }

  #plan(name: string): PlannedWrite {
    const made = this.#writesOf.get(name) ?? [];
    const deletes = this.#stores[1].capabilities.conditionalDelete && this.#random() < 0.2;
    return { name, expected: this.#expectation(made), next: deletes ? null : this.#record(name) };
  }

  /** Mostly the latest version of the key, sometimes none, an older one, or another key's. */
  #expectation(made: readonly number[]): number | null {
    const dice = this.#random();
    if (dice < 0.25 || this.#versions.length === 0) return null;
    if (dice < 0.75) return made.at(-1) ?? null;
    if (dice < 0.9) return made[Math.floor(this.#random() * made.length)] ?? null;
    return Math.floor(this.#random() * this.#versions.length);
  }

  #record(name: string): LeaseRecord {
    return this.#bench.record(this.#key(name), {
      holder: nth(HOLDERS, Math.floor(this.#random() * HOLDERS.length)),
      generation: BigInt(Math.floor(this.#random() * 1_000)),
      state: this.#random() < 0.5 ? "held" : "released",
    });
  }

  #key(name: string): LeaseKey {
    return { tenant: this.#tenant, name };
  }

  #writeFor({ name, expected, next }: PlannedWrite, side: number): ConditionalWrite {
    const versions = expected === null ? null : this.#versions[expected];
    return { key: this.#key(name), expected: versions == null ? null : (versions[side] ?? null), next };
  }

  #compare(planned: PlannedWrite, reference: WriteResult, tested: WriteResult): void {
    ok(
      reference.kind === tested.kind,
      `a write of '${planned.name}' is ${describeResult(tested)}, by the contract ${describeResult(reference)}`,
    );
    if (reference.kind === "conflict" && tested.kind === "conflict") {
      claimSameStored(reference.current, tested.current);
    }
    if (reference.kind !== "applied" || tested.kind !== "applied" || planned.next === null) return;
    if (reference.version === null || tested.version === null) fail("an applied write has a version");
    this.#writesOf.set(planned.name, [...(this.#writesOf.get(planned.name) ?? []), this.#versions.length]);
    this.#versions.push([reference.version, tested.version]);
  }
}

function nonceOf(record: LeaseRecord): string {
  return record.nonce;
}

function claimSameStored(expected: StoredRecord, actual: StoredRecord): void {
  ok(
    expected.kind === actual.kind,
    `the store has ${describeStored(actual)}, by the contract ${describeStored(expected)}`,
  );
  if (expected.kind === "found" && actual.kind === "found") {
    claimSameRecord(actual.record, expected.record, "against the memory store");
  }
}

export const differentialCases: readonly BenchCase[] = [
  {
    title: "random histories end exactly as they do in memory",
    run: async (bench) => {
      const first = bench.subject.seed ?? Math.floor(bench.env.random() * 2 ** 31);
      const histories = bench.subject.seed === undefined ? bench.amount(10, 2) : 1;
      const store = await bench.open();
      for (let seed = first; seed < first + histories; seed += 1) {
        try {
          const history = new History(bench, store, seed);
          for (let step = 0; step < bench.amount(60, 15); step += 1) await history.step();
          await history.end();
        } catch (error) {
          const reason = error instanceof Error ? error.message : String(error);
          throw new Error(`seed ${seed}: ${reason}`, { cause: error });
        }
      }
    },
  },
];
