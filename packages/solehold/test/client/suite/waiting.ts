// Waiting for a lease, and acting under it: in order, without ghosts, one at a time.
import { describe, expect, it } from "vitest";
import { LeaseHeldError, LeaseTimeoutError } from "../../../src/client/errors.ts";
import type { Lease } from "../../../src/client/lease.ts";
import { expectGrowing, type OpenWorld } from "./world.ts";

export function describeWaiting(open: OpenWorld): void {
  describe("acquire with a wait", () => {
    it("gives up after its wait with an error that is also a LeaseHeldError", async () => {
      const world = await open();
      const [mine, theirs] = await world.clients("me", "them");
      await mine.acquire("job", { ttl: "60s" });
      const failure = world.settled(theirs.acquire("job", { wait: "5s" }));
      await expect(failure).rejects.toBeInstanceOf(LeaseTimeoutError);
      await expect(failure).rejects.toBeInstanceOf(LeaseHeldError);
      await expect(failure).rejects.toMatchObject({
        code: "LEASE_TIMEOUT",
        reason: "LEASE_HELD_BY_OTHER",
        holder: "me",
        waitedMs: 5_000,
      });
    });

    it("gets the lease when it is released, without letting time pass", async () => {
      const world = await open();
      const [holder, waiter] = await world.clients("holder", "waiter");
      const lease = await holder.acquire("job", { ttl: "60s", autoRenew: false });
      const waiting = waiter.acquire("job", { wait: "30s" });
      await world.advance(500);
      const beforeMs = world.env.monotonicMs();
      await lease.release();
      const got = await world.settled(waiting);
      expect(got.fence).toBeGreaterThan(lease.fence);
      expect(world.env.monotonicMs() - beforeMs).toBeLessThanOrEqual(50);
    });

    it("takes over right after the end of a lease whose holder died", async () => {
      const world = await open();
      const [dead, heir] = await world.clients("dead", "heir");
      await dead.acquire("job", { ttl: "5s", autoRenew: false });
      const waiting = heir.acquire("job", { wait: "30s" });
      await world.advance(5_100);
      const lease = await waiting;
      expect(lease.resumeFromLedgerRequired).toBe(true);
      await lease.resumed();
      expect(await heir.inspect("job")).toMatchObject({ resumeRequired: false, live: true });
    });

    it("serves the waiters of a process in the order in which they came", async () => {
      const world = await open();
      const [holder, waiter] = await world.clients("holder", "waiter");
      const first = await holder.acquire("job", { ttl: "60s" });
      const order: number[] = [];
      const waiting = [0, 1, 2, 3, 4].map(async (index) => {
        const lease = await waiter.acquire("job", { wait: "60s" });
        order.push(index);
        await lease.release();
      });
      await world.advance(100);
      await first.release();
      await world.settled(Promise.all(waiting));
      expect(order).toEqual([0, 1, 2, 3, 4]);
    });

    it("does not let a newcomer pass those who already wait", async () => {
      const world = await open();
      const [holder, waiter] = await world.clients("holder", "waiter");
      const lease = await holder.acquire("job", { ttl: "60s" });
      const order: string[] = [];
      const wait = async (name: string): Promise<void> => {
        const got = await waiter.acquire("job", { wait: "60s" });
        order.push(name);
        await got.release();
      };
      const first = wait("first");
      await world.advance(100);
      const releasing = lease.release();
      const newcomer = wait("newcomer");
      await world.settled(Promise.all([first, newcomer, releasing]));
      expect(order).toEqual(["first", "newcomer"]);
    });

    it.each(["head", "middle", "tail"] as const)(
      "is not held up by a %s waiter that gave up",
      async (which) => {
        const world = await open();
        const [holder, waiter] = await world.clients("holder", "waiter");
        const lease = await holder.acquire("job", { ttl: "60s" });
        const gaveUp = { head: 0, middle: 1, tail: 2 }[which];
        const controller = new AbortController();
        const served: number[] = [];
        const waiting = [0, 1, 2].map(async (index) => {
          const signal = index === gaveUp ? controller.signal : new AbortController().signal;
          const got = await waiter.acquire("job", { wait: "60s", signal });
          served.push(index);
          await got.release();
        });
        const settled = Promise.allSettled(waiting);
        await world.advance(100);
        controller.abort(new Error("changed my mind"));
        await world.advance(100);
        await lease.release();
        const beforeMs = world.env.monotonicMs();
        const results = await world.settled(settled);
        expect(world.env.monotonicMs() - beforeMs).toBeLessThanOrEqual(50);
        expect(results[gaveUp]).toMatchObject({ status: "rejected", reason: { message: "changed my mind" } });
        expect(served).toEqual([0, 1, 2].filter((index) => index !== gaveUp));
      },
    );

    it("that was aborted before it began asks for nothing", async () => {
      const leases = await (await open()).client("me");
      const signal = AbortSignal.abort(new Error("too early"));
      await expect(leases.acquire("job", { signal })).rejects.toThrow("too early");
      expect(await leases.inspect("job")).toBeNull();
    });

    it("that was aborted just when it was granted leaves nothing behind", async () => {
      const world = await open();
      const [mine, theirs] = await world.clients("me", "them");
      const controller = new AbortController();
      const acquiring = mine.acquire("job", { wait: "10s", signal: controller.signal });
      controller.abort(new Error("too late"));
      await expect(acquiring).rejects.toThrow("too late");
      await world.advance(50);
      expect((await theirs.tryAcquire("job")).ok).toBe(true);
    });

    it("of a key that this process already holds waits for itself instead of believing twice", async () => {
      const world = await open();
      const leases = await world.client("me");
      const first = await leases.acquire("job");
      const second = leases.acquire("job", { wait: "60s" });
      await world.advance(1_000);
      first.assertHeld();
      await first.release();
      expect((await world.settled(second)).fence).toBeGreaterThan(first.fence);
    });

    it("refuses at once what can never be granted, although somebody else has it", async () => {
      const world = await open();
      const [mine, theirs] = await world.clients("me", "them");
      await mine.acquire("job", { ttl: "60s" });
      await expect(theirs.acquire("job", { ttl: "2h", wait: "forever" })).rejects.toMatchObject({
        name: "LeaseRefusedError",
        field: "ttlMs",
      });
      await expect(theirs.acquire("job", { wait: "soon" as never })).rejects.toThrow(/^wait must be/);
    });
  });

  describe("run", () => {
    it("returns the work's result and releases after it", async () => {
      const leases = await (await open()).client("me");
      let during: string | undefined;
      const result = await leases.run("job", { ttl: "10s" }, async (lease) => {
        during = (await leases.inspect("job"))?.state;
        return lease.name;
      });
      expect([result, during]).toEqual(["job", "held"]);
      expect(await leases.inspect("job")).toMatchObject({ state: "released" });
    });

    it("passes on the work's error, and releases", async () => {
      const leases = await (await open()).client("me");
      const running = leases.run("job", { ttl: "10s" }, () => {
        throw new Error("the work failed");
      });
      await expect(running).rejects.toThrow("the work failed");
      expect(await leases.inspect("job")).toMatchObject({ state: "released" });
    });

    it("has only one at work, ever", async () => {
      const world = await open();
      const everybody = await world.clients("a", "b", "c", "d", "e");
      let atWork = 0;
      let most = 0;
      const work = async (): Promise<void> => {
        atWork += 1;
        most = Math.max(most, atWork);
        await new Promise((resolve) => world.env.timer(20, () => resolve(null)));
        atWork -= 1;
      };
      await world.settled(Promise.all(everybody.map((leases) => leases.run("job", { wait: "5m" }, work))));
      expect(most).toBe(1);
      expect(await everybody[0]?.inspect("job")).toMatchObject({ state: "released" });
    });
  });

  describe("elect", () => {
    it("yields term after term with growing fences, and stops with its signal", async () => {
      const world = await open();
      const leases = await world.client("me");
      const controller = new AbortController();
      const fences: bigint[] = [];
      const campaign = (async () => {
        for await (const term of leases.elect("scheduler", { ttl: "10s", signal: controller.signal })) {
          fences.push(term.fence);
          if (fences.length === 3) controller.abort();
        }
      })();
      await world.settled(campaign);
      expectGrowing(fences);
      expect(await leases.inspect("scheduler")).toMatchObject({ state: "released" });
    });

    it("stands again after a term was lost", async () => {
      const world = await open();
      const [leases, operator] = await world.clients("me", "operator");
      const fences: bigint[] = [];
      const campaign = (async () => {
        for await (const term of leases.elect("scheduler", { ttl: "10s" })) {
          fences.push(term.fence);
          if (fences.length === 2) break;
          await new Promise((resolve) => term.signal.addEventListener("abort", resolve, { once: true }));
        }
      })();
      await world.advance(100);
      await operator.revoke("scheduler");
      await world.settled(campaign);
      expect(fences).toHaveLength(2);
      expectGrowing(fences);
    });

    it("ends quietly when it is aborted while another leads", async () => {
      const world = await open();
      const [leader, candidate] = await world.clients("leader", "candidate");
      await leader.acquire("scheduler", { ttl: "60s" });
      const controller = new AbortController();
      const terms: Lease[] = [];
      const campaign = (async () => {
        for await (const term of candidate.elect("scheduler", { signal: controller.signal }))
          terms.push(term);
      })();
      await world.advance(100);
      controller.abort();
      await world.settled(campaign);
      expect(terms).toEqual([]);
    });
  });
}
