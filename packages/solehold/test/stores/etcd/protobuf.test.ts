/** The wire format: what is written is read back, what is unknown is skipped, what is no message is refused. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bytesField, MessageReader, numberField, ProtocolError } from "../../../src/stores/etcd/protobuf.ts";

type Field = readonly ["number", number, bigint] | readonly ["bytes", number, Uint8Array];

const fieldNumber = fc.integer({ min: 1, max: 2 ** 20 });
const unsigned = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const field: fc.Arbitrary<Field> = fc.oneof(
  fc.tuple(fc.constant("number" as const), fieldNumber, unsigned),
  fc.tuple(fc.constant("bytes" as const), fieldNumber, fc.uint8Array({ maxLength: 300 })),
);

function encode(fields: readonly Field[]): Buffer {
  return Buffer.concat(
    fields.map(([kind, number, value]) =>
      kind === "number" ? numberField(number, value) : bytesField(number, value),
    ),
  );
}

function walk(bytes: Uint8Array): void {
  const reader = new MessageReader(bytes);
  while (reader.next()) void reader.field;
}

describe("a message", () => {
  it("is read back field by field, in order", () => {
    fc.assert(
      fc.property(fc.array(field, { maxLength: 8 }), (fields) => {
        const reader = new MessageReader(encode(fields));
        for (const [kind, number, value] of fields) {
          expect(reader.next()).toBe(true);
          expect(reader.field).toBe(number);
          if (kind === "number") expect(reader.unsigned()).toBe(value);
          else expect(Buffer.from(reader.bytes())).toEqual(Buffer.from(value));
        }
        expect(reader.next()).toBe(false);
      }),
    );
  });

  it("keeps negative numbers, and the largest", () => {
    for (const value of [
      -1n,
      -(2n ** 63n),
      2n ** 63n - 1n,
      0n,
      127n,
      128n,
      2n ** 31n,
      2n ** 49n,
      2n ** 53n + 1n,
    ]) {
      const reader = new MessageReader(numberField(1, value));
      reader.next();
      expect(reader.signed()).toBe(value);
    }
  });

  it("may have fields of fixed width, which are skipped", () => {
    const fixed = Buffer.from([(1 << 3) | 1, 1, 2, 3, 4, 5, 6, 7, 8, (2 << 3) | 5, 1, 2, 3, 4]);
    const reader = new MessageReader(Buffer.concat([fixed, numberField(3, 7n)]));
    while (reader.next()) if (reader.field === 3) expect(reader.unsigned()).toBe(7n);
    expect(reader.field).toBe(3);
    const mistaken = new MessageReader(fixed);
    mistaken.next();
    expect(() => mistaken.unsigned()).toThrow(ProtocolError);
    expect(() => mistaken.bytes()).toThrow(ProtocolError);
  });
});

describe("bytes that are no message", () => {
  it("are refused when a message is cut anywhere but between two fields", () => {
    fc.assert(
      fc.property(fc.array(field, { minLength: 1, maxLength: 4 }), fc.nat(), (fields, seed) => {
        const whole = encode(fields);
        const ends = new Set(fields.map((_, index) => encode(fields.slice(0, index)).length));
        const length = seed % whole.length;
        if (ends.has(length)) return walk(whole.subarray(0, length));
        expect(() => walk(whole.subarray(0, length))).toThrow(ProtocolError);
      }),
    );
  });

  it.each([
    ["a number of more than 10 bytes", [8, ...Array<number>(10).fill(0x80), 0]],
    ["a number of more than 64 bits", [8, ...Array<number>(9).fill(0xff), 0x02]],
    ["the field number 0", [0, 0]],
    ["a group", [(1 << 3) | 3, (1 << 3) | 4]],
    ["an unknown wire type", [(1 << 3) | 7]],
    ["a length beyond the end", [(1 << 3) | 2, 5, 1]],
    ["a length beyond all memory", [(1 << 3) | 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]],
    ["a tag beyond 31 bits", [0xff, 0xff, 0xff, 0xff, 0x7f]],
  ])("are refused before anything of them is read: %s", (_what, bytes) => {
    expect(() => new MessageReader(Uint8Array.from(bytes)).next()).toThrow(ProtocolError);
  });

  it("are either walked through or refused, never anything else", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        try {
          walk(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
