// Taking a lease at once: what is granted, and what is said when it is not.
import { describe, expect, it } from "vitest";
import { LeaseHeldError, LeaseRefusedError } from "../../../src/client/errors.ts";
import { fenceTerm } from "../../../src/core/index.ts";
import { expectGrowing, type OpenWorld } from "./world.ts";

export function describeAcquiring(open: OpenWorld): void {
  describe("tryAcquire", () => {
    it("grants with a fence, and the store shows who has it, why and since when", async () => {
      const world = await open();
      const [mine, theirs] = await world.clients("me", "them");
      const about = { note: "nightly", purpose: "StateWrite", metadata: { "build/id": "7" } } as const;
      const attempt = await mine.tryAcquire("job", { ttl: "10s", ...about });
      if (!attempt.ok) throw new Error(attempt.reason);
      const { lease } = attempt;
      expect(lease).toMatchObject({
        name: "job",
        holder: "me",
        purpose: "StateWrite",
        ttlMs: 10_000,
        state: "held",
        resumeFromLedgerRequired: false,
      });
      expect(await theirs.inspect("job")).toMatchObject({
        key: { tenant: "default", name: "job" },
        holder: "me",
        purpose: "StateWrite",
        note: "nightly",
        metadata: { "build/id": "7" },
        fence: lease.fence,
        state: "held",
        live: true,
        ttlMs: 10_000,
        remainingMs: 10_000,
        expiresAtMs: lease.expiresAtMs,
        renewals: 0,
      });
    });

    it("tells who holds it and for how long as a value, not as an error", async () => {
      const world = await open();
      const [mine, theirs] = await world.clients("me", "them");
      await mine.acquire("job", { ttl: "10s" });
      await world.advance(1_000);
      expect(await theirs.tryAcquire("job")).toMatchObject({
        ok: false,
        reason: "LEASE_HELD_BY_OTHER",
        holder: "me",
        retryAfterMs: 9_000,
      });
    });

    it("gives something to dispose of either way", async () => {
      const world = await open();
      const [mine, theirs] = await world.clients("me", "them");
      {
        await using attempt = await mine.tryAcquire("job");
        expect(attempt.ok).toBe(true);
        await using second = await theirs.tryAcquire("job");
        expect(second.ok).toBe(false);
      }
      expect((await theirs.tryAcquire("job")).ok).toBe(true);
    });

    it("refuses a ttl that is none, naming the field", async () => {
      const leases = await (await open()).client("me");
      const none = [0, -1, Number.NaN, 1.5, Number.POSITIVE_INFINITY, "soon", "1y", "-5s", 2 ** 53, null];
      for (const ttl of none) {
        await expect(leases.tryAcquire("job", { ttl: ttl as number })).rejects.toThrow(/^ttl must be/);
      }
    });

    it("refuses a ttl beyond the policy, and one too short for its own safety margin", async () => {
      const leases = await (await open()).client("me");
      const beyond = leases.tryAcquire("job", { ttl: "2h" });
      await expect(beyond).rejects.toBeInstanceOf(LeaseRefusedError);
      await expect(beyond).rejects.toMatchObject({
        code: "LEASE_REFUSED",
        reason: "LEASE_TTL_OUT_OF_BOUNDS",
        field: "ttlMs",
        retryable: false,
        outcome: "not-applied",
      });
      await expect(beyond).rejects.toThrow(/^ttlMs must be from 1 to 3600000/);
      await expect(leases.tryAcquire("job", { ttl: 2 })).rejects.toThrow(/longer ttl/);
    });

    it("refuses a name that is none, saying what a name looks like", async () => {
      const leases = await (await open()).client("me");
      for (const name of ["", " job", "a\u0000b", "a\nb", "$floor", "\ud800", "a\u200bb", "x".repeat(257)]) {
        await expect(leases.tryAcquire(name)).rejects.toThrow(/the lease name must/);
      }
    });

    it("refuses what else is wrong in the request with the same words everywhere", async () => {
      const leases = await (await open()).client("me");
      const refused = async (options: object, field: string, words: RegExp): Promise<void> => {
        const failure = leases.tryAcquire("job", options);
        await expect(failure).rejects.toMatchObject({ name: "LeaseRefusedError", field });
        await expect(failure).rejects.toThrow(words);
      };
      await refused({ holder: "" }, "holder", /^holder must/);
      await refused({ holder: "a\u0000" }, "holder", /^holder must/);
      await refused({ note: "x".repeat(5_000) }, "note", /^note must/);
      await refused({ metadata: { "build id": "7" } }, "metadata", /^metadata has the name/);
      await refused({ idempotencyKey: "" }, "idempotencyKey", /^idempotencyKey must/);
      await refused({ term: -1n }, "term", /^term must/);
      await refused({ purpose: "Pleasure" }, "purpose", /^purpose must/);
      expect(await leases.inspect("job")).toBeNull();
    });

    it("takes names of every kind literally", async () => {
      const leases = await (await open()).client("me");
      const names = ["a/../b", "%2e%2e", "a b", "Ünïcode/鍵", "a?b=c&d#e", "x".repeat(256)];
      for (const name of names) expect((await leases.acquire(name, { wait: 0 })).name).toBe(name);
      for (const name of names) expect((await leases.inspect(name))?.key.name).toBe(name);
    });
  });

  describe("acquire without waiting", () => {
    it("fails at once with the holder", async () => {
      const [mine, theirs] = await (await open()).clients("me", "them");
      await mine.acquire("job", { ttl: "10s" });
      const failure = theirs.acquire("job", { wait: 0 });
      await expect(failure).rejects.toBeInstanceOf(LeaseHeldError);
      await expect(failure).rejects.toMatchObject({
        name: "LeaseHeldError",
        code: "LEASE_HELD",
        reason: "LEASE_HELD_BY_OTHER",
        holder: "me",
        retryAfterMs: 10_000,
        retryable: true,
        outcome: "not-applied",
        message: "default/job is held by me, at most for another 10000 ms",
      });
    });

    it("tells a holder that it is its own rival", async () => {
      const leases = await (await open()).client("me");
      await leases.acquire("job");
      await expect(leases.acquire("job", { wait: 0 })).rejects.toMatchObject({
        reason: "LEASE_HELD_BY_SELF",
        holder: "me",
      });
    });

    it("grants with a higher fence after every end, of whatever kind", async () => {
      const world = await open();
      const [mine, theirs] = await world.clients("me", "them");
      const first = await mine.acquire("job", { ttl: "10s" });
      await first.release();
      const second = await mine.acquire("job", { ttl: "10s", autoRenew: false });
      await world.advance(10_000);
      const third = await theirs.acquire("job", { ttl: "10s", wait: 0 });
      await mine.revoke("job");
      await world.advance(10_000);
      const fourth = await mine.acquire("job", { wait: 0 });
      expectGrowing([first, second, third, fourth].map(({ fence }) => fence));
    });

    it("puts a term before the grant's number, and fences older terms", async () => {
      const [mine, theirs] = await (await open()).clients("me", "them");
      const lease = await mine.acquire("job", { term: 7n });
      expect(fenceTerm(lease.fence)).toBe(7n);
      await lease.release();
      await expect(theirs.acquire("job", { term: 6n, wait: 0 })).rejects.toMatchObject({
        code: "LEASE_DENIED",
        reason: "LEASE_FENCED",
      });
    });
  });

  describe("an idempotency key", () => {
    it("finds the same grant after a restart, and believes from a renewal on", async () => {
      const world = await open();
      const [before, after] = await world.clients("me", "me");
      const options = { ttl: "60s", idempotencyKey: "order-7", autoRenew: false } as const;
      const first = await before.acquire("job", options);
      await world.advance(5_000);
      const again = await after.acquire("job", options);
      expect(again.fence).toBe(first.fence);
      expect(again.remaining()).toBe(60_000 - 602);
      expect(await before.inspect("job")).toMatchObject({ renewals: 1, fence: first.fence });
    });

    it("with other arguments is refused", async () => {
      const leases = await (await open()).client("me");
      await leases.acquire("job", { ttl: "60s", idempotencyKey: "order-7" });
      await expect(
        leases.acquire("job", { ttl: "30s", idempotencyKey: "order-7", wait: 0 }),
      ).rejects.toMatchObject({ name: "LeaseRefusedError", field: "idempotencyKey" });
    });
  });
}
