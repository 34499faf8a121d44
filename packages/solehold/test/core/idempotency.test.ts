/** The same idempotency key again: the same answer while it is true, never a second grant, never a revival. */
import { describe, expect, it } from "vitest";
import { createPolicy, type LeaseCommand } from "../../src/core/index.ts";
import {
  acquire,
  breakLease,
  Cell,
  handoff,
  hashOf,
  leaseOf,
  outcome,
  release,
  renew,
  resume,
  revoke,
  use,
} from "./cell.ts";

function mark(
  key: string,
  fingerprint = "args",
): { readonly idempotency: NonNullable<LeaseCommand["idempotency"]> } {
  return {
    idempotency: { keyHash: hashOf(key), fingerprint: hashOf(fingerprint), sealedToken: "sealed" },
  };
}

function held(fields = {}): Cell {
  const cell = new Cell();
  cell.run(acquire("a", fields), 1_000);
  return cell;
}

describe("repeating an acquire", () => {
  it("gives the same grant again, writes nothing, and says that it was given before", () => {
    const cell = held(mark("k"));
    const again = cell.run(
      acquire("a", { ...mark("k"), tokenHash: hashOf("second"), nonce: "other" }),
      2_000,
    );
    expect(again.decision).toEqual({
      kind: "granted",
      reason: "OK_DECISION_COMPUTE",
      lease: cell.record,
      resumeFromLedgerRequired: false,
      replayed: true,
    });
    expect(again.effect).toEqual({ kind: "none" });
  });

  it("still does so after renewals that carried no key", () => {
    const cell = held(mark("k"));
    cell.run(renew("a"), 3_000);
    expect(leaseOf(cell.run(acquire("a", mark("k")), 6_500))).toMatchObject({
      generation: 1n,
      expiresAtMs: 8_000,
    });
  });

  it("still does so after renewals that carried a key of their own", () => {
    const cell = held(mark("A"));
    cell.run(renew("a", mark("B")), 3_000);
    expect(cell.run(acquire("a", mark("A")), 3_500)).toMatchObject({
      decision: { kind: "granted", replayed: true, lease: { generation: 1n, expiresAtMs: 8_000 } },
      effect: { kind: "none" },
    });
    cell.run(renew("a", mark("C")), 4_000);
    expect(cell.ask(renew("a", mark("C")), 5_000).decision).toMatchObject({ replayed: true });
    expect(cell.ask(acquire("a", mark("A")), 5_000).decision).toMatchObject({ replayed: true });
    expect(outcome(cell.ask(acquire("a", mark("A", "others")), 5_000))).toBe("IDEMPOTENCY_KEY_REUSED");
    expect(outcome(cell.ask(renew("a", mark("A")), 5_000))).toBe("IDEMPOTENCY_KEY_REUSED");
  });

  it("gives no second grant after a release that carried a key of its own", () => {
    const cell = held(mark("A"));
    cell.run(release("a", mark("B")), 3_000);
    expect(outcome(cell.run(acquire("a", mark("A")), 3_500))).toBe("LEASE_NOT_FOUND");
  });

  it("with other arguments is refused, and nothing is said about the lease", () => {
    const decided = held(mark("k")).run(acquire("a", mark("k", "other")), 2_000);
    expect(decided.decision).toMatchObject({
      kind: "refused",
      reason: "IDEMPOTENCY_KEY_REUSED",
      field: "idempotencyKey",
    });
  });

  it("by another holder is refused even if the fingerprint claims to be the same", () => {
    expect(outcome(held(mark("k")).run(acquire("b", mark("k")), 2_000))).toBe("IDEMPOTENCY_KEY_REUSED");
  });

  it.each([
    ["expired", [], 6_000, "LEASE_EXPIRED"],
    ["released", [release("a")], 2_500, "LEASE_NOT_FOUND"],
    ["revoked", [revoke()], 2_500, "LEASE_REVOKED"],
  ] as const)("does not grant a second time when the first grant was %s", (_how, commands, now, reason) => {
    const cell = held(mark("k"));
    for (const command of commands) cell.run(command, 2_000);
    const decided = cell.run(acquire("a", mark("k")), now);
    expect(outcome(decided)).toBe(reason);
    expect(decided.effect).toEqual({ kind: "none" });
  });

  it("another key, or none, is judged on its own", () => {
    expect(outcome(held(mark("k")).run(acquire("a", mark("k2")), 2_000))).toBe("LEASE_HELD_BY_SELF");
    expect(outcome(held(mark("k")).run(acquire("a"), 2_000))).toBe("LEASE_HELD_BY_SELF");
    expect(outcome(held(mark("k")).run(acquire("a"), 6_000))).toBe("granted");
  });

  it("the key of an older grant means nothing to the next", () => {
    const cell = held(mark("k"));
    cell.run(acquire("b"), 6_000);
    expect(cell.record?.idempotency).toBeNull();
    expect(outcome(cell.run(acquire("a", mark("k")), 6_001))).toBe("LEASE_HELD_BY_OTHER");
  });
});

