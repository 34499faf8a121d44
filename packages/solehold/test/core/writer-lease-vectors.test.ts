/** Seed 004 at the level of `decide`: terms, generations and the writer policy. */
import { describe, expect, it } from "vitest";
import { createPolicy, exactly, recordFence, WRITER_POLICY } from "../../src/core/index.ts";
import { acquire, Cell, hashOf, leaseOf, outcome, release, renew, use } from "./cell.ts";

const TTL = 60_000;

function writer(holder: string, term?: bigint): ReturnType<typeof acquire> {
  return acquire(holder, { ttlMs: TTL, ...(term === undefined ? {} : { term }) });
}

/** Held by writer-a at generation 1 since 1000. */
function held(term?: bigint): Cell {
  const cell = new Cell(WRITER_POLICY);
  cell.run(writer("writer-a", term), 1_000);
  return cell;
}

describe("acquiring the writer slot", () => {
  it("the first acquire gets the base term and generation 1", () => {
    expect(held().record).toMatchObject({ holder: "writer-a", term: 1n, generation: 1n });
  });

  it("LeaseUniqueness: a second holder within the ttl is held off by writer-a", () => {
    expect(held().run(writer("writer-b"), 60_999).decision).toMatchObject({
      reason: "LEASE_HELD_BY_OTHER",
      heldBy: "writer-a",
    });
  });

  it("ExpiredLeaseClaimable: after expiry writer-b gets generation 2", () => {
    expect(leaseOf(held().run(writer("writer-b"), 61_000))).toMatchObject({
      holder: "writer-b",
      generation: 2n,
    });
  });

  it("the same holder supersedes its own live lease with the next generation", () => {
    const cell = held();
    expect(leaseOf(cell.run(writer("writer-a"), 2_000)).generation).toBe(2n);
    expect(outcome(cell.run(renew("writer-a", { generation: 1n }), 2_001))).toBe("LEASE_GENERATION_STALE");
  });

  it("superseding or refreshing with a shorter ttl sets the end to now + ttl", () => {
    const superseded = held();
    expect(leaseOf(superseded.run(acquire("writer-a", { ttlMs: 1_000 }), 2_000)).expiresAtMs).toBe(3_000);
    const refreshed = held();
    expect(
      leaseOf(refreshed.run(renew("writer-a", { generation: 1n, ttlMs: 1_000 }), 2_000)).expiresAtMs,
    ).toBe(3_000);
  });

  it("superseding with a shorter ttl does not end what the older grant was promised, where promises are kept", () => {
    const cell = new Cell({ ...WRITER_POLICY, shorten: "keep-longest" });
    cell.run(writer("writer-a"), 1_000);
    cell.run(acquire("writer-a", { ttlMs: 1_000 }), 2_000);
    expect(outcome(cell.run(writer("writer-b"), 60_999))).toBe("LEASE_HELD_BY_OTHER");
    expect(outcome(cell.run(writer("writer-b"), 61_000))).toBe("granted");
  });

  it("of many acquires on one snapshot exactly one compare-and-swap succeeds", () => {
    const cell = new Cell(WRITER_POLICY);
    const { version } = cell;
    const decisions = Array.from({ length: 64 }, (_, index) => cell.ask(writer(`writer-${index}`), 1_000));
    const winners = decisions.filter((decided) => cell.apply(decided, version));
    expect(winners).toHaveLength(1);
    const losers = Array.from({ length: 64 }, (_, index) =>
      outcome(cell.ask(writer(`writer-${index}`), 1_001)),
    );
    expect(losers.filter((reason) => reason !== "LEASE_HELD_BY_OTHER")).toEqual(["granted"]);
  });
});

describe("terms fence", () => {
  it("term 7 gives the fencing token (7, 1)", () => {
    expect(recordFence(held(7n).record!)).toBe((7n << 64n) | 1n);
  });

  it("a contender of term 4 is fenced by an expired lease of term 5", () => {
    expect(outcome(held(5n).run(writer("writer-b", 4n), 99_000))).toBe("LEASE_FENCED");
  });

  it("a contender of term 6 takes an expired lease of term 5 with generation 2", () => {
    expect(leaseOf(held(5n).run(writer("writer-b", 6n), 99_000))).toMatchObject({ term: 6n, generation: 2n });
  });

  it("a higher term does not steal a live lease", () => {
    expect(outcome(held(5n).run(writer("writer-b", 6n), 2_000))).toBe("LEASE_HELD_BY_OTHER");
  });

  it("a lower term is fenced before anything else: live, expired, released, even the same holder", () => {
    expect(outcome(held(5n).run(writer("writer-b", 4n), 2_000))).toBe("LEASE_FENCED");
    expect(outcome(held(5n).run(writer("writer-a", 4n), 2_000))).toBe("LEASE_FENCED");
    expect(outcome(held(5n).run(writer("writer-a"), 99_000))).toBe("LEASE_FENCED");
    const tombstones = new Cell(createPolicy({ ...WRITER_POLICY, release: "tombstone" }));
    tombstones.run(writer("writer-a", 5n), 1_000);
    tombstones.run(release("writer-a", { generation: 1n }), 2_000);
    expect(outcome(tombstones.run(writer("writer-b", 4n), 3_000))).toBe("LEASE_FENCED");
  });

  it("a renewal is fenced when it names another term than its lease has", () => {
    const refresh = (term: bigint): string =>
      outcome(held(5n).run(renew("writer-a", { generation: 1n, term }), 2_000));
    expect([refresh(4n), refresh(5n), refresh(6n)]).toEqual(["LEASE_FENCED", "granted", "LEASE_FENCED"]);
  });

  it("a renewal that names no term speaks for its own grant", () => {
    const lease = leaseOf(held(5n).run(renew("writer-a", { generation: 1n }), 2_000));
    expect(lease).toMatchObject({ term: 5n, generation: 1n });
  });
});

