/**
 * A store's clock that jumps: somebody set it, or it failed over to a machine with another one. Clients that
 * knew the time before must not be fooled. (One that comes after the jump cannot know of it: that is what
 * the fence is for.)
 */
import { ok } from "node:assert/strict";
import type { StoreExecutor } from "../executor/index.ts";
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

const TEN_MINUTES_MS = 600_000;

interface Contest {
  readonly holder: StoreExecutor;
  readonly contender: StoreExecutor;
  readonly first: Grant;
  readonly ttlMs: number;
}

/** A holder, a contender who was refused, and then the jump. */
async function contestOver(bench: StoreBench, jumpMs: number): Promise<Contest> {
  const store = await bench.open();
  const holder = executorOn(bench, store);
  const contender = executorOn(bench, await bench.openSecond(store));
  const ttlMs = shortTtlMs(store);
  const first = claimGranted(await acquire(bench, holder, "first", ttlMs), "the first holder");
  const early = await acquire(bench, contender, "second", 30_000);
  ok(early.kind === "refused", `while the lease was alive another was ${describeOutcome(early)}`);
  await bench.jumpClock(jumpMs);
  return { holder, contender, first, ttlMs };
}

async function claimNextInTime(bench: StoreBench, contest: Contest, last: Grant): Promise<void> {
  const next = await acquireInTheEnd(bench, contest.contender, "second", 30_000);
  claimNotBefore(bench, last);
  ok(next.fence > last.fence, `fence ${next.fence} follows ${last.fence}`);
}

export const clockCases: readonly BenchCase[] = [
  {
    title: "a store clock that jumps ten minutes ahead ends no lease, neither for its holder nor for others",
    needs: "jumpClock",
    run: async (bench) => {
      const contest = await contestOver(bench, TEN_MINUTES_MS);
      const { holder, contender, first, ttlMs } = contest;
      const late = await acquire(bench, contender, "second", 30_000);
      ok(late.kind === "refused", `although the lease was alive another was ${describeOutcome(late)}`);
      const request = { key: bench.key("lease"), holder: "first", token: first.token, ttlMs };
      const renewed = claimGranted(
        await holder.execute({ ...request, op: "renew" }),
        "the renewal after the jump",
      );
      ok(renewed.fence === first.fence, `the renewal has fence ${renewed.fence}, not ${first.fence}`);
      await claimNextInTime(bench, contest, renewed);
    },
  },
  {
    title: "a store clock that jumps ten minutes back prolongs no lease",
    needs: "jumpClock",
    run: async (bench) => {
      const contest = await contestOver(bench, -TEN_MINUTES_MS);
      await claimNextInTime(bench, contest, contest.first);
    },
  },
];