describe("repeating a command of the holder", () => {
  it("a renewal repeated while the lease lives is answered without a second write", () => {
    const cell = held();
    cell.run(renew("a", mark("r")), 2_000);
    const again = cell.run(renew("a", mark("r")), 4_000);
    expect(again.decision).toMatchObject({ kind: "granted", replayed: true });
    expect(cell.record).toMatchObject({ expiresAtMs: 7_000, renewals: 1 });
  });

  it.each([
    ["expired", null, 7_000, "LEASE_EXPIRED"],
    ["was revoked", revoke(), 3_000, "LEASE_REVOKED"],
    ["was released", release("a"), 3_000, "LEASE_NOT_FOUND"],
  ] as const)("a renewal repeated after the lease %s is not granted again", (_how, command, now, reason) => {
    const cell = held();
    cell.run(renew("a", mark("r")), 2_000);
    if (command !== null) cell.run(command, 2_500);
    expect(outcome(cell.run(renew("a", mark("r")), now))).toBe(reason);
  });

  it.each([
    [7_000, "LEASE_EXPIRED"],
    [6_999, "granted"],
  ])("a resume repeated at %i, when its takeover ends at 7000, is %s", (now, expected) => {
    const cell = new Cell();
    cell.run(acquire("z", { ttlMs: 1_000 }), 1_000);
    cell.run(acquire("a"), 2_000);
    cell.run(resume("a", mark("s")), 2_500);
    expect(outcome(cell.run(resume("a", mark("s")), now))).toBe(expected);
  });

  it("a renewal repeated with a wrong token is not answered from memory", () => {
    const cell = held();
    cell.run(renew("a", mark("r")), 2_000);
    const forged = renew("a", { ...mark("r"), tokenHash: hashOf("wrong") });
    expect(outcome(cell.run(forged, 3_000))).toBe("LEASE_TOKEN_INVALID");
  });

  it("a tolerated renewal after expiry is renewed afresh, not replayed with its old end", () => {
    const cell = new Cell(createPolicy({ renewExpired: "if-unclaimed" }));
    cell.run(acquire("a"), 1_000);
    cell.run(renew("a", mark("r")), 2_000);
    expect(leaseOf(cell.run(renew("a", mark("r")), 9_000))).toMatchObject({ expiresAtMs: 14_000 });
  });

  it.each([
    ["release", release("a", mark("e"))],
    ["handoff", handoff("a", "b", mark("e"))],
  ])("a %s repeated finds itself done", (_op, command) => {
    const cell = held();
    const first = leaseOf(cell.run(command, 2_000));
    const again = cell.run(command, 3_000);
    expect(again.decision).toMatchObject({ kind: "granted", replayed: true, lease: first });
    expect(again.effect).toEqual({ kind: "none" });
  });

  it("a key used for one operation is refused for another", () => {
    const cell = held();
    cell.run(renew("a", mark("r")), 2_000);
    for (const command of [release("a", mark("r")), use("a", mark("r")), revoke(mark("r"))]) {
      expect(outcome(cell.ask(command, 3_000))).toBe("IDEMPOTENCY_KEY_REUSED");
    }
  });
});

describe("repeating an operator's command", () => {
  it("a revoke repeated with its key finds itself done; without the key it was done before", () => {
    const cell = held();
    cell.run(revoke(mark("o")), 2_000);
    expect(cell.run(revoke(mark("o")), 3_000).decision).toMatchObject({ kind: "granted", replayed: true });
    expect(outcome(cell.run(revoke(), 3_000))).toBe("LEASE_ALREADY_REVOKED");
  });

  it("a break repeated with its key does not move the end again", () => {
    const cell = held();
    cell.run(breakLease(10_000, mark("o")), 2_000);
    cell.run(breakLease(10_000, mark("o")), 3_000);
    expect(cell.record?.breakAtMs).toBe(12_000);
  });
});
