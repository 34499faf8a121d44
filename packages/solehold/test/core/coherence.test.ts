/** The first step of a decision validates that the snapshot is coherent: what is not is refused, never decided on. */
import { describe, expect, it } from "vitest";
import {
  decide,
  exactly,
  isDecidedByRequest,
  type LeaseRecord,
  type LeaseSnapshot,
} from "../../src/core/index.ts";
import { acquire, Cell, COUNTED, release, renew } from "./cell.ts";

function held(): LeaseRecord {
  const cell = new Cell();
  cell.run(acquire("a"), 1_000);
  if (cell.record === null) throw new Error("expected a record");
  return cell.record;
}

const without = (field: string): unknown => ({ ...held(), [field]: undefined });
const having = (changes: object): unknown => ({ ...held(), ...changes });

const INCOHERENT: readonly (readonly [string, unknown, string, string])[] = [
  ["no owner", without("holder"), "UPSTREAM_INPUT_MISSING", "snapshot.record.holder"],
  ["an empty owner", having({ holder: "" }), "UPSTREAM_INPUT_MISSING", "snapshot.record.holder"],
  ["no token", without("tokenHash"), "UPSTREAM_INPUT_MISSING", "snapshot.record.tokenHash"],
  ["no expiry", without("expiresAtMs"), "UPSTREAM_INPUT_MISSING", "snapshot.record.expiresAtMs"],
  [
    "an expiry of null",
    having({ expiresAtMs: null }),
    "UPSTREAM_INPUT_MISSING",
    "snapshot.record.expiresAtMs",
  ],
  [
    "an expiry that is no instant",
    having({ expiresAtMs: "soon" }),
    "INPUT_SCHEMA_INVALID",
    "snapshot.record.expiresAtMs",
  ],
  ["no key", without("key"), "UPSTREAM_INPUT_MISSING", "snapshot.record.key"],
  [
    "the key of another work order",
    having({ key: { tenant: "acme", name: "orders/43" } }),
    "INPUT_SCHEMA_INVALID",
    "snapshot.record.key",
  ],
  [
    "the key of another tenant",
    having({ key: { tenant: "other", name: "orders/42" } }),
    "INPUT_SCHEMA_INVALID",
    "snapshot.record.key",
  ],
  ["a term that is no bigint", having({ term: 1 }), "INPUT_SCHEMA_INVALID", "snapshot.record.term"],
  [
    "a negative generation",
    having({ generation: -1n }),
    "INPUT_SCHEMA_INVALID",
    "snapshot.record.generation",
  ],
  [
    "a generation beyond 64 bits",
    having({ generation: 2n ** 64n }),
    "INPUT_SCHEMA_INVALID",
    "snapshot.record.generation",
  ],
  ["an unknown state", having({ state: "sleeping" }), "INPUT_SCHEMA_INVALID", "snapshot.record.state"],
  ["no ttl", without("ttlMs"), "INPUT_SCHEMA_INVALID", "snapshot.record.ttlMs"],
];

describe("a snapshot", () => {
  it.each(INCOHERENT)(
    "with %s is refused with a code, and nothing is written",
    (_what, record, reason, field) => {
      const snapshot = { record: record as LeaseRecord, floor: 0n };
      for (const command of [acquire("b"), renew("a"), release("a")]) {
        const { decision, effect, bundle } = decide(command, snapshot, exactly(2_000), COUNTED);
        expect(decision).toMatchObject({ kind: "refused", reason, field });
        expect(effect).toEqual({ kind: "none" });
        expect(bundle).toMatchObject({ grantEligible: false, leaseExists: false, ownerMatch: false });
      }
    },
  );

  it.each([undefined, null, 5, {}])("that is %s is refused as missing", (snapshot) => {
    const { decision } = decide(acquire("a"), snapshot as unknown as LeaseSnapshot, exactly(1), COUNTED);
    expect(decision).toMatchObject({ kind: "refused", reason: "UPSTREAM_INPUT_MISSING" });
  });

  it("that is incoherent is not the request's fault: another snapshot may be asked for", () => {
    const record = having({ holder: "" }) as LeaseRecord;
    const { bundle } = decide(acquire("a"), { record, floor: 0n }, exactly(1), COUNTED);
    expect(isDecidedByRequest(bundle)).toBe(false);
  });
});
