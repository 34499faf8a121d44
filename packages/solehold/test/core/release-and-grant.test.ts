/** A release that grants the lease to the next waiter with the same write, and what stands in its way. */
import { describe, expect, it } from "vitest";
import { type AcquireCommand, createPolicy, decide, exactly, NO_TOKEN_HASH } from "../../src/core/index.ts";
import { acquire, Cell, COUNTED, handoff, hashOf, leaseOf, outcome, release, renew, revoke } from "./cell.ts";

function held(policy = COUNTED): Cell {
  const cell = new Cell(policy);
  cell.run(acquire("a"), 1_000);
  return cell;
}

function releaseTo(holder: string, fields: Partial<AcquireCommand> = {}) {
  return release("a", { nonce: "nonce-of-the-release", next: acquire(holder, fields) });
}

describe("a release that names the next waiter", () => {
  it("writes the waiter's grant with the release's nonce, by which a lost reply is recognised", () => {
    const cell = held();
    const decided = cell.run(releaseTo("b"), 2_000);
    expect(decided.decision).toMatchObject({ lease: { state: "released", holder: "a" } });
    expect(cell.record).toMatchObject({ holder: "b", state: "held", generation: 2n });
    expect(cell.record?.nonce).toBe("nonce-of-the-release");
  });

  it("grants above the store's floor", () => {
    const cell = held();
    cell.floor = 100n;
    cell.run(releaseTo("b"), 2_000);
    expect(cell.record?.generation).toBe(101n);
  });

  it("keeps the waiter's idempotency mark, and none of the releaser's", () => {
    const mark = (key: string) => ({
      idempotency: { keyHash: hashOf(key), fingerprint: hashOf(key), sealedToken: "sealed" },
    });
    const cell = held();
    cell.run({ ...releaseTo("b", mark("of-b")), ...mark("of-a") }, 2_000);
    expect(cell.record?.idempotency).toMatchObject({ op: "acquire", keyHash: hashOf("of-b") });
  });

  it.each([
    ["the store lost writes", { violation: { kind: "lost-writes", forMs: 1_000 } }, {}],
    ["the tenant has all that it may have", {}, { quotaExhausted: true }],
    ["the waiter's approvals are missing", {}, { approval: { kind: "quorum-not-met" } }],
    [
      "the waiter's approvals led to a grant before",
      {},
      { approval: { kind: "used-before", generation: 0n, atMs: 1_500 } },
    ],
    ["the waiter's ttl is out of bounds", {}, { ttlMs: 3_600_001 }],
  ] as const)("is written alone when %s", (_why, snapshot, fields) => {
    const cell = held();
    const command = releaseTo("b", fields);
    const { decision, effect } = decide(command, { ...cell.snapshot, ...snapshot }, exactly(2_000), COUNTED);
    expect(decision).toMatchObject({ kind: "granted", lease: { state: "released" } });
    expect(decision).not.toHaveProperty("next");
    expect(effect).toMatchObject({ kind: "write", record: { state: "released", holder: "a" } });
  });

  it("is nothing but a refusal when the release is one", () => {
    const cell = held();
    const foreign = { ...releaseTo("b"), tokenHash: hashOf("guess") };
    expect(outcome(cell.run(foreign, 2_000))).toBe("LEASE_TOKEN_INVALID");
    expect(cell.record).toMatchObject({ holder: "a", state: "held" });
  });

  it("of a revoked lease ends the cool-down and serves the waiter", () => {
    const cell = held();
    cell.run(revoke(), 1_500);
    cell.run(releaseTo("b"), 2_000);
    expect(cell.record).toMatchObject({ holder: "b", state: "held", resumeRequired: false });
  });

  it("repeated after it was done serves nobody a second time", () => {
    const cell = held();
    cell.run(release("a"), 2_000);
    expect(cell.run(releaseTo("b"), 3_000).effect).toEqual({ kind: "none" });
    expect(cell.record).toMatchObject({ holder: "a", state: "released" });
  });
});

describe("a release of what one write left behind", () => {
  const onlyNonce = "nonce-a";

  it("ends it while nobody has written since", () => {
    const cell = held();
    expect(leaseOf(cell.run(release("a", { onlyNonce }), 2_000)).state).toBe("released");
  });

  it("leaves alone what its holder has renewed since, although the token is right", () => {
    const cell = held();
    cell.run(renew("a", { nonce: "nonce-of-the-renewal" }), 1_500);
    expect(outcome(cell.run(release("a", { onlyNonce }), 2_000))).toBe("LEASE_NOT_FOUND");
    expect(cell.record).toMatchObject({ holder: "a", state: "held" });
  });

  it("leaves alone a grant that the waiter would get, too", () => {
    const cell = held();
    cell.run(renew("a", { nonce: "nonce-of-the-renewal" }), 1_500);
    expect(outcome(cell.run({ ...releaseTo("b"), onlyNonce }, 2_000))).toBe("LEASE_NOT_FOUND");
    expect(cell.record).toMatchObject({ holder: "a", state: "held" });
  });
});

