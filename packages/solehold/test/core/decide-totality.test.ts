/** `decide` answers everything: no exception, no surprise, no trace on its inputs. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  commandProblem,
  DEFAULT_POLICY,
  type Decided,
  decide,
  exactly,
  type LeaseCommand,
  REASONS,
  type StoreInstant,
} from "../../src/core/index.ts";
import { commands, nonsense, OPTIONAL, policies, records, storeInstants, u64s } from "./arbitraries.ts";
import { acquire, freeze, release, renew } from "./cell.ts";

const snapshots = fc.record({ record: fc.option(records), floor: u64s });

/** The same bytes for the same value, bigints included. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_field, inner: unknown) => (typeof inner === "bigint" ? `${inner}n` : inner));
}

function expectRefused({ decision, effect }: Decided): string {
  expect(decision.kind).toBe("refused");
  expect(effect).toEqual({ kind: "none" });
  return decision.kind === "refused" ? decision.field : "";
}

describe("decide is total", () => {
  it("refuses whatever is not a command, naming a field, and never throws", () => {
    fc.assert(
      fc.property(nonsense, snapshots, storeInstants, (command, snapshot, now) => {
        const field = expectRefused(decide(command as LeaseCommand, snapshot, now, DEFAULT_POLICY));
        expect(field.length).toBeGreaterThan(0);
      }),
      { numRuns: 2_000 },
    );
  });

  it("with any one field of a command replaced by nonsense it refuses that field or decides, never throws", () => {
    const property = fc.property(
      commands.chain((command) => fc.tuple(fc.constant(command), fc.constantFrom(...Object.keys(command)))),
      nonsense,
      snapshots,
      storeInstants,
      ([command, field], value, snapshot, now) => {
        const spoiled = { ...command, [field]: value } as LeaseCommand;
        const { decision } = decide(spoiled, snapshot, now, DEFAULT_POLICY);
        expect(Object.keys(REASONS)).toContain(decision.reason);
        const problem = commandProblem(spoiled);
        if (problem === null) return;
        expect(decision).toMatchObject({ kind: "refused", field: problem.field });
        expect(field === "op" || problem.field === field || problem.field.startsWith(`${field}.`)).toBe(true);
      },
    );
    fc.assert(property, { numRuns: 4_000 });
  });

  it("with any one field missing it refuses that field, unless the field is optional", () => {
    fc.assert(
      fc.property(
        commands.chain((command) => fc.tuple(fc.constant(command), fc.constantFrom(...Object.keys(command)))),
        ([command, field]) => {
          const { [field]: _removed, ...rest } = command as unknown as Record<string, unknown>;
          const ownTtl = command.op === "renew" && field === "ttlMs";
          const optional = ownTtl || OPTIONAL.has(field);
          const problem = commandProblem(rest);
          if (optional) expect(problem).toBeNull();
          else expect(problem?.field.split(".")[0]).toBe(field);
        },
      ),
    );
  });

  it("refuses an instant that is no instant", () => {
    const instants: readonly unknown[] = [
      null,
      undefined,
      5,
      {},
      { ...exactly(1), earliestMs: 2 },
      { ...exactly(1), stampMs: Number.NaN },
      exactly(-1),
      exactly(0.5),
      exactly(8_640_000_000_000_001),
    ];
    for (const now of instants) {
      const decided = decide(acquire("a"), { record: null, floor: 0n }, now as StoreInstant, DEFAULT_POLICY);
      expect(expectRefused(decided)).toMatch(/^now/);
    }
  });

  it("survives objects that fight back: throwing getters, changing getters, revoked proxies", () => {
    const revoked = Proxy.revocable({}, {});
    revoked.revoke();
    const fury = (): never => {
      throw new Error("no");
    };
    let reads = 0;
    const fighters: readonly unknown[] = [
      revoked.proxy,
      { ...acquire("a"), key: revoked.proxy },
      Object.defineProperty({ ...acquire("a") }, "op", { get: fury }),
      Object.defineProperty({ ...acquire("a") }, "ttlMs", { get: fury, enumerable: true }),
      Object.defineProperty({ ...acquire("a") }, "nonce", {
        get: () => {
          reads += 1;
          return reads > 1 ? fury() : "n";
        },
      }),
      Object.assign(() => undefined, acquire("a")),
    ];
    for (const fighter of fighters) {
      expectRefused(decide(fighter as LeaseCommand, { record: null, floor: 0n }, exactly(1), DEFAULT_POLICY));
    }
  });

  it("ignores fields that do not belong to the command", () => {
    const cell = { record: null, floor: 0n };
    const held = decide(acquire("a"), cell, exactly(1), DEFAULT_POLICY);
    const record = held.effect.kind === "write" ? held.effect.record : null;
    const stray = { ttlMs: -5, withinMs: "x", periodMs: null, purpose: 7, successor: "\n" };
    const { decision } = decide(
      { ...release("a"), ...stray } as LeaseCommand,
      { record, floor: 0n },
      exactly(2),
      DEFAULT_POLICY,
    );
    expect(decision.kind).toBe("granted");
  });
});

describe("decide is pure", () => {
  it("gives the same bytes for the same input, and never writes to it", () => {
    fc.assert(
      fc.property(commands, snapshots, storeInstants, policies, (command, snapshot, now, policy) => {
        const first = decide(freeze(command), freeze(snapshot), freeze(now), freeze(policy));
        const bytes = canonical(first);
        const second = decide(
          structuredClone(command),
          structuredClone(snapshot),
          structuredClone(now),
          policy,
        );
        expect(canonical(second)).toBe(bytes);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("a decision stands on its own", () => {
  it("what a caller does to its command afterwards does not reach the record", () => {
    const key = { tenant: "acme", name: "orders/42", stray: "field" };
    const { effect } = decide(acquire("a", { key }), { record: null, floor: 0n }, exactly(1), DEFAULT_POLICY);
    key.name = "another";
    expect(effect).toMatchObject({ kind: "write" });
    expect(effect.kind === "write" ? effect.record.key : null).toEqual({ tenant: "acme", name: "orders/42" });
  });
});

describe("every decision", () => {
  it("keeps to its shape: a grant names no other holder, a denial carries nothing of its own", () => {
    fc.assert(
      fc.property(commands, snapshots, storeInstants, policies, (command, snapshot, now, policy) => {
        const { bundle, decision, effect } = decide(command, snapshot, now, policy);
        expect(bundle.grantEligible).toBe(decision.kind === "granted");
        const isMismatch = decision.reason === "LEASE_PURPOSE_MISMATCH";
        const shapes = {
          granted: ["kind", "reason", "lease", "resumeFromLedgerRequired", "replayed"],
          denied: ["kind", "reason", "heldBy", "heldUntilMs", "fence", ...(isMismatch ? ["mismatch"] : [])],
          refused: ["kind", "reason", "field", "message"],
        };
        expect(Object.keys(decision)).toEqual(shapes[decision.kind]);
        expect(decision.reason === "OK_DECISION_COMPUTE").toBe(decision.kind === "granted");
        if (decision.kind !== "granted") {
          expect(effect).toEqual({ kind: "none" });
          expect(bundle.reason).toBe(decision.reason);
          expect(canonical(decision)).not.toContain(snapshot.record?.tokenHash ?? "no record");
        }
        if (effect.kind === "write" && decision.kind === "granted")
          expect(effect.record).toBe(decision.lease);
      }),
      { numRuns: 3_000 },
    );
  });

  it("that writes carries the nonce of its own attempt, so that it is recognised after a lost reply", () => {
    fc.assert(
      fc.property(commands, snapshots, storeInstants, policies, (command, snapshot, now, policy) => {
        const { effect } = decide(command, snapshot, now, policy);
        if (effect.kind === "write") expect(effect.record.nonce).toBe(command.nonce);
      }),
    );
  });

  it("says until when it is held only to those who want to acquire", () => {
    const held = decide(acquire("a"), { record: null, floor: 0n }, exactly(1), DEFAULT_POLICY);
    const record = held.effect.kind === "write" ? held.effect.record : null;
    const { decision } = decide(renew("b"), { record, floor: 0n }, exactly(2), DEFAULT_POLICY);
    expect(decision).toEqual({
      kind: "denied",
      reason: "LEASE_HELD_BY_OTHER",
      heldBy: "a",
      heldUntilMs: null,
      fence: 1000n,
    });
  });
});
