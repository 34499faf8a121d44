// A name that several may hold at a time: as many slots as were asked for, each a lease with a fence of its own.
import { describe, expect, it } from "vitest";
import { LeaseHeldError, LeaseTimeoutError } from "../../../src/client/errors.ts";
import type { Lease } from "../../../src/client/lease.ts";
import { expectGrowing, type OpenWorld } from "./world.ts";

const slotsOf = (leases: readonly Lease[]): readonly number[] => leases.map(({ slot }) => slot).sort();

export function describeSlots(open: OpenWorld): void {
  describe("slots", () => {
    it("as many hold the name as it has slots, also in one process, and one more is denied", async () => {
      const world = await open();
      const [mine, theirs] = await world.clients("me", "them");
      const held = [
        await mine.acquire("gpu", { slots: 3, ttl: "10s" }),
        await mine.acquire("gpu", { slots: 3, ttl: "20s" }),
        await theirs.acquire("gpu", { slots: 3, ttl: "30s" }),
      ];
      expect(slotsOf(held)).toEqual([0, 1, 2]);
      expect(new Set(held.map(({ name }) => name))).toEqual(new Set(["gpu", "gpu#slot/1", "gpu#slot/2"]));
      for (const lease of held) lease.assertHeld();
      // The denial names the one that ends first.
      expect(await theirs.tryAcquire("gpu", { slots: 3 })).toMatchObject({
        ok: false,
        reason: "LEASE_HELD_BY_OTHER",
        holder: "me",
        retryAfterMs: 10_000,
      });
      await expect(theirs.acquire("gpu", { slots: 3, wait: 0 })).rejects.toThrow(LeaseHeldError);
    });

    it("a slot's fence grows with each of its grants", async () => {
      const world = await open();
      const [mine, theirs] = await world.clients("me", "them");
      await mine.acquire("gpu", { slots: 2 });
      const fences: bigint[] = [];
      for (let round = 0; round < 3; round += 1) {
        const lease = await (round % 2 === 0 ? mine : theirs).acquire("gpu", { slots: 2 });
        fences.push(lease.fence);
        await lease.release();
      }
      expectGrowing(fences);
    });

    it("waiters are served in their order, whichever slot becomes free", async () => {
      const world = await open();
      const [holders, first, second] = await world.clients("holders", "first", "second");
      const one = await holders.acquire("gpu", { slots: 2, ttl: "1h" });
      const two = await holders.acquire("gpu", { slots: 2, ttl: "1h" });
      const served: string[] = [];
      const wait = async (name: string, leases: typeof first): Promise<Lease> => {
        const lease = await leases.acquire("gpu", { slots: 2, wait: "forever", ttl: "1h" });
        served.push(`${name} ${lease.slot}`);
        return lease;
      };
      const waiting = [wait("first", first)];
      await world.advance(500);
      waiting.push(wait("second", second));
      await world.advance(500);
      expect(served).toEqual([]);
      await world.settled(two.release());
      await world.until(() => served.length === 1);
      await world.settled(one.release());
      await world.until(() => served.length === 2);
      expect(served).toEqual([`first ${two.slot}`, `second ${one.slot}`]);
      await world.settled(Promise.all(waiting));
    });

    it("a waiter gets the slot whose holder's time has run out", async () => {
      const world = await open();
      const [gone, stays, waiter] = await world.clients("gone", "stays", "waiter");
      const over = await gone.acquire("gpu", { slots: 2, ttl: "5s", autoRenew: false });
      await stays.acquire("gpu", { slots: 2, ttl: "1h", autoRenew: false });
      const lease = await world.settled(waiter.acquire("gpu", { slots: 2, wait: "20s" }));
      expect(lease.slot).toBe(over.slot);
      expect(over.isHeld()).toBe(false);
    });

    it("a wait that ends says so, and leaves the slots to the others", async () => {
      const world = await open();
      const [holders, waiter] = await world.clients("holders", "waiter");
      await holders.acquire("gpu", { slots: 2, ttl: "1h" });
      const one = await holders.acquire("gpu", { slots: 2, ttl: "1h" });
      const waiting = waiter.acquire("gpu", { slots: 2, wait: "1s" });
      waiting.catch(() => undefined);
      await expect(world.settled(waiting)).rejects.toThrow(LeaseTimeoutError);
      await world.settled(one.release());
      expect((await waiter.tryAcquire("gpu", { slots: 2 })).ok).toBe(true);
    });

    it("who asks for the name alone has the first slot, and waits for that one", async () => {
      const world = await open();
      const [plain, sharing] = await world.clients("plain", "sharing");
      const lease = await plain.acquire("gpu", { ttl: "1h" });
      expect(lease.slot).toBe(0);
      expect((await sharing.acquire("gpu", { slots: 2 })).slot).toBe(1);
      expect((await sharing.tryAcquire("gpu", { slots: 2 })).ok).toBe(false);
    });

    it("fewer slots drain: those beyond stay with their holders, and nobody gets them after", async () => {
      const world = await open();
      const [before, after] = await world.clients("before", "after");
      const held: Lease[] = [];
      for (let slot = 0; slot < 3; slot += 1) held.push(await before.acquire("gpu", { slots: 3, ttl: "1h" }));
      const waiting = after.acquire("gpu", { slots: 1, wait: "forever" });
      let has: Lease | null = null;
      void waiting.then((lease) => {
        has = lease;
      });
      await world.advance(500);
      for (const lease of held.filter(({ slot }) => slot > 0)) await world.settled(lease.release());
      await world.advance(3_000);
      expect(has).toBe(null);
      for (const lease of held) await world.settled(lease.release());
      expect((await world.settled(waiting)).slot).toBe(0);
    });

    it("more slots add: who asks for more gets one beyond those that are taken", async () => {
      const [before, after] = await (await open()).clients("before", "after");
      await before.acquire("gpu", { slots: 2 });
      await before.acquire("gpu", { slots: 2 });
      expect((await after.acquire("gpu", { slots: 3 })).slot).toBe(2);
    });

    it("an operator sees and ends a single slot by its name", async () => {
      const world = await open();
      const [mine, operator] = await world.clients("me", "operator");
      await mine.acquire("gpu", { slots: 2, ttl: "1h" });
      await mine.acquire("gpu", { slots: 2, ttl: "1h" });
      const seen: string[] = [];
      for await (const { key, live } of operator.list({ prefix: "gpu" })) seen.push(`${key.name} ${live}`);
      expect(seen).toEqual(["gpu true", "gpu#slot/1 true"]);
      expect(await operator.inspect("gpu#slot/1")).toMatchObject({ holder: "me", live: true });
      await operator.revoke("gpu#slot/1");
      expect(await operator.inspect("gpu#slot/1")).toMatchObject({ state: "revoked" });
      expect(await operator.inspect("gpu")).toMatchObject({ live: true });
    });

    it("the same idempotency key finds the same slot", async () => {
      const [mine, again] = await (await open()).clients("me", "me");
      const options = { slots: 3, idempotencyKey: "request-1", ttl: "1h" } as const;
      const first = await mine.acquire("gpu", options);
      const second = await again.acquire("gpu", options);
      expect([second.slot, second.fence]).toEqual([first.slot, first.fence]);
    });

    it("wrong numbers and the names of slots are refused with what to do", async () => {
      const leases = await (await open()).client("me");
      for (const slots of [0, -1, 1.5, 257, Number.NaN]) {
        const refused = leases.acquire("gpu", { slots, wait: 0 });
        await expect(refused, String(slots)).rejects.toThrow(/^(body\.)?slots must be .*(got|integer)/);
      }
      await expect(leases.acquire("gpu#slot/1", { wait: 0 })).rejects.toThrow(
        /is slot 1 of 'gpu': acquire 'gpu' and say how many slots it has/,
      );
      const long = leases.acquire("x".repeat(250), { slots: 2, wait: 0 });
      await expect(long).rejects.toThrow(/name must have at most 249 characters where it has 2 slots/);
    });
  });
}