describe("an exhausted quota", () => {
  const exhausted = { quotaExhausted: true } as const;

  it.each([
    ["a key that is free", [], 2_000],
    ["an expired lease", [acquire("b")], 9_000],
    ["a released lease", [acquire("b"), release("b")], 2_000],
    ["a lease handed to the caller", [acquire("b"), handoff("b", "a")], 1_500],
    ["a revoked lease after its cool-down", [acquire("b"), revoke()], 9_000],
  ] as const)("denies a grant on %s", (_what, commands, now) => {
    const cell = new Cell();
    for (const command of commands) cell.run(command, 1_000);
    expect(outcome(cell.run(acquire("a", exhausted), now))).toBe("CAPACITY_EXCEEDED");
  });

  it("does not hinder who replaces its own live lease: that adds none", () => {
    const cell = held(createPolicy({ ...COUNTED, reacquire: "supersede" }));
    expect(leaseOf(cell.run(acquire("a", exhausted), 2_000)).generation).toBe(2n);
    const proven = held();
    const proof = { provenTokenHash: proven.record?.tokenHash ?? "" };
    expect(leaseOf(proven.run(acquire("a", { ...exhausted, ...proof }), 2_000)).generation).toBe(1n);
    expect(leaseOf(proven.run(acquire("a", { ...exhausted, ...proof, term: 1n }), 3_000)).term).toBe(1n);
  });

  it("denies a claim at once of a revoked lease", () => {
    const cell = held(createPolicy({ ...COUNTED, revoked: "claim-at-once" }));
    cell.run(revoke(), 1_500);
    expect(outcome(cell.run(acquire("b", exhausted), 2_000))).toBe("CAPACITY_EXCEEDED");
  });
});

describe("what is wrong with a snapshot", () => {
  it("denies an acquire until the time at which nobody can believe any more", () => {
    const violation = { kind: "lost-writes", forMs: 1_234.5 } as const;
    const { decision } = decide(
      acquire("b"),
      { record: null, floor: 0n, violation },
      exactly(2_000),
      COUNTED,
    );
    expect(decision).toMatchObject({ reason: "FENCE_WENT_BACK", heldUntilMs: 3_235 });
  });

  it("denies it without an end where fences would never grow", () => {
    const violation = { kind: "lost-writes", forMs: Number.POSITIVE_INFINITY } as const;
    const { decision } = decide(
      acquire("b"),
      { record: null, floor: 0n, violation },
      exactly(2_000),
      COUNTED,
    );
    expect(decision).toMatchObject({ reason: "FENCE_WENT_BACK", heldUntilMs: null });
  });
});

describe("a renewal after the store lost writes", () => {
  const violation = { kind: "lost-writes", forMs: 1_000 } as const;

  it("says so where the record is gone: its holder did not release it", () => {
    const { decision } = decide(renew("a"), { record: null, floor: 0n, violation }, exactly(2_000), COUNTED);
    expect(decision).toMatchObject({ kind: "denied", reason: "FENCE_WENT_BACK", heldUntilMs: null });
  });

  it("is granted where the record stands", () => {
    const { record } = held();
    expect(decide(renew("a"), { record, floor: 0n, violation }, exactly(2_000), COUNTED).decision.kind).toBe(
      "granted",
    );
  });
});

describe("a repeated release or handoff", () => {
  it("a release clears the token: its repetition by the holder changes nothing, by another or of another grant it is denied", () => {
    const cell = held();
    cell.run(release("a"), 2_000);
    expect(cell.record).toMatchObject({ state: "released", tokenHash: NO_TOKEN_HASH });
    const again = cell.ask(release("a"), 2_500);
    expect(again).toMatchObject({ decision: { kind: "granted" }, effect: { kind: "none" } });
    expect(outcome(cell.ask(release("b"), 2_500))).toBe("LEASE_NOT_FOUND");
    expect(outcome(cell.ask(release("a", { generation: 7n }), 2_500))).toBe("LEASE_NOT_FOUND");
    for (const command of [renew("a"), handoff("a", "c")])
      expect(outcome(cell.ask(command, 2_500))).toBe("LEASE_NOT_FOUND");
  });

  it("a handoff with the idempotency key of another token is not answered from memory", () => {
    const command = handoff("a", "c");
    const idempotency = { keyHash: hashOf("k"), fingerprint: hashOf("args"), sealedToken: "" };
    const cell = held();
    cell.run({ ...command, idempotency }, 2_000);
    const forged = { ...command, idempotency, tokenHash: hashOf("guess") };
    expect(outcome(cell.run(forged, 2_500))).toBe("LEASE_NOT_FOUND");
  });
});
