/** Seed 002 at the level of `decide`: the decision table, the policy bundle, the reason codes. */
import { describe, expect, it } from "vitest";
import { createPolicy, type LeaseCommand, REASONS, type Reason, reasonCode } from "../../src/core/index.ts";
import { acquire, Cell, COUNTED, hashOf, leaseOf, outcome, release, renew } from "./cell.ts";

const LIVE = 2_000;
const EXPIRED = 6_000;
const WRONG = { tokenHash: hashOf("wrong") };

function heldBySelf(): Cell {
  const cell = new Cell();
  cell.run(acquire("self"), 1_000);
  return cell;
}

describe("the decision table", () => {
  it("AT-LEASE-01: ACQUIRE without a lease is granted, and there is nothing to resume", () => {
    const decided = new Cell().run(acquire("self"), LIVE);
    expect(decided.decision).toMatchObject({ kind: "granted", resumeFromLedgerRequired: false });
  });

  it("AT-LEASE-01: ACQUIRE of another's live lease is denied with its holder and its end", () => {
    expect(heldBySelf().run(acquire("other"), LIVE).decision).toEqual({
      kind: "denied",
      reason: "LEASE_HELD_BY_OTHER",
      heldBy: "self",
      heldUntilMs: 6_000,
      fence: 1n,
    });
  });

  it.each(["self", "other"])(
    "AT-LEASE-02: ACQUIRE of an expired lease by %s is granted and must resume from the ledger",
    (holder) => {
      const decided = heldBySelf().run(acquire(holder), EXPIRED);
      expect(decided.decision).toMatchObject({ kind: "granted", resumeFromLedgerRequired: true });
    },
  );

  it("ACQUIRE of an own live lease is denied by default, and replaced under supersede", () => {
    expect(outcome(heldBySelf().run(acquire("self"), LIVE))).toBe("LEASE_HELD_BY_SELF");
    const cell = new Cell(createPolicy({ ...COUNTED, reacquire: "supersede" }));
    cell.run(acquire("self"), 1_000);
    const lease = leaseOf(cell.run(acquire("self", { tokenHash: hashOf("second") }), LIVE));
    expect(lease).toMatchObject({ generation: 2n, tokenHash: hashOf("second") });
  });

  it("ACQUIRE of an own live lease with proof of its token prolongs the same grant", () => {
    const proof = { provenTokenHash: hashOf("self"), tokenHash: hashOf("second") };
    const lease = leaseOf(heldBySelf().run(acquire("self", proof), LIVE));
    expect(lease).toMatchObject({ generation: 1n, tokenHash: hashOf("self"), expiresAtMs: 7_000 });
  });

  it("ACQUIRE with proof but for another purpose is denied instead of getting what was not asked for", () => {
    const proof = { provenTokenHash: hashOf("self"), purpose: "StateWrite" } as const;
    expect(outcome(heldBySelf().run(acquire("self", proof), LIVE))).toBe("LEASE_PURPOSE_MISMATCH");
  });

  it("ACQUIRE with proof under a newer term gets a new grant, and the older promise is kept", () => {
    const proof = { provenTokenHash: hashOf("self"), term: 2n, ttlMs: 1 };
    const lease = leaseOf(heldBySelf().run(acquire("self", proof), LIVE));
    expect(lease).toMatchObject({ term: 2n, generation: 2n, expiresAtMs: 6_000 });
  });

  it("ACQUIRE of an own live lease with a wrong proof is denied", () => {
    expect(outcome(heldBySelf().run(acquire("self", { provenTokenHash: hashOf("x") }), LIVE))).toBe(
      "LEASE_HELD_BY_SELF",
    );
  });

  it("ACQUIRE of another's live lease is denied even with proof of its token", () => {
    expect(outcome(heldBySelf().run(acquire("other", { provenTokenHash: hashOf("self") }), LIVE))).toBe(
      "LEASE_HELD_BY_OTHER",
    );
  });

  const rows: readonly (readonly [string, LeaseCommand, Cell, number, string])[] = [
    ["RENEW without a lease", renew("self"), new Cell(), LIVE, "LEASE_NOT_FOUND"],
    ["RELEASE without a lease", release("self"), new Cell(), LIVE, "LEASE_NOT_FOUND"],
    ["RENEW of another's live lease", renew("other"), heldBySelf(), LIVE, "LEASE_HELD_BY_OTHER"],
    ["RELEASE of another's live lease", release("other"), heldBySelf(), LIVE, "LEASE_HELD_BY_OTHER"],
    [
      "AT-LEASE-03: RENEW with a wrong token",
      renew("self", WRONG),
      heldBySelf(),
      LIVE,
      "LEASE_TOKEN_INVALID",
    ],
    [
      "AT-LEASE-03: RELEASE with a wrong token",
      release("self", WRONG),
      heldBySelf(),
      LIVE,
      "LEASE_TOKEN_INVALID",
    ],
    ["RENEW of an own live lease", renew("self"), heldBySelf(), LIVE, "granted"],
    ["RELEASE of an own live lease", release("self"), heldBySelf(), LIVE, "granted"],
    ["RENEW of an own expired lease", renew("self"), heldBySelf(), EXPIRED, "LEASE_EXPIRED"],
    ["RENEW of another's expired lease", renew("other"), heldBySelf(), EXPIRED, "LEASE_HELD_BY_OTHER"],
    ["RELEASE of another's expired lease", release("other"), heldBySelf(), EXPIRED, "LEASE_HELD_BY_OTHER"],
  ];

  it.each(rows)("%s", (_title, command, cell, now, expected) => {
    expect(outcome(cell.run(command, now))).toBe(expected);
  });

  it("AT-LEASE-03: RENEW and RELEASE without a token are refused, and the field is named", () => {
    for (const { tokenHash: _tokenHash, ...command } of [renew("self"), release("self")]) {
      const decided = heldBySelf().run(command as LeaseCommand, LIVE);
      expect(decided.decision).toMatchObject({
        kind: "refused",
        reason: "INPUT_SCHEMA_INVALID",
        field: "tokenHash",
      });
    }
  });

  it("a granted RENEW keeps the token and sets the expiry to now + ttl", () => {
    const lease = leaseOf(heldBySelf().run(renew("self", { ttlMs: 10_000 }), LIVE));
    expect(lease).toMatchObject({ tokenHash: hashOf("self"), expiresAtMs: 12_000, grantedAtMs: 1_000 });
  });

  it("a granted RELEASE leaves an inactive lease whose token proves nothing any more", () => {
    const cell = heldBySelf();
    expect(leaseOf(cell.run(release("self"), LIVE))).toMatchObject({ state: "released", endedAtMs: LIVE });
    expect(outcome(cell.run(renew("self"), LIVE))).toBe("LEASE_NOT_FOUND");
    expect(outcome(cell.run(acquire("other"), LIVE))).toBe("granted");
  });

  it("a denied RENEW or RELEASE of nothing names no holder", () => {
    for (const command of [renew("self"), release("self")]) {
      expect(new Cell().run(command, LIVE).decision).toMatchObject({ heldBy: null, heldUntilMs: null });
    }
  });

  it("releasing twice finds what the first did and writes nothing", () => {
    const cell = heldBySelf();
    cell.run(release("self"), LIVE);
    const again = cell.run(release("self"), LIVE + 1);
    expect(outcome(again)).toBe("granted");
    expect(again.effect).toEqual({ kind: "none" });
  });

  it("a late release never touches the grant that came after", () => {
    const cell = heldBySelf();
    cell.run(acquire("self", { tokenHash: hashOf("second") }), EXPIRED);
    expect(outcome(cell.run(release("self"), EXPIRED))).toBe("LEASE_TOKEN_INVALID");
    cell.run(release("self", { tokenHash: hashOf("second") }), EXPIRED);
    cell.run(acquire("other"), EXPIRED);
    expect(outcome(cell.run(release("self"), EXPIRED))).toBe("LEASE_HELD_BY_OTHER");
    expect(cell.record).toMatchObject({ holder: "other", state: "held" });
  });
});

