// Keeping a lease, giving it back, and passing it on.
import { describe, expect, it } from "vitest";
import { LeaseLostError } from "../../../src/client/errors.ts";
import { formatFence } from "../../../src/core/index.ts";
import type { OpenWorld } from "./world.ts";

const TTL_MS = 10_000;

export function describeHolding(open: OpenWorld): void {
  describe("renewal", () => {
    it("keeps the lease with the same fence for as long as it is held", async () => {
      const world = await open();
      const [mine, theirs] = await world.clients("me", "them");
      const lease = await mine.acquire("job", { ttl: 3_000 });
      const { fence } = lease;
      await world.advance(30_000);
      lease.assertHeld();
      expect(lease.fence).toBe(fence);
      const seen = await theirs.inspect("job");
      expect(seen).toMatchObject({ holder: "me", live: true, fence });
      expect(seen?.renewals).toBeGreaterThan(20);
      expect(seen?.expiresAtMs).toBe(lease.expiresAtMs);
    });

    it("by hand prolongs it from now, and throws once it is over", async () => {
      const world = await open();
      const lease = await (await world.client("me")).acquire("job", { ttl: TTL_MS, autoRenew: false });
      await world.advance(4_000);
      const before = lease.expiresAtMs;
      expect(await lease.renew()).toBe(true);
      expect(lease.expiresAtMs).toBe(before + 4_000);
      await world.advance(TTL_MS);
      await expect(lease.renew()).rejects.toBeInstanceOf(LeaseLostError);
    });

    it("by hand of a revoked lease throws with that reason", async () => {
      const world = await open();
      const [mine, operator] = await world.clients("me", "operator");
      const lease = await mine.acquire("job", { ttl: TTL_MS, autoRenew: false });
      await operator.revoke("job");
      await expect(lease.renew()).rejects.toMatchObject({ name: "LeaseLostError", reason: "revoked" });
    });

    it("stops when the probe of the work fails, and goes on when it recovers in time", async () => {
      const world = await open();
      let alive = true;
      const leases = await world.client("me");
      const lease = await leases.acquire("job", { ttl: TTL_MS, probe: () => alive });
      alive = false;
      await world.advance(TTL_MS * 0.5);
      expect(lease.state).toBe("jeopardy");
      alive = true;
      await world.advance(TTL_MS * 0.3);
      expect(lease.state).toBe("held");
      alive = false;
      await world.advance(2 * TTL_MS);
      expect(lease.state).toBe("lost");
      expect(lease.lossReason).toBe("expired");
    });

    it("that nobody can prolong any more under a break keeps the lease to its end, then says revoked", async () => {
      const world = await open();
      const [mine, operator, theirs] = await world.clients("me", "operator", "them");
      const lease = await mine.acquire("job", { ttl: TTL_MS });
      await operator.break("job", { period: "1s" });
      await world.advance(TTL_MS / 2);
      expect(lease.state).toBe("jeopardy");
      await world.advance(TTL_MS / 2);
      expect(lease.lossReason).toBe("revoked");
      expect((await theirs.tryAcquire("job")).ok).toBe(true);
    });
  });

  describe("release", () => {
    it("says so, again too, and frees the key", async () => {
      const [mine, theirs] = await (await open()).clients("me", "them");
      const lease = await mine.acquire("job", { ttl: TTL_MS });
      expect(await lease.release()).toEqual({ released: true, reason: "released" });
      expect(await lease.release()).toEqual({ released: true, reason: "released" });
      expect((await theirs.tryAcquire("job")).ok).toBe(true);
    });

    it("after a takeover does not touch the newer lease", async () => {
      const world = await open();
      const [mine, theirs] = await world.clients("me", "them");
      const lease = await mine.acquire("job", { ttl: TTL_MS, autoRenew: false });
      await world.advance(TTL_MS);
      const newer = await theirs.acquire("job", { ttl: TTL_MS });
      expect(await lease.release()).toEqual({ released: false, reason: "already-gone" });
      newer.assertHeld();
      expect(await mine.inspect("job")).toMatchObject({ holder: "them", live: true });
    });

    it("happens at the end of a scope", async () => {
      const leases = await (await open()).client("me");
      {
        await using lease = await leases.acquire("job");
        lease.assertHeld();
      }
      expect(await leases.inspect("job")).toMatchObject({ state: "released" });
    });
  });

  describe("passing a lease on", () => {
    it("by handoff: the old holder stops first, only the successor may follow until the deadline", async () => {
      const world = await open();
      const [mine, theirs, heir] = await world.clients("me", "them", "heir");
      const lease = await mine.acquire("job", { ttl: TTL_MS });
      const handing = lease.handOff("heir", { withinMs: 5_000 });
      expect(lease.isHeld()).toBe(false);
      expect(await handing).toEqual({ released: true, reason: "released" });
      expect(await theirs.tryAcquire("job")).toMatchObject({
        ok: false,
        reason: "LEASE_HANDOFF_PENDING",
        holder: "heir",
        retryAfterMs: 5_000,
      });
      const heirs = await heir.acquire("job", { wait: 0 });
      expect(heirs.fence).toBeGreaterThan(lease.fence);
      expect(heirs.resumeFromLedgerRequired).toBe(true);
    });

    it("by handoff: after the deadline anybody may have it, and who waits gets it then", async () => {
      const world = await open();
      const [mine, theirs] = await world.clients("me", "them");
      const lease = await mine.acquire("job", { ttl: TTL_MS });
      await lease.handOff("heir", { withinMs: 5_000 });
      const waiting = theirs.acquire("job", { wait: "20s" });
      await world.advance(4_900);
      expect(await mine.inspect("job")).toMatchObject({ state: "released", handoff: { successor: "heir" } });
      await world.advance(200);
      expect((await waiting).fence).toBeGreaterThan(lease.fence);
    });

    it("by handoff: a deadline beyond the longest ttl, or no successor, is refused and ends nothing", async () => {
      const lease = await (await (await open()).client("me")).acquire("job", { ttl: TTL_MS });
      const tooLong = lease.handOff("heir", { withinMs: 3_600_001 });
      await expect(tooLong).rejects.toMatchObject({ name: "LeaseRefusedError", field: "withinMs" });
      const nobody = lease.handOff("", { withinMs: 1_000 });
      await expect(nobody).rejects.toMatchObject({ name: "LeaseRefusedError", field: "successor" });
      expect(await lease.renew()).toBe(true);
    });

    it("by transfer: one process stops, the other adopts the same grant with the same fence", async () => {
      const [mine, heir] = await (await open()).clients("me", "heir");
      const lease = await mine.acquire("job", { ttl: TTL_MS });
      const secret = lease.transfer();
      expect(lease.isHeld()).toBe(false);
      const adopted = await heir.adopt(secret);
      expect(adopted).toMatchObject({ fence: lease.fence, holder: "me", ttlMs: TTL_MS });
      await lease.release();
      adopted.assertHeld();
      expect(await adopted.renew()).toBe(true);
    });

    it("by transfer: what was released meanwhile cannot be adopted", async () => {
      const [mine, heir] = await (await open()).clients("me", "heir");
      const secret = (await mine.acquire("job", { ttl: TTL_MS })).transfer();
      await (await heir.adopt(secret)).release();
      await expect(heir.adopt(secret)).rejects.toMatchObject({ code: "LEASE_DENIED" });
      await expect(heir.adopt("hello")).rejects.toThrow(/lease\.transfer\(\)/);
    });
  });

  describe("a lease in a log", () => {
    it("shows its fence and state, and never its token", async () => {
      const lease = await (await (await open()).client("me")).acquire("job");
      const logged = JSON.stringify({ lease });
      const { token } = JSON.parse(Buffer.from(lease.transfer(), "base64url").toString("utf8"));
      expect(token).toMatch(/^[\w-]{22}$/);
      expect(logged).toContain(`"fence":"${formatFence(lease.fence)}"`);
      expect(logged).not.toContain(token);
    });
  });
}
