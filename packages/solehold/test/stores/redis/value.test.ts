/** A record as a value: it comes back whole, and what is not whole is called damaged, never believed. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LeaseRecord } from "../../../src/core/index.ts";
import { decodeValue, encodeValue, HEADER_LENGTH, headerOf } from "../../../src/stores/redis/value.ts";
import { recordOf } from "../records.ts";

const line = fc.string({ unit: "grapheme", maxLength: 40 }).filter((text) => !/\p{Cc}/u.test(text));
const token = fc.stringMatching(/^[A-Za-z0-9_\-:./]{1,64}$/);
const instant = fc.maxSafeNat();
const u64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });

const anyRecord: fc.Arbitrary<LeaseRecord> = fc.record({
  key: fc.record({ tenant: fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,10}$/), name: line }),
  holder: line,
  purpose: fc.constantFrom("Operation", "StateWrite", "MigrationHandoff"),
  tokenHash: token,
  term: u64,
  generation: u64,
  ttlMs: instant,
  grantedAtMs: instant,
  renewedAtMs: instant,
  expiresAtMs: instant,
  endedAtMs: fc.option(instant),
  state: fc.constantFrom("held", "released", "revoked"),
  renewals: instant,
  resumeRequired: fc.boolean(),
  breakAtMs: fc.option(instant),
  handoff: fc.option(fc.record({ successor: line, deadlineMs: instant })),
  nonce: token,
  idempotency: fc.option(fc.record({ op: token, keyHash: token, fingerprint: token, sealedToken: line })),
  note: line,
});

describe("a value", () => {
  it("brings back every record unchanged", () => {
    fc.assert(
      fc.property(anyRecord, (record) => {
        expect(decodeValue(encodeValue(record), record.key)).toEqual({ ok: true, record });
      }),
    );
  });

  it("begins with a header of fixed width that tells nonces apart", () => {
    fc.assert(
      fc.property(token, token, (one, other) => {
        expect(headerOf(one)).toHaveLength(HEADER_LENGTH);
        expect(headerOf(one) === headerOf(other)).toBe(one === other);
        expect(encodeValue(recordOf("job", { nonce: one })).slice(0, HEADER_LENGTH)).toBe(headerOf(one));
      }),
    );
  });

  it("that was cut or joined is damaged", () => {
    fc.assert(
      fc.property(anyRecord, fc.nat(), fc.string({ minLength: 1 }), (record, at, more) => {
        const value = encodeValue(record);
        expect(decodeValue(value.slice(0, at % value.length), record.key).ok).toBe(false);
        expect(decodeValue(value + more, record.key).ok).toBe(false);
        expect(decodeValue(more + value, record.key).ok).toBe(false);
      }),
    );
  });

  it("of another key is damaged", () => {
    const value = encodeValue(recordOf("job"));
    expect(decodeValue(value, { tenant: "default", name: "jo" }).ok).toBe(false);
    expect(decodeValue(value, { tenant: "defaul", name: "job" }).ok).toBe(false);
  });

  it.each([
    ["held", "hold", "state"],
    ["Operation", "Operatian", "purpose"],
    ["\n30000\n", "\n3e004\n", "ttlMs"],
    ["\n30000\n", "\n-3000\n", "ttlMs"],
    ["\n1000000000000000000\n", "\n1000000000000000x00\n", "generation"],
  ])("in which '%s' became '%s' is damaged", (from, to, field) => {
    const { key } = recordOf("job");
    const decoded = decodeValue(encodeValue(recordOf("job")).replace(from, to), key);
    expect(decoded).toMatchObject({ ok: false, detail: expect.stringContaining(field) });
  });

  it("of any text whatever never throws", () => {
    fc.assert(fc.property(fc.string(), (text) => decodeValue(text, recordOf("job").key).ok === false));
    fc.assert(
      fc.property(fc.array(fc.string(), { minLength: 26, maxLength: 26 }), (fields) => {
        expect(decodeValue(fields.join("\n"), recordOf("job").key).ok).toBe(false);
      }),
    );
  });
});