describe("refresh and release under the writer policy", () => {
  it("a refresh needs holder and generation, and moves only the expiry", () => {
    const cell = held();
    const lease = leaseOf(cell.run(renew("writer-a", { generation: 1n, ttlMs: TTL }), 5_000));
    expect(lease).toMatchObject({ generation: 1n, grantedAtMs: 1_000, expiresAtMs: 65_000 });
    expect(outcome(cell.run(renew("writer-a", { generation: 2n }), 5_000))).toBe("LEASE_GENERATION_STALE");
    expect(outcome(cell.run(renew("writer-b", { generation: 1n }), 5_000))).toBe("LEASE_HELD_BY_OTHER");
  });

  it("a refresh after another took the slot is refused", () => {
    const cell = held();
    cell.run(writer("writer-b"), 61_000);
    expect(outcome(cell.run(renew("writer-a", { generation: 1n }), 61_001))).toBe("LEASE_HELD_BY_OTHER");
  });

  it("an expired lease that nobody took can be refreshed, with the fence unchanged", () => {
    const lease = leaseOf(held().run(renew("writer-a", { generation: 1n, ttlMs: TTL }), 90_000));
    expect(lease).toMatchObject({ generation: 1n, expiresAtMs: 150_000 });
    const strict = new Cell(createPolicy({ ...WRITER_POLICY, renewExpired: "deny" }));
    strict.run(writer("writer-a"), 1_000);
    expect(outcome(strict.run(renew("writer-a", { generation: 1n }), 90_000))).toBe("LEASE_EXPIRED");
  });

  it("only a renewal is tolerated after expiry, never a use", () => {
    expect(outcome(held().run(use("writer-a", { generation: 1n }), 90_000))).toBe("LEASE_EXPIRED");
  });

  it("a release deletes the object, so the next holder gets generation 1 again", () => {
    const cell = held();
    expect(cell.run(release("writer-a", { generation: 1n }), 2_000).effect).toEqual({ kind: "delete" });
    expect(leaseOf(cell.run(writer("writer-b"), 2_001)).generation).toBe(1n);
  });

  it("a release under tombstones keeps the fence growing", () => {
    const cell = new Cell(createPolicy({ ...WRITER_POLICY, release: "tombstone" }));
    cell.run(writer("writer-a"), 1_000);
    cell.run(release("writer-a", { generation: 1n }), 2_000);
    expect(leaseOf(cell.run(writer("writer-b"), 2_001)).generation).toBe(2n);
  });

  it("a release of a generation that is gone is stale", () => {
    const cell = held();
    cell.run(writer("writer-a"), 61_000);
    expect(outcome(cell.run(release("writer-a", { generation: 1n }), 61_001))).toBe("LEASE_GENERATION_STALE");
    expect(cell.record).toMatchObject({ generation: 2n, state: "held" });
  });

  it("a command without the generation that proves ownership is refused and the field is named", () => {
    for (const command of [renew("writer-a"), release("writer-a"), use("writer-a")]) {
      expect(held().ask(command, exactly(2_000)).decision).toMatchObject({
        kind: "refused",
        field: "generation",
      });
    }
  });

  it("the token plays no part: holder and generation are the proof", () => {
    const command = renew("writer-a", { generation: 1n, tokenHash: hashOf("anything") });
    expect(outcome(held().run(command, 2_000))).toBe("granted");
  });

  it("under the token policy a generation, when named, must fit as well", () => {
    const cell = new Cell();
    cell.run(acquire("a"), 1_000);
    expect(outcome(cell.run(renew("a", { generation: 2n }), 2_000))).toBe("LEASE_TOKEN_INVALID");
    expect(outcome(cell.run(renew("a", { generation: 1n }), 2_000))).toBe("granted");
  });
});
