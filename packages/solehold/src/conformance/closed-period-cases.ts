/** A key that stays closed for a while after its lease: a minimum hold, and a delay after an expiry. */
import { ok } from "node:assert/strict";
import type { AcquireRequest } from "../executor/index.ts";
import {
  acquire,
  acquireInTheEnd,
  claimGranted,
  claimNotBefore,
  describeOutcome,
  executorOn,
  type Grant,
  shortTtlMs,
} from "./lease-fixture.ts";
import type { BenchCase, StoreBench } from "./store-fixture.ts";

export const closedPeriodCases: readonly BenchCase[] = [
  {
    title:
      "a key stays closed for its minimum hold, although it was released; a store without a clock refuses one",
    run: async (bench) => {
      const { one, two, ttlMs, clock } = await twoClients(bench);
      const request = requestOf(bench, { ttlMs, holdAtLeastMs: 2 * ttlMs });
      if (clock === "none") {
        const refused = await one.execute(request);
        const { decision } = refused.kind === "refused" ? refused : { decision: null };
        ok(
          decision?.kind === "refused" && decision.field === "holdAtLeastMs",
          `a minimum hold that cannot be kept was ${describeOutcome(refused)}`,
        );
        return;
      }
      const first = claimGranted(await one.execute(request), "the first holder");
      await one.execute(releaseOf(bench, first));
      await acquireInTheEnd(bench, two, "second", 30_000);
      claimNotBefore(bench, first, ttlMs);
    },
  },
  {
    title: "a key stays closed for its delay after an expiry, and not after a release",
    run: async (bench) => {
      const { one, two, ttlMs } = await twoClients(bench);
      const request = requestOf(bench, { ttlMs, lockDelayMs: ttlMs });
      const first = claimGranted(await one.execute(request), "the first holder");
      const second = await acquireInTheEnd(bench, two, "second", 30_000);
      claimNotBefore(bench, first, ttlMs);
      await two.execute(releaseOf(bench, second));
      const third = claimGranted(
        await one.execute({ ...request, ttlMs: 60_000, lockDelayMs: 60_000 }),
        "the third",
      );
      await one.execute(releaseOf(bench, third));
      claimGranted(await acquire(bench, two, "fourth", 30_000), "the one after a release");
    },
  },
];

async function twoClients(bench: StoreBench) {
  const store = await bench.open();
  const [one, two] = [executorOn(bench, store), executorOn(bench, await bench.openSecond(store))];
  return { one, two, ttlMs: shortTtlMs(store), clock: store.capabilities.clock };
}

function requestOf(bench: StoreBench, terms: Partial<AcquireRequest>): AcquireRequest {
  return { op: "acquire", key: bench.key("lease"), holder: "closing", ...terms };
}

function releaseOf(bench: StoreBench, { lease, token }: Grant) {
  return { op: "release", key: bench.key("lease"), holder: lease.holder, token } as const;
}
