import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Renewable, RenewalSchedule } from "../../src/client/renewal-schedule.ts";
import { ManualEnv } from "../../src/env/index.ts";

/** Leases that are renewed by a schedule, each with what shall happen when it is. */
function leasesOf(count: number): {
  env: ManualEnv;
  schedule: RenewalSchedule;
  leases: Renewable[];
  renewals: number[];
  onRenewal: (action: (lease: number) => void) => void;
} {
  const env = new ManualEnv({ monotonicMs: 1_000 });
  const schedule = new RenewalSchedule(env);
  const renewals = Array.from({ length: count }, () => 0);
  let action: (lease: number) => void = () => undefined;
  const leases = renewals.map((_, lease) => ({
    renewNow: () => {
      renewals[lease] = (renewals[lease] ?? 0) + 1;
      action(lease);
    },
  }));
  const onRenewal = (next: (lease: number) => void): void => {
    action = next;
  };
  return { env, schedule, leases, renewals, onRenewal };
}

const FAR_MS = 60_000;
const step = fc.record({
  lease: fc.nat(4),
  action: fc.constantFrom("plan", "cancel"),
  inMs: fc.integer({ min: 1, max: 400 }),
  passMs: fc.integer({ min: 0, max: 60 }),
});

describe("the schedule of renewals", () => {
  it("renews each lease once for its last plan, unless that was cancelled", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const { env, schedule, leases, renewals } = leasesOf(5);
        const planned = new Map<number, number>();
        for (const { lease, action, inMs, passMs } of steps) {
          const renewable = leases[lease];
          if (renewable === undefined) continue;
          const before = renewals[lease];
          if (action === "plan") {
            schedule.plan(renewable, env.monotonicMs(), inMs);
            planned.set(lease, env.monotonicMs() + inMs);
          } else {
            schedule.cancel(renewable);
            planned.delete(lease);
          }
          expect(renewals[lease]).toBe(before);
          const expected = [...renewals];
          await env.advance(passMs);
          for (const [each, dueMs] of planned) {
            const renewed = (renewals[each] ?? 0) - (expected[each] ?? 0);
            expect(renewed).toBeLessThanOrEqual(1);
            // Never late; early by less than the grid.
            if (dueMs <= env.monotonicMs()) expect(renewed).toBe(1);
            if (renewed === 1) {
              expect(dueMs - env.monotonicMs()).toBeLessThan(25);
              planned.delete(each);
              expected[each] = renewals[each] ?? 0;
            }
          }
          expect(renewals).toEqual(expected);
        }
        const expected = renewals.map((count, lease) => count + (planned.has(lease) ? 1 : 0));
        await env.advance(FAR_MS);
        expect(renewals).toEqual(expected);
        expect(env.pendingTimers).toBe(0);
      }),
    );
  });

  it("keeps a lease that is planned anew for the instant at which others are being renewed", async () => {
    const { env, schedule, leases, renewals, onRenewal } = leasesOf(2);
    onRenewal((lease) => {
      const renewable = leases[lease];
      // The clock stands still while callbacks run: this falls due at the very instant that is served.
      if (renewable !== undefined && renewals[lease] === 1)
        schedule.plan(renewable, env.monotonicMs() - 1, 1);
    });
    for (const each of leases) schedule.plan(each, env.monotonicMs(), 5);
    await env.advance(FAR_MS);
    expect(renewals).toEqual([2, 2]);
  });

  it("brings nobody back when a lease is cancelled once more", async () => {
    const { env, schedule, leases, renewals } = leasesOf(3);
    for (const each of leases) schedule.plan(each, env.monotonicMs(), 5);
    for (const lease of [0, 1, 0]) schedule.cancel(leases[lease] as Renewable);
    await env.advance(FAR_MS);
    expect(renewals).toEqual([0, 0, 1]);
  });

  it("leaves out a lease that is cancelled while others of its instant are being renewed", async () => {
    const { env, schedule, leases, renewals, onRenewal } = leasesOf(3);
    onRenewal(() => {
      for (const each of leases) schedule.cancel(each);
    });
    for (const each of leases) schedule.plan(each, env.monotonicMs(), 5);
    await env.advance(FAR_MS);
    expect(renewals.reduce((sum, count) => sum + count, 0)).toBe(1);
  });
});
