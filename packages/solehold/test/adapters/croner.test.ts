/** croner with a callback that runs once per due time. */
import { Cron } from "croner";
import { expect, it } from "vitest";
import { oncePerRun } from "../../src/adapters/croner.ts";
import type { OncePerResult } from "../../src/index.ts";
import { clientWorld } from "../client/helpers.ts";

/** Fired by hand: due on the first of January, so the period is what is left of the year. */
const YEARLY = "0 0 1 1 *";

it("runs once for a due time, whichever replica fires first, and again at the next", async () => {
  const { env, leases, other } = clientWorld();
  const outcomes: OncePerResult<string>[] = [];
  const options = {
    name: "reports/yearly",
    onOutcome: (each: OncePerResult<string>) => void outcomes.push(each),
  };
  const replicas = [leases, other("other")].map(
    (each) =>
      new Cron(
        YEARLY,
        { paused: true },
        oncePerRun(each, options, async () => "written"),
      ),
  );
  for (const replica of replicas) await replica.trigger();
  expect(outcomes).toMatchObject([
    { ran: true, result: "written" },
    { ran: false, reason: "LEASE_LOCK_DELAY" },
  ]);
  // The pattern says for how long it stays closed.
  const [first] = replicas;
  const leftMs = Number(outcomes[1]?.ran === false ? outcomes[1].retryAfterMs : 0);
  expect(leftMs / (first?.msToNext() ?? 0)).toBeCloseTo(0.9, 2);
  await env.advance(leftMs);
  await first?.trigger();
  expect(outcomes[2]).toMatchObject({ ran: true });
  for (const replica of replicas) replica.stop();
});

it("gives the work its lease, whose signal aborts when it is lost", async () => {
  const { leases, other } = clientWorld();
  let aborted = false;
  const work = oncePerRun(leases, { name: "job" }, async (lease) => {
    const { signal } = lease;
    await other("operator").revoke("job");
    await lease.renew().catch(() => undefined);
    aborted = signal.aborted;
  });
  const job = new Cron(YEARLY, { paused: true }, work);
  await job.trigger();
  expect(aborted).toBe(true);
  job.stop();
});

it("asks for the period of a job that has no next run", async () => {
  const { leases } = clientWorld();
  const past = new Cron("2020-01-01T00:00:00");
  await expect(oncePerRun(leases, { name: "job" }, async () => undefined)(past)).rejects.toThrow(
    /set period/,
  );
  await oncePerRun(leases, { name: "job", period: "1h" }, async () => undefined)(past);
  expect(() => oncePerRun(leases, { name: "" }, async () => undefined)).toThrow(/name must be/);
});
