/** Values of the embedded store: bytes made without making the text first, and read back or found damaged. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeRecord, encodeRecord, type LeaseRecord } from "../../../src/core/index.ts";
import { ManualEnv } from "../../../src/env/index.ts";
import { ByteLines } from "../../../src/stores/embedded/byte-lines.ts";
import { firstEpoch, StoreClock } from "../../../src/stores/embedded/clock.ts";
import { LineBytes } from "../../../src/stores/embedded/member-line.ts";
import { ShortForm } from "../../../src/stores/embedded/short-form.ts";
import { memberLine } from "../../../src/stores/embedded/state.ts";
import { epochHeader, ValueCodec } from "../../../src/stores/embedded/value.ts";
import { records } from "../../core/arbitraries.ts";
import { recordNamed } from "./fixtures.ts";

const HEADER = Buffer.from("E7.00c0ffee\n");

function newCodec(): ValueCodec {
  const env = new ManualEnv();
  const boot = { id: "id:test", aheadMs: 0 };
  return new ValueCodec(new StoreClock(firstEpoch(env, boot), env, boot));
}

/** What the bytes must be: the text of core's codec, in UTF-8. */
function expectedBytes(record: LeaseRecord): Buffer {
  return Buffer.concat([HEADER, Buffer.from(encodeRecord(record))]);
}

/** Any text at all: lone surrogates, control characters, characters beyond the basic plane. */
const anyText = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({ unit: fc.constantFrom("a", "~", "\u007f", "\u0080", "ß", "\ud83d", "\ude00", "€", "\u0000") }),
);
const anyNumber = fc.oneof(
  fc.maxSafeNat(),
  fc.integer(),
  fc.double(),
  fc.constantFrom(0, -0, 9, 10, 99_999_999, 1e8, 1e8 + 1, 2 ** 31 - 1, 2 ** 31, 2 ** 53 - 1, 2 ** 53),
);
const anyBigint = fc.oneof(
  fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }),
  fc.constantFrom(0n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 64n - 1n),
);
/** Far beyond what a manager would ever write. */
const strangeRecords: fc.Arbitrary<LeaseRecord> = fc
  .record({
    key: fc.record({ tenant: anyText, name: anyText }),
    ...{ holder: anyText, tokenHash: anyText, nonce: anyText, note: anyText },
    ...{ term: anyBigint, generation: anyBigint },
    ...{ ttlMs: anyNumber, grantedAtMs: anyNumber, renewedAtMs: anyNumber, expiresAtMs: anyNumber },
    ...{ endedAtMs: fc.option(anyNumber), breakAtMs: fc.option(anyNumber), renewals: anyNumber },
    handoff: fc.option(fc.record({ successor: anyText, deadlineMs: anyNumber })),
    idempotency: fc.option(
      fc.record({ op: anyText, keyHash: anyText, fingerprint: anyText, sealedToken: anyText }),
    ),
  })
  .map((fields) => recordNamed("strange", fields));

const wholeNumber = fc.oneof(
  fc.maxSafeNat(),
  fc.nat(100),
  fc.constantFrom(2 ** 31 - 1, 2 ** 31, 1e8, 1e16 / 2, 2 ** 53 - 1),
);

describe("the bytes of a member's line", () => {
  it("are those of its text, and stay when others are made", () => {
    const lines = new LineBytes();
    const made: [Uint8Array, string][] = [];
    fc.assert(
      fc.property(wholeNumber, wholeNumber, wholeNumber, (epoch, markMs, sequence) => {
        made.push([lines.encode(epoch, markMs, sequence), memberLine({ epoch, markMs, sequence })]);
      }),
      { numRuns: 1_000 },
    );
    expect(made.map(([bytes]) => Buffer.from(bytes).toString())).toEqual(made.map(([, text]) => text));
  });
});

