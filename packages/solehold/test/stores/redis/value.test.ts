/** A record as a value: it comes back whole, and what is not whole is called damaged, never believed. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LeaseRecord, LeaseState } from "../../../src/core/index.ts";
import {
  decodeValue,
  type Extent,
  encodeExtent,
  encodeValue,
  extentOf,
  HEADER_LENGTH,
  headerOf,
  LONGEST_PART,
} from "../../../src/stores/redis/value.ts";
import { HIGH, recordOf } from "../records.ts";

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

/** As most are: soon renewed, soon over, written by Solehold. */
const usualRecord: fc.Arbitrary<LeaseRecord> = fc
  .record({
    after: fc.array(fc.nat({ max: 9_999_999_999 }), { minLength: 3, maxLength: 3 }),
    endedAtMs: fc.boolean(),
    renewals: fc.nat(),
    generation: u64,
    grantedAtMs: fc.integer({ min: 1_600_000_000_000, max: 2_000_000_000_000 }),
    nonce: fc.stringMatching(/^[\w-]{22}$/),
    tokenHash: fc.stringMatching(/^[\w-]{43}$/),
    state: fc.constantFrom<LeaseState>("held", "released", "revoked"),
  })
  .map(({ after: [renewed = 0, expires = 0, ended = 0], endedAtMs, grantedAtMs, ...fields }) =>
    recordOf("job", {
      ...fields,
      grantedAtMs,
      renewedAtMs: grantedAtMs + renewed,
      expiresAtMs: grantedAtMs + renewed + expires,
      endedAtMs: endedAtMs ? grantedAtMs + ended : null,
    }),
  );

describe("a value", () => {
  it("brings back every record unchanged", () => {
    fc.assert(
      fc.property(anyRecord, (record) => {
        expect(decodeValue(encodeValue(record), record.key)).toEqual({ ok: true, record });
      }),
    );
  });

  it("brings back what differs in a single field from the record that was written just before", () => {
    fc.assert(
      fc.property(usualRecord, fc.oneof(usualRecord, anyRecord), (usual, other) => {
        for (const field of Object.keys(usual) as (keyof LeaseRecord)[]) {
          const changed = { ...usual, [field]: other[field], key: usual.key };
          encodeValue(usual);
          expect(decodeValue(encodeValue(changed), usual.key)).toEqual({ ok: true, record: changed });
        }
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

  it("differs from another no further down than it is said to, whatever field is another", () => {
    const kept = { state: 1, "state and grant": 2, all: 18 };
    const lines = (record: LeaseRecord, from: number) => encodeValue(record).split("\n").slice(from);
    const claim = (before: LeaseRecord, next: LeaseRecord): void => {
      const extent = extentOf(before, next);
      const from = kept[extent];
      const sent = encodeExtent(next, extent, String(next.generation));
      expect(lines(next, from)).toEqual(lines(before, from));
      expect(extent === "all" ? sent : sent + encodeValue(before).slice(sent.length)).toBe(encodeValue(next));
      expect(sent.length <= LONGEST_PART).toBe(extent !== "all");
    };
    fc.assert(
      fc.property(usualRecord, fc.oneof(usualRecord, anyRecord), (usual, other) => {
        for (const field of Object.keys(usual) as (keyof LeaseRecord)[]) {
          const changed = { ...usual, [field]: other[field], key: usual.key };
          claim(usual, changed);
          claim(changed, usual);
        }
      }),
    );
  });

  it.each<[Extent, Partial<LeaseRecord>]>([
    ["state", { renewedAtMs: 1_750_000_000_500, expiresAtMs: 1_750_000_030_500, renewals: 10 }],
    ["state", { state: "released", endedAtMs: 1_750_000_012_345 }],
    ["state and grant", { generation: HIGH + 1n, grantedAtMs: 1_749_999_999_999 }],
    ["all", { holder: "holder-2" }],
  ])("is sent as '%s' when no more is another", (extent, change) => {
    expect(extentOf(recordOf("job"), recordOf("job", change))).toBe(extent);
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
    [" 1000000000000000000 ", " 1000000000000000x00 ", "generation"],
    [" - 0 30000 0 ", " - x 30000 0 ", "renewedAtMs"],
    [" - 0 30000 0 ", " 1 0 30.00 0 ", "expiresAtMs"],
    ["1750000000000 ", "-750000000000 ", "grantedAtMs"],
  ])("in which '%s' became '%s' is damaged", (from, to, field) => {
    const { key } = recordOf("job");
    const decoded = decodeValue(encodeValue(recordOf("job")).replace(from, to), key);
    expect(decoded).toMatchObject({ ok: false, detail: expect.stringContaining(field) });
  });

  it("of any text whatever never throws", () => {
    fc.assert(fc.property(fc.string(), (text) => decodeValue(text, recordOf("job").key).ok === false));
    fc.assert(
      fc.property(fc.array(fc.string(), { minLength: 18, maxLength: 18 }), (fields) => {
        expect(decodeValue(fields.join("\n"), recordOf("job").key).ok).toBe(false);
      }),
    );
  });
});
