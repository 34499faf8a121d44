// Several names at once: all or none, in an order in which nobody waits for somebody who waits for them.
import { describe, expect, it } from "vitest";
import { LeaseHeldError, LeaseTimeoutError } from "../../../src/client/errors.ts";
import type { LeaseSet } from "../../../src/client/lease-set.ts";
import type { OpenWorld } from "./world.ts";

export function describeSeveral(open: OpenWorld): void {
  describe("several names at once", () => {
    it("are granted together, each with its fence, in the order of asking, and released together", async () => {
      const [mine, theirs] = await (await open()).clients("me", "them");
      const set = await mine.acquireAll(["b", "a", "c"], { ttl: "10s" });
      expect(set.leases.map(({ name }) => name)).toEqual(["b", "a", "c"]);
      expect(set.isHeld()).toBe(true);
      for (const name of ["a", "b", "c"]) expect((await theirs.tryAcquire(name)).ok).toBe(false);
      expect(await set.release()).toEqual([1, 2, 3].map(() => ({ released: true, reason: "released" })));
      for (const name of ["a", "b", "c"]) expect((await theirs.tryAcquire(name)).ok).toBe(true);
    });

    it("none is kept when one of them is taken, and the error names that one", async () => {
      const [mine, theirs] = await (await open()).clients("me", "them");
      await theirs.acquire("b");
      const failed = mine.acquireAll(["a", "b", "c"], { wait: 0 });
      await expect(failed).rejects.toThrow(LeaseHeldError);
      await expect(failed).rejects.toMatchObject({ key: { name: "b" }, holder: "them" });
      for (const name of ["a", "c"]) expect((await theirs.tryAcquire(name)).ok, name).toBe(true);
    });

    it("what comes after the one that is waited for is free for others meanwhile", async () => {
      const world = await open();
      const [mine, theirs] = await world.clients("me", "them");
      const taken = await theirs.acquire("b", { ttl: "1h" });
      const waiting = mine.acquireAll(["c", "b", "a"], { wait: "forever", ttl: "1h" });
      await world.advance(1_000);
      expect((await theirs.tryAcquire("a")).ok).toBe(false);
      const last = await theirs.tryAcquire("c");
      if (!last.ok) throw new Error("c should be free");
      await world.settled(taken.release());
      await world.advance(1_000);
      await world.settled(last.lease.release());
      const set = await world.settled(waiting);
      set.assertHeld();
    });

    it("two who name them in opposite orders are both served, again and again", async () => {
      const world = await open();
      const [one, two] = await world.clients("one", "two");
      const served: string[] = [];
      const take = async (who: string, leases: typeof one, names: readonly string[]): Promise<void> => {
        for (let round = 0; round < 5; round += 1) {
          const set = await leases.acquireAll(names, { wait: "forever", ttl: "10s" });
          set.assertHeld();
          served.push(who);
          await set.release();
        }
      };
      await world.settled(Promise.all([take("one", one, ["a", "b"]), take("two", two, ["b", "a"])]));
      expect(served.sort()).toEqual([...Array(5).fill("one"), ...Array(5).fill("two")]);
    });

    it("the signal aborts when one of them is lost, and the others are still to be released", async () => {
      const world = await open();
      const [mine, operator] = await world.clients("me", "operator");
      const set = await mine.acquireAll(["a", "b"], { ttl: "10s" });
      const { signal } = set;
      await operator.revoke("b");
      await world.until(() => signal.aborted);
      expect(signal.reason).toMatchObject({ code: "LEASE_LOST", key: { name: "b" } });
      expect(set.isHeld()).toBe(false);
      expect(() => set.assertHeld()).toThrow(/default\/b .* is over/);
      expect(set.leases[0]?.isHeld()).toBe(true);
      await set.release();
      expect((await operator.tryAcquire("a")).ok).toBe(true);
    });

    it("a wait that ends, or that its caller ends, leaves nothing behind", async () => {
      const world = await open();
      const [mine, theirs] = await world.clients("me", "them");
      await theirs.acquire("b", { ttl: "1h" });
      const late = mine.acquireAll(["a", "b"], { wait: "1s" });
      late.catch(() => undefined);
      await expect(world.settled(late)).rejects.toThrow(LeaseTimeoutError);
      const stop = new AbortController();
      const stopped = mine.acquireAll(["a", "b"], { wait: "forever", signal: stop.signal });
      stopped.catch(() => undefined);
      await world.advance(500);
      stop.abort(new Error("enough"));
      await expect(world.settled<LeaseSet>(stopped)).rejects.toThrow("enough");
      expect((await theirs.tryAcquire("a")).ok).toBe(true);
    });

    it("wrong input is refused, and nothing is kept", async () => {
      const leases = await (await open()).client("me");
      await expect(leases.acquireAll([])).rejects.toThrow(/takes 1 to 100 names, got 0/);
      await expect(leases.acquireAll(["a", "b", "a"])).rejects.toThrow(/was given "a" twice/);
      await expect(leases.acquireAll(["a", "$b"])).rejects.toThrow(/must not begin with '\$'/);
      await expect(leases.acquireAll("a" as unknown as string[])).rejects.toThrow(/must be an array/);
      for (const option of ["idempotencyKey", "approval", "holdAtLeast"]) {
        const asking = leases.acquireAll(["a"], { [option]: "1s" } as object);
        await expect(asking).rejects.toThrow(new RegExp(`no option '${option}'`));
      }
      expect((await leases.tryAcquire("a")).ok).toBe(true);
    });
  });
}