describe("the bytes of a record", () => {
  it("are those of its text, whatever it holds", () => {
    const lines = new ByteLines();
    fc.assert(
      fc.property(fc.oneof(records, strangeRecords), (record) => {
        expect(Buffer.from(lines.encode(HEADER, record))).toEqual(expectedBytes(record));
      }),
      { numRuns: 1_000 },
    );
  });

  it("stay as they are, however many others are encoded after them", () => {
    const lines = new ByteLines();
    const all = Array.from({ length: 2_000 }, (_, index) =>
      recordNamed(`job/${index}`, { note: "ö".repeat(index % 300), generation: BigInt(index) }),
    );
    const encoded = all.map((record) => lines.encode(HEADER, record));
    for (const [index, record] of all.entries()) {
      expect(Buffer.from(encoded[index]!).equals(expectedBytes(record)), `record ${index}`).toBe(true);
    }
  });

  it.each([0, 1, 20_000, 65_400, 65_536, 200_000])("may have a line of %i characters", (length) => {
    const lines = new ByteLines();
    for (const unit of ["x", "€"]) {
      const record = recordNamed("long", { note: unit.repeat(length), holder: unit.repeat(length) });
      for (let round = 0; round < 3; round += 1) {
        expect(Buffer.from(lines.encode(HEADER, record)).equals(expectedBytes(record))).toBe(true);
      }
    }
  });

  it("that a released version wrote are read as ever", () => {
    const text = [
      ...["S1", "AbCdEfGhIjKlMnOpQrStUv", "default", "orders/4711", "worker-1", "Operation"],
      ...["47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", "0", "12", "30000", "1750000000000"],
      ...["1750000010000", "1750000040000", "", "held", "3", "0", "", "", "", "", "", "", "", "by hand"],
      "383e1320",
    ].join("\n");
    const record = recordNamed("orders/4711", {
      ...{ nonce: "AbCdEfGhIjKlMnOpQrStUv", holder: "worker-1", generation: 12n, renewals: 3 },
      ...{ renewedAtMs: 1_750_000_010_000, expiresAtMs: 1_750_000_040_000, note: "by hand" },
    });
    expect(decodeRecord(text, record.key)).toEqual({ ok: true, record });
    expect(newCodec().decode(`E1.c5c74f84\n${text}`, record.key)).toEqual({ ok: true, record });
    expect(Buffer.from(newCodec().encode(record)).toString()).toBe(`${epochHeader(1)}${text}`);
  });
});

/** Nearly all records there are; each of the changes takes away the short form. */
const PLAIN = recordNamed("orders/4711", {
  ...{ nonce: "AbCdEfGhIjKlMnOpQrStUv", holder: "worker-1", generation: 12n, renewals: 3 },
  ...{ renewedAtMs: 1_750_000_010_000, expiresAtMs: 1_750_000_040_000 },
});
const UNUSUAL: readonly Partial<LeaseRecord>[] = [
  { note: "by hand" },
  { resumeRequired: true },
  { breakAtMs: 1_750_000_020_000 },
  { handoff: { successor: "next", deadlineMs: 7 } },
  { idempotency: { op: "acquire", keyHash: "k", fingerprint: "f", sealedToken: "s" } },
  { holder: "Zürich" },
  { generation: 2n ** 60n },
  { renewedAtMs: 1 },
  { expiresAtMs: 1 },
  { endedAtMs: 1 },
  { endedAtMs: 1_750_000_000_000.5 },
  { holder: "h".repeat(3_000) },
];

/** With instants in order, and without what is unusual; names and holders may still be anything. */
const plainRecords: fc.Arbitrary<LeaseRecord> = fc
  .tuple(records, fc.nat(), fc.nat(), fc.nat(), fc.option(fc.nat()))
  .map(([record, grantedAtMs, renewedMs, leftMs, endedMs]) => ({
    ...record,
    ...{ grantedAtMs, renewedAtMs: grantedAtMs + renewedMs, expiresAtMs: grantedAtMs + renewedMs + leftMs },
    ...{ endedAtMs: endedMs === null ? null : grantedAtMs + endedMs, generation: record.generation % 1_000n },
    ...{ note: "", idempotency: null, handoff: null, breakAtMs: null, resumeRequired: false, term: 0n },
  }));

