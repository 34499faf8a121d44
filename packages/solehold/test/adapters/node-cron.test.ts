/** node-cron with the coordinator over leases: two replicas, each on a Leases object of its own. */
import { schedule } from "node-cron";
import { expect, it } from "vitest";
import { runCoordinator } from "../../src/adapters/node-cron.ts";
import { clientWorld } from "../client/helpers.ts";
import { latch } from "./latch.ts";

it("runs each due time once, and the other replica skips it, even after the first is done", async () => {
  const { leases, other } = clientWorld();
  const runs: number[] = [];
  const skipped = latch();
  const replicas = [leases, other("other")].map((each) =>
    schedule("* * * * * *", ({ date }) => void runs.push(date.getTime()), {
      ...{ name: "reports/nightly", distributed: true, runCoordinator: runCoordinator(each) },
    }),
  );
  for (const replica of replicas) replica.on("execution:skipped", () => skipped.open());
  await skipped.opened;
  await Promise.all(replicas.map((replica) => replica.destroy()));
  expect(runs.length).toBeGreaterThan(0);
  expect(new Set(runs).size).toBe(runs.length);
});

it("holds the lease while the run takes, and releases it after", async () => {
  const { leases, env } = clientWorld();
  const coordinator = runCoordinator(leases, { ttl: "30s", holdAtLeast: 0 });
  expect(await coordinator.shouldRun("task:1")).toBe(true);
  await env.advance(120_000);
  expect((await leases.inspect("task:1"))?.live).toBe(true);
  await coordinator.onComplete("task:1");
  expect((await leases.inspect("task:1"))?.live).toBe(false);
});

it("refuses what is no Leases object", () => {
  expect(() => runCoordinator({} as never)).toThrow(/await connect\(url\)/);
});
