/**
 * The kit's entry. `storeConformanceCases` gives plain async cases for any runner; `describeStore` hands
 * them to one that has `describe` and `it` (vitest, jest, mocha, node:test).
 */

import { clockCases } from "./clock-cases.ts";
import { closedPeriodCases } from "./closed-period-cases.ts";
import { contentCases } from "./content-cases.ts";
import { differentialCases } from "./differential-cases.ts";
import { failureCases } from "./failure-cases.ts";
import { keyCases } from "./key-cases.ts";
import { leaseCases } from "./lease-cases.ts";
import { listCases } from "./list-cases.ts";
import { processCases } from "./process-cases.ts";
import { raceCases } from "./race-cases.ts";
import { type BenchCase, StoreBench } from "./store-fixture.ts";
import type { StoreCase, StoreSubject } from "./store-under-test.ts";
import { timeCases } from "./time-cases.ts";
import { watchCases } from "./watch-cases.ts";
import { writeCases } from "./write-cases.ts";

const STORE_CASES: readonly BenchCase[] = [
  ...writeCases,
  ...contentCases,
  ...keyCases,
  ...timeCases,
  ...listCases,
  ...watchCases,
  ...raceCases,
  ...failureCases,
  ...differentialCases,
];

/**
 * Every case of the contract. A case about something the store says it cannot do checks that it does not;
 * those that `needs` something are there when the subject offers it.
 */
export function storeConformanceCases(subject: StoreSubject): readonly StoreCase[] {
  return casesOn(subject, STORE_CASES);
}

/** What the contract is for: leases through the executor on this store. They take some seconds of real time. */
export function leaseConformanceCases(subject: StoreSubject): readonly StoreCase[] {
  return casesOn(subject, [...leaseCases, ...closedPeriodCases, ...clockCases, ...processCases]);
}

function casesOn(subject: StoreSubject, cases: readonly BenchCase[]): readonly StoreCase[] {
  const offered = cases.filter(({ needs }) => needs === undefined || subject[needs] !== undefined);
  return offered.map(({ title, run }) => ({
    title,
    run: async () => {
      const bench = new StoreBench(subject);
      try {
        await run(bench);
      } finally {
        await bench.dispose();
      }
    },
  }));
}

export interface TestApi {
  describe(title: string, body: () => void): unknown;
  it(title: string, run: () => Promise<void>): unknown;
}

/** `describeStore("redis", { open }, { describe, it })`. */
export function describeStore(name: string, subject: StoreSubject, api: TestApi): void {
  api.describe(`the store contract on ${name}`, () => {
    for (const { title, run } of storeConformanceCases(subject)) api.it(title, run);
  });
}

/** As `describeStore`, one level up. */
export function describeLeases(name: string, subject: StoreSubject, api: TestApi): void {
  api.describe(`leases on ${name}`, () => {
    for (const { title, run } of leaseConformanceCases(subject)) api.it(title, run);
  });
}
