// The tests that come with the writer lease, by their own names, for any store.
import { describe, expect, it } from "vitest";
import type { LeaseStore } from "../../src/store/index.ts";
import { fencingToken, isFencedByTerm, WriterLeaseStore } from "../../src/writer/index.ts";

export interface WriterSubject {
  readonly open: () => Promise<{
    readonly store: LeaseStore;
    /** Lets this much of the store's time pass. */
    readonly pass: (ms: number) => Promise<void>;
  }>;
}

export function describeWriterLease(name: string, subject: WriterSubject): void {
  const fresh = async () => {
    const { store, pass } = await subject.open();
    return { leases: new WriterLeaseStore({ store }), store, pass };
  };

  describe(`the writer lease on ${name}`, () => {
    it("first_acquire_assigns_generation_one", async () => {
      const { leases } = await fresh();
      expect(await leases.tryAcquire("db", "writer-a", 60_000)).toMatchObject({
        generation: 1n,
        holderId: "writer-a",
      });
    });

    it("second_holder_rejected_while_first_alive", async () => {
      const { leases } = await fresh();
      await leases.tryAcquire("db", "writer-a", 60_000);
      await expect(leases.tryAcquire("db", "writer-b", 60_000)).rejects.toMatchObject({
        failure: { kind: "Held", current: { holderId: "writer-a", generation: 1n } },
      });
    });

    it("expired_lease_is_poachable", async () => {
      const { leases, pass } = await fresh();
      await leases.tryAcquire("db", "writer-a", 1);
      await pass(10);
      expect(await leases.tryAcquire("db", "writer-b", 60_000)).toMatchObject({
        holderId: "writer-b",
        generation: 2n,
      });
    });

    it("release_clears_so_anyone_can_take_again", async () => {
      const { leases, store } = await fresh();
      const lease = await leases.tryAcquire("db", "writer-a", 60_000);
      await leases.release(lease);
      const next = await leases.tryAcquire("db", "writer-b", 60_000);
      expect(next.holderId).toBe("writer-b");
      // Where a deletion cannot be conditional, a tombstone keeps the generation.
      expect(next.generation).toBe(store.capabilities.conditionalDelete ? 1n : 2n);
    });

    it("refresh_extends_expiration_for_same_holder", async () => {
      const { leases, pass } = await fresh();
      const lease = await leases.tryAcquire("db", "writer-a", 1_000);
      await pass(20);
      const refreshed = await leases.refresh(lease, 60_000);
      expect(refreshed.generation).toBe(lease.generation);
      expect(refreshed.acquiredAtMs).toBe(lease.acquiredAtMs);
      expect(refreshed.expiresAtMs).toBeGreaterThan(lease.expiresAtMs);
    });

    it("refresh_fails_when_someone_else_owns", async () => {
      const { leases, pass } = await fresh();
      const lease = await leases.tryAcquire("db", "writer-a", 1);
      await pass(10);
      await leases.tryAcquire("db", "writer-b", 60_000);
      await expect(leases.refresh(lease, 60_000)).rejects.toMatchObject({
        failure: { kind: "Stale", observed: { holderId: "writer-b" } },
      });
    });

    it("acquire_stamps_term_onto_lease", async () => {
      const { leases } = await fresh();
      const lease = await leases.tryAcquireForTerm("db", "writer-a", 60_000, 7n);
      expect(lease.term).toBe(7n);
      expect(fencingToken(lease)).toBe((7n << 64n) | 1n);
    });

    it("legacy_lease_defaults_to_base_term", async () => {
      const { leases } = await fresh();
      const lease = await leases.tryAcquire("db", "writer-a", 60_000);
      expect(lease.term).toBe(1n);
      expect(isFencedByTerm(lease, 1n)).toBe(false);
    });

    it("stale_term_contender_is_fenced_even_when_lease_expired", async () => {
      const { leases, pass } = await fresh();
      await leases.tryAcquireForTerm("db", "new-primary", 1, 5n);
      await pass(10);
      await expect(leases.tryAcquireForTerm("db", "ex-primary", 60_000, 4n)).rejects.toMatchObject({
        failure: { kind: "Fenced", attemptedTerm: 4n, currentTerm: 5n },
      });
    });

    it("same_or_higher_term_contender_may_poach_expired_lease", async () => {
      const { leases, pass } = await fresh();
      await leases.tryAcquireForTerm("db", "old", 1, 5n);
      await pass(10);
      expect(await leases.tryAcquireForTerm("db", "new", 60_000, 6n)).toMatchObject({
        holderId: "new",
        term: 6n,
        generation: 2n,
      });
    });

    it("refresh_for_term_fails_closed_once_term_advances", async () => {
      const { leases, store } = await fresh();
      const lease = await leases.tryAcquireForTerm("db", "deposed", 60_000, 4n);
      const calls = countCalls(store);
      await expect(leases.refreshForTerm(lease, 60_000, 5n)).rejects.toMatchObject({
        failure: { kind: "Fenced", attemptedHolder: "deposed", attemptedTerm: 4n, currentTerm: 5n },
      });
      expect(calls.count).toBe(0);
    });

    it("refresh_for_term_succeeds_while_term_holds", async () => {
      const { leases, pass } = await fresh();
      const lease = await leases.tryAcquireForTerm("db", "primary", 1_000, 5n);
      await pass(20);
      const refreshed = await leases.refreshForTerm(lease, 60_000, 5n);
      expect(refreshed.term).toBe(5n);
      expect(refreshed.expiresAtMs).toBeGreaterThan(lease.expiresAtMs);
    });

    it("a live lease of a higher term is Held, not stolen", async () => {
      const { leases } = await fresh();
      await leases.tryAcquireForTerm("db", "old", 60_000, 5n);
      await expect(leases.tryAcquireForTerm("db", "new", 60_000, 6n)).rejects.toMatchObject({ kind: "Held" });
    });

    it.each([8, 64])(
      "%i concurrent acquires have one winner; the losers are Held or LostRace",
      async (count) => {
        const { leases } = await fresh();
        const attempts = await Promise.allSettled(
          Array.from({ length: count }, (_, index) => leases.tryAcquire("db", `writer-${index}`, 60_000)),
        );
        const kinds = attempts.map((attempt) =>
          attempt.status === "fulfilled" ? "won" : attempt.reason.kind,
        );
        expect(kinds.filter((kind) => kind === "won")).toHaveLength(1);
        for (const kind of kinds) expect(["won", "Held", "LostRace"]).toContain(kind);
      },
    );

    it("a release by somebody who no longer owns it is Stale and changes nothing", async () => {
      const { leases, pass } = await fresh();
      const lease = await leases.tryAcquire("db", "writer-a", 1);
      await pass(10);
      await leases.tryAcquire("db", "writer-b", 60_000);
      await expect(leases.release(lease)).rejects.toMatchObject({ kind: "Stale" });
      expect(await leases.current("db")).toMatchObject({ holderId: "writer-b", generation: 2n });
    });
  });
}

function countCalls(store: LeaseStore): { readonly count: number } {
  const seen = { count: 0 };
  for (const method of ["read", "apply"] as const) {
    const original = store[method].bind(store) as (input: never) => Promise<never>;
    Object.assign(store, {
      [method]: (input: never) => {
        seen.count += 1;
        return original(input);
      },
    });
  }
  return seen;
}
