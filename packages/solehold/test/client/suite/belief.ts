// What a holder believes, and when it stops: by its own clocks, at or before the end of the record.
import { describe, expect, it } from "vitest";
import { LeaseLostError } from "../../../src/client/errors.ts";
import type { Lease } from "../../../src/client/lease.ts";
import type { OpenWorld } from "./world.ts";

const TTL_MS = 10_000;
/** 1 % of the ttl and 2 ms. */
const MARGIN_MS = 102;

function countAborts(lease: Lease): { readonly count: number } {
  const seen = { count: 0 };
  lease.signal.addEventListener("abort", () => {
    seen.count += 1;
  });
  return seen;
}

export function describeBelief(open: OpenWorld): void {
  describe("what a holder believes", () => {
    it("ends a margin before the record does", async () => {
      const world = await open();
      const [mine, theirs] = await world.clients("me", "them");
      const lease = await mine.acquire("job", { ttl: TTL_MS, autoRenew: false });
      expect(lease.remaining()).toBe(TTL_MS - MARGIN_MS);
      await world.advance(TTL_MS - MARGIN_MS - 2);
      expect(lease.isHeld()).toBe(true);
      await world.advance(2);
      expect(lease.isHeld()).toBe(false);
      await world.advance(MARGIN_MS - 1);
      expect((await theirs.tryAcquire("job")).ok).toBe(false);
      await world.advance(1);
      expect((await theirs.tryAcquire("job")).ok).toBe(true);
    });

    it("is read from the clocks, not from a timer: right after a pause in which nothing could fire", async () => {
      const world = await open();
      const lease = await (await world.client("me")).acquire("job", { ttl: TTL_MS });
      world.env.pause(2 * TTL_MS);
      expect(lease.isHeld()).toBe(false);
      expect(() => lease.assertHeld()).toThrow(LeaseLostError);
      expect(lease.lossReason).toBe("expired");
      expect(lease.signal.aborted).toBe(true);
    });

    it("ends when the machine slept, although the monotonic clock stood still", async () => {
      const world = await open();
      const lease = await (await world.client("me")).acquire("job", { ttl: TTL_MS, autoRenew: false });
      world.env.suspend(TTL_MS);
      expect(() => lease.assertHeld()).toThrow(/expired/);
    });

    it("is not extended by a wall clock that is set back an hour", async () => {
      const world = await open();
      const lease = await (await world.client("me")).acquire("job", { ttl: TTL_MS, autoRenew: false });
      world.env.stepWall(-3_600_000);
      await world.advance(TTL_MS - MARGIN_MS);
      expect(lease.isHeld()).toBe(false);
    });

    it("is only shortened by a wall clock that is set forward", async () => {
      const world = await open();
      const lease = await (await world.client("me")).acquire("job", { ttl: TTL_MS, autoRenew: false });
      world.env.stepWall(4_000);
      expect(lease.remaining()).toBe(TTL_MS - MARGIN_MS - 4_000);
      world.env.stepWall(3_600_000);
      expect(lease.isHeld()).toBe(false);
    });
  });

  describe("the signal", () => {
    it("ends soon after waking up from a sleep beyond the lease, without anybody asking", async () => {
      const world = await open();
      const lease = await (await world.client("me")).acquire("job", { ttl: 60_000, autoRenew: false });
      const aborts = countAborts(lease);
      await world.advance(500);
      world.env.suspend(120_000);
      await world.advance(1_000);
      expect(aborts.count).toBe(1);
    });

    it("aborts once, before the record's end, and says that the time ran out", async () => {
      const world = await open();
      const lease = await (await world.client("me")).acquire("job", { ttl: TTL_MS, autoRenew: false });
      const aborts = countAborts(lease);
      await world.advance(TTL_MS - MARGIN_MS);
      expect(aborts.count).toBe(1);
      expect(lease.signal.reason).toBeInstanceOf(LeaseLostError);
      expect(lease.signal.reason).toMatchObject({
        reason: "expired",
        fence: lease.fence,
        code: "LEASE_LOST",
      });
      await world.advance(TTL_MS);
      expect(aborts.count).toBe(1);
    });

    it("aborts with the store's word at the next renewal: revoked", async () => {
      const world = await open();
      const [mine, operator] = await world.clients("me", "operator");
      const lease = await mine.acquire("job", { ttl: TTL_MS });
      await operator.revoke("job");
      await world.advance(TTL_MS / 2);
      expect(lease.signal.reason).toMatchObject({ reason: "revoked" });
      expect(lease.state).toBe("lost");
    });

    it("aborts on release, once, with that reason", async () => {
      const world = await open();
      const lease = await (await world.client("me")).acquire("job");
      const aborts = countAborts(lease);
      await lease.release();
      await lease.release();
      expect(aborts.count).toBe(1);
      expect(lease.signal.reason).toMatchObject({ reason: "released" });
      expect(lease.state).toBe("released");
    });
  });
}
