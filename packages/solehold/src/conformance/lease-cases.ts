/**
 * What the contract is for: leases through the executor, on this store. One holder at a time by the store's
 * clock, fences that only grow, lost replies that cost nobody a lease.
 */
import { ok } from "node:assert/strict";
import { type LeaseKey, recordFence, slotIn } from "../core/index.ts";
import { delay } from "../env/index.ts";
import type { CommandOutcome } from "../executor/index.ts";
import { decorateStore, type LeaseStore } from "../store/index.ts";
import {
  acquire,
  acquireInTheEnd,
  claimGranted,
  claimNotBefore,
  describeOutcome,
  executorOn,
  PAUSE_MS,
  shortTtlMs,
} from "./lease-fixture.ts";
import { type BenchCase, nth, type StoreBench } from "./store-fixture.ts";
import type { FaultyClient } from "./store-under-test.ts";

const TEN_MINUTES_MS = 600_000;

export const leaseCases: readonly BenchCase[] = [
  {
    title: "a fence grows with every grant: over release, expiry and revoke, through either of two clients",
    run: async (bench) => {
      const store = await bench.open();
      const executors = [executorOn(bench, store), executorOn(bench, await bench.openSecond(store))];
      const key = bench.key("lease");
      const fences: bigint[] = [];
      for (let round = 0; round < bench.amount(2, 1); round += 1) {
        const [one, two] = [nth(executors, round % 2), nth(executors, (round + 1) % 2)];
        const released = await acquireInTheEnd(bench, one, "releaser", 30_000);
        await one.execute({ op: "release", key, holder: "releaser", token: released.token });
        const expiring = await acquireInTheEnd(bench, two, "sleeper", shortTtlMs(store));
        const revoked = await acquireInTheEnd(bench, one, "revoked", shortTtlMs(store));
        await two.execute({ op: "revoke", key });
        const last = await acquireInTheEnd(bench, two, "last", 30_000);
        await two.execute({ op: "release", key, holder: "last", token: last.token });
        fences.push(released.fence, expiring.fence, revoked.fence, last.fence);
      }
      for (const [index, fence] of fences.entries()) {
        ok(index === 0 || fence > nth(fences, index - 1), `fence ${fence} follows ${fences[index - 1]}`);
      }
    },
  },
  {
    title: "of many acquires at once exactly one is granted, and the others learn who holds it",
    run: async (bench) => {
      const store = await bench.open();
      const executors = [executorOn(bench, store), executorOn(bench, await bench.openSecond(store))];
      const outcomes = await Promise.all(
        Array.from({ length: bench.amount(64, 16) }, (_, index) =>
          acquire(bench, nth(executors, index % 2), `racer-${index}`, 30_000),
        ),
      );
      const winners = outcomes.flatMap((outcome) =>
        outcome.kind === "applied" ? [outcome.decision.lease] : [],
      );
      ok(winners.length === 1, `${winners.length} of ${outcomes.length} racers were granted the lease`);
      for (const outcome of outcomes) {
        if (outcome.kind === "applied") continue;
        const named =
          outcome.kind === "refused" && outcome.decision.kind === "denied" && outcome.decision.heldBy;
        ok(
          named === nth(winners, 0).holder,
          `a loser got ${describeOutcome(outcome)}, holder ${String(named)}`,
        );
      }
    },
  },
  {
    title: "of many acquires at once of a name with three slots exactly three are granted, one for each slot",
    run: async (bench) => {
      const store = await bench.open();
      const executors = [executorOn(bench, store), executorOn(bench, await bench.openSecond(store))];
      const key = bench.key("shared");
      const outcomes = await Promise.all(
        Array.from({ length: bench.amount(24, 9) }, (_, index) =>
          nth(executors, index % 2).execute({
            op: "acquire",
            key,
            holder: `racer-${index}`,
            ttlMs: 30_000,
            slots: 3,
          }),
        ),
      );
      const granted = outcomes.flatMap((outcome) => (outcome.kind === "applied" ? [outcome] : []));
      const slots = granted.map(({ decision }) => slotIn(decision.lease.key.name).slot).sort();
      ok(slots.join() === "0,1,2", `the slots ${slots.join()} were granted`);
      const { decision, token } = nth(granted, 1);
      const { key: slot, holder } = decision.lease;
      await nth(executors, 0).execute({ op: "release", key: slot, holder, token });
      const again = await nth(executors, 1).execute({ op: "acquire", key, holder: "later", slots: 3 });
      const next = claimGranted(again, "the one after a release");
      ok(
        next.lease.key.name === slot.name,
        `after the release of ${slot.name}, ${next.lease.key.name} was granted`,
      );
      ok(next.fence > recordFence(decision.lease), "the fence of a slot grows with its next grant");
    },
  },
  {
    title: "clients whose wall clocks are ten minutes off wait for the store's clock like everyone else",
    run: async (bench) => {
      const store = await bench.open();
      const second = await bench.openSecond(store);
      const ahead = executorOn(bench, second, TEN_MINUTES_MS);
      const behind = executorOn(bench, store, -TEN_MINUTES_MS);
      for (const [holder, successor] of [
        [behind, ahead],
        [ahead, behind],
      ] as const) {
        const key = bench.key("lease");
        const first = claimGranted(
          await acquire(bench, holder, "first", shortTtlMs(store)),
          "the first holder",
        );
        const early = await acquire(bench, successor, "second", 30_000);
        ok(early.kind === "refused", `while the lease was alive another was ${describeOutcome(early)}`);
        const next = await acquireInTheEnd(bench, successor, "second", 30_000);
        ok(next.fence > first.fence, `fence ${next.fence} follows ${first.fence}`);
        claimNotBefore(bench, first);
        await successor.execute({ op: "release", key, holder: "second", token: next.token });
      }
    },
  },
  {
    title: "the same idempotency key gets the same grant again, from another client too",
    run: async (bench) => {
      const store = await bench.open();
      const executors = [executorOn(bench, store), executorOn(bench, await bench.openSecond(store))];
      const request = {
        key: bench.key("lease"),
        holder: "worker",
        ttlMs: 30_000,
        idempotencyKey: "attempt-1",
      };
      const first = claimGranted(
        await nth(executors, 0).execute({ ...request, op: "acquire" }),
        "the first request",
      );
      const repeat = async (when: string): Promise<void> => {
        const again = claimGranted(await nth(executors, 1).execute({ ...request, op: "acquire" }), when);
        ok(again.fence === first.fence, `${when} got fence ${again.fence}, not ${first.fence}`);
        ok(again.token === first.token, `${when} got another token`);
      };
      await repeat("its repetition");
      const renewal = { ...request, op: "renew", token: first.token, idempotencyKey: "renewal-1" } as const;
      claimGranted(await nth(executors, 0).execute(renewal), "a renewal with a key of its own");
      await repeat("its repetition after the renewal");
    },
  },
  {
    title: "an acquire whose reply was lost ends with its one grant",
    needs: "openFaulty",
    run: async (bench) => {
      await bench.open();
      const faulty = await bench.openFaulty();
      const disturbed = losingOneReply(faulty);
      const executor = executorOn(bench, disturbed.store);
      const before = claimGranted(await acquire(bench, executor, "worker", 30_000), "before the fault");
      await executor.execute({
        op: "release",
        key: bench.key("lease"),
        holder: "worker",
        token: before.token,
      });
      const acquireMute = async (): Promise<CommandOutcome> => {
        disturbed.arm();
        const outcome = await acquire(bench, executor, "worker", 30_000);
        // What was lost was the greeting of a new connection, say: the write was never sent.
        const isUnsent = outcome.kind === "unsettled" && outcome.outcome === "not-applied";
        return isUnsent ? acquireMute() : outcome;
      };
      const call = bench.inTime("the acquire", acquireMute());
      const after = claimGranted(await call, "the acquire whose reply was lost");
      const view = await executor.read(bench.key("lease"));
      ok(view?.holder === "worker" && view.live, "the store does not show the grant");
      const renewed = await executor.execute({
        op: "renew",
        key: bench.key("lease"),
        holder: "worker",
        token: after.token,
      });
      ok(renewed.kind === "applied", `its holder cannot renew it: ${describeOutcome(renewed)}`);
    },
  },
  {
    title: "a key whose record was collected starts above its old fence",
    run: async (bench) => {
      const store = await bench.open();
      const { conditionalDelete, clock } = store.capabilities;
      if (!conditionalDelete || clock === "none" || store.list === undefined) return;
      const retentionMs = shortTtlMs(store);
      const executor = executorOn(bench, store, 0, retentionMs);
      const first = claimGranted(await acquire(bench, executor, "worker", 30_000), "the first grant");
      await executor.execute({
        op: "release",
        key: bench.key("lease"),
        holder: "worker",
        token: first.token,
      });
      const collect = async (): Promise<void> => {
        while ((await executor.collect(bench.tenant)).deleted === 0) await delay(bench.env, PAUSE_MS);
      };
      await bench.inTime("the released lease was never collected", collect());
      ok((await executor.read(bench.key("lease"))) === null, "a collected record is still there");
      const other = executorOn(bench, await bench.openSecond(store));
      const next = claimGranted(await acquire(bench, other, "worker", 30_000), "the grant after collection");
      ok(next.fence > first.fence, `fence ${next.fence} follows ${first.fence}`);
    },
  },
  {
    title: "a key whose record was deleted by hand is granted with a higher fence than before",
    run: async (bench) => {
      const store = await bench.open();
      if (!store.capabilities.conditionalDelete) return;
      const key = bench.key("lease");
      let last = 0n;
      for (const round of ["first", "second", "third"]) {
        const executor = executorOn(bench, await bench.openSecond(store));
        const { fence } = claimGranted(await acquire(bench, executor, round, 30_000), `the ${round} grant`);
        ok(fence > last, `after a deletion fence ${fence} follows ${last}`);
        last = fence;
        const [found] = (await store.read([key])).records;
        ok(found?.kind === "found", "a granted lease has a record");
        await store.apply([{ key, expected: found.version, next: null }]);
        await clockMoved(bench, store, key);
      }
    },
  },
];

/** Fences by the clock are as fine as the clock: within one of its steps a deleted one may come again. */
async function clockMoved(bench: StoreBench, store: LeaseStore, key: LeaseKey): Promise<void> {
  const { clock, clockGranularityMs } = store.capabilities;
  if (clock === "none") return;
  const timeMs = async (): Promise<number> => (await store.read([key])).storeTimeMs ?? 0;
  const startMs = await timeMs();
  const moved = async (): Promise<void> => {
    while ((await timeMs()) - startMs < 2 * clockGranularityMs) await delay(bench.env, PAUSE_MS);
  };
  await bench.inTime("the store's clock stands still", moved());
}

/** Once armed, the reply of the next write is lost; the network comes back as soon as that write was given up. */
function losingOneReply({ store, loseReplies, heal }: FaultyClient): {
  readonly store: LeaseStore;
  arm(): void;
} {
  let armed = false;
  const apply: LeaseStore["apply"] = async (writes) => {
    if (!armed) return store.apply(writes);
    armed = false;
    await loseReplies();
    try {
      return await store.apply(writes);
    } finally {
      await heal();
    }
  };
  return {
    arm: () => {
      armed = true;
    },
    store: decorateStore(store, { apply }),
  };
}