describe("the short form of a record", () => {
  const text = [
    ...["2hO 1 0 12 30000 1750000000000 10000 30000 - 3", "AbCdEfGhIjKlMnOpQrStUv", "default"],
    ...["orders/4711", "worker-1", "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", "7c81e9ee"],
  ].join("\n");

  it("is what its file says, to the byte, and is read as ever", () => {
    expect(Buffer.from(newCodec().encode(PLAIN)).toString()).toBe(text);
    expect(newCodec().decode(text, PLAIN.key)).toEqual({ ok: true, record: PLAIN });
  });

  it("comes back as the record it was, and others in core's text", () => {
    const codec = newCodec();
    const forms = new Set<string>();
    fc.assert(
      fc.property(fc.oneof(records, plainRecords), (record) => {
        const value = Buffer.from(codec.encode(record)).toString();
        forms.add(value.charAt(0));
        expect(codec.decode(value, record.key)).toEqual({ ok: true, record });
      }),
      { numRuns: 2_000 },
    );
    expect([...forms].sort()).toEqual(["2", "E"]);
  });

  it.each([
    { state: "released", endedAtMs: 1_750_000_000_000 },
    { state: "revoked", endedAtMs: 1_750_000_020_000 },
    { purpose: "StateWrite" },
    { purpose: "MigrationHandoff" },
    { term: 2n ** 53n - 1n, generation: 0n },
    { holder: "\u0001 tab\tand \u007f" },
  ] as const)("has a place for %o", (changes) => {
    const record = { ...PLAIN, ...changes };
    const value = Buffer.from(newCodec().encode(record)).toString();
    expect(value.charAt(0)).toBe("2");
    expect(newCodec().decode(value, record.key)).toEqual({ ok: true, record });
  });

  it.each(UNUSUAL)("is not there for %o", (changes) => {
    const value = Buffer.from(newCodec().encode({ ...PLAIN, ...changes })).toString();
    expect(value.startsWith("E1.")).toBe(true);
  });

  it("stays as it is, however many others are encoded after it", () => {
    const codec = newCodec();
    const all = Array.from({ length: 2_000 }, (_, index) => ({ ...PLAIN, generation: BigInt(index) }));
    const values = all.map((record) => codec.encode(record));
    const read = values.map((value) => codec.decode(Buffer.from(value).toString(), PLAIN.key));
    expect(read).toEqual(all.map((record) => ({ ok: true, record })));
  });

  it("under another key, of another epoch, with a line too many, or cut, is damaged", () => {
    const codec = newCodec();
    const broken = Buffer.from(codec.encode({ ...PLAIN, tokenHash: "a\nb" })).toString();
    expect(codec.decode(broken, PLAIN.key)).toMatchObject({ detail: expect.stringContaining("lines") });
    expect(codec.decode(text, { tenant: "default", name: "orders/4712" }).ok).toBe(false);
    const later = new ShortForm().encode(2, PLAIN);
    expect(codec.decode(Buffer.from(later!).toString(), PLAIN.key)).toMatchObject({
      detail: expect.stringContaining("epoch"),
    });
    for (let length = 0; length < text.length; length += 1) {
      expect(codec.decode(text.slice(0, length), PLAIN.key).ok, `${length} characters`).toBe(false);
    }
  });
});

describe("a value with a flipped bit", () => {
  it.each([
    { form: "the short form", record: PLAIN },
    {
      form: "core's text",
      record: recordNamed("job", {
        ...{ holder: "Zürich 😀", endedAtMs: 0, breakAtMs: 5, generation: 2n ** 60n },
        handoff: { successor: "next", deadlineMs: 7 },
        idempotency: { op: "acquire", keyHash: "k", fingerprint: "f", sealedToken: "s" },
      }),
    },
  ])("is found damaged, wherever the bit is, in $form", ({ record }) => {
    const codec = newCodec();
    const sound = Buffer.from(codec.encode(record));
    expect(codec.decode(sound.toString(), record.key)).toEqual({ ok: true, record });
    for (let bit = 0; bit < sound.length * 8; bit += 1) {
      const flipped = Buffer.from(sound);
      flipped[bit >> 3]! ^= 1 << (bit & 7);
      expect(codec.decode(flipped.toString(), record.key).ok, `bit ${bit}`).toBe(false);
    }
  });

  it("and another one is found damaged as well", () => {
    const codec = newCodec();
    const sound = Buffer.from(codec.encode(PLAIN));
    const anyBit = fc.nat(sound.length * 8 - 1);
    fc.assert(
      fc.property(anyBit, anyBit, (first, second) => {
        fc.pre(first !== second);
        const flipped = Buffer.from(sound);
        for (const bit of [first, second]) flipped[bit >> 3]! ^= 1 << (bit & 7);
        expect(codec.decode(flipped.toString(), PLAIN.key).ok).toBe(false);
      }),
      { numRuns: 5_000 },
    );
  });
});