describe("AT-LEASE-02: taking over unfinished work", () => {
  it("after a release there is nothing to resume", () => {
    const cell = heldBySelf();
    cell.run(release("self"), LIVE);
    expect(cell.run(acquire("other"), LIVE).decision).toMatchObject({ resumeFromLedgerRequired: false });
  });

  it("a takeover that never resumed passes the duty on, even when it was released", () => {
    const cell = heldBySelf();
    cell.run(acquire("other"), EXPIRED);
    cell.run(release("other"), EXPIRED + 1);
    expect(cell.run(acquire("third"), EXPIRED + 2).decision).toMatchObject({
      resumeFromLedgerRequired: true,
    });
  });
});

describe("the policy bundle", () => {
  it("says what is true of the request, and why it is eligible", () => {
    expect(heldBySelf().ask(renew("self"), LIVE).bundle).toMatchObject({
      leaseExists: true,
      leaseExpired: false,
      ownerMatch: true,
      tokenMatch: true,
      ttlInBounds: true,
      grantEligible: true,
      reason: "OK_POLICY_EVALUATE",
    });
  });

  it.each([
    [new Cell(), LIVE, { leaseExists: false, leaseExpired: false, ownerMatch: false, tokenMatch: false }],
    [heldBySelf(), EXPIRED, { leaseExists: true, leaseExpired: true, ownerMatch: true, tokenMatch: false }],
  ])("an expired lease still exists; no lease is not expired", (cell, now, facts) => {
    expect(cell.ask(renew("self", WRONG), now).bundle).toMatchObject({ ...facts, grantEligible: false });
  });
});

describe("reason codes", () => {
  it("are the numbers of the seed", () => {
    const seed = {
      OK_POLICY_EVALUATE: 0x4c530001,
      OK_DECISION_COMPUTE: 0x4c530002,
      LEASE_HELD_BY_OTHER: 0x4c530010,
      LEASE_TOKEN_INVALID: 0x4c530011,
      LEASE_TTL_OUT_OF_BOUNDS: 0x4c530012,
      LEASE_NOT_FOUND: 0x4c530013,
      INPUT_SCHEMA_INVALID: 0x4c5300f1,
      UPSTREAM_INPUT_MISSING: 0x4c5300f2,
      BUDGET_EXCEEDED: 0x4c5300f3,
      INTERNAL_PIPELINE_ERROR: 0x4c5300f4,
    };
    for (const [reason, code] of Object.entries(seed)) expect(reasonCode(reason as Reason)).toBe(code);
  });

  it("are distinct unsigned 32-bit integers", () => {
    const codes = Object.values(REASONS).map(({ code }) => code);
    expect(new Set(codes).size).toBe(codes.length);
    for (const code of codes) expect(code).toBe(code >>> 0);
    expect(reasonCode("LEASE_EXPIRED")).toBe(0x4c530014);
  });
});
