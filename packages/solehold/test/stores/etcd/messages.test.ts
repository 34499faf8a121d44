/** etcd's messages, by the field numbers that its `rpc.proto` gives them; the kit shows that a server agrees. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  decodeAuthenticate,
  decodeRange,
  decodeStatus,
  decodeTransaction,
  decodeWatch,
  encodeCompare,
  encodeRange,
  encodeTransaction,
  encodeWatch,
  putOp,
  type ResponseOp,
  rangeOp,
  transactionOp,
} from "../../../src/stores/etcd/messages.ts";
import { bytesField, MessageReader, numberField, ProtocolError } from "../../../src/stores/etcd/protobuf.ts";

const message = (...parts: readonly Buffer[]): Buffer => Buffer.concat(parts);
const header = (clusterId: bigint, revision: bigint): Buffer =>
  bytesField(1, message(numberField(1, clusterId), numberField(2, 9n), numberField(3, revision)));
const unknown = fc
  .array(fc.tuple(fc.integer({ min: 100, max: 999 }), fc.uint8Array({ maxLength: 20 })), { maxLength: 3 })
  .map((fields) => message(...fields.map(([number, bytes]) => bytesField(number, bytes))));
const revision = fc.bigInt({ min: 0n, max: 2n ** 63n - 1n });
const bytes = fc.uint8Array({ maxLength: 40 });
const pair = fc.record({ key: bytes, modRevision: revision, value: bytes });

function pairBytes(
  { key, modRevision, value }: { key: Uint8Array; modRevision: bigint; value: Uint8Array },
  extra: Buffer,
): Buffer {
  return message(
    bytesField(1, key),
    numberField(2, 5n),
    numberField(3, modRevision),
    numberField(4, 1n),
    extra,
    bytesField(5, value),
  );
}

/** All fields of a message as numbers and hexadecimal text. */
function fieldsOf(content: Uint8Array): [number, string | bigint][] {
  const fields: [number, string | bigint][] = [];
  const reader = new MessageReader(content);
  while (reader.next()) {
    try {
      fields.push([reader.field, Buffer.from(reader.bytes()).toString("hex")]);
    } catch {
      fields.push([reader.field, reader.signed()]);
    }
  }
  return fields;
}

const hex = (text: string): string => Buffer.from(text).toString("hex");

describe("a reply", () => {
  it("to a range keeps its pairs in order, whatever unknown fields are between", () => {
    fc.assert(
      fc.property(fc.array(pair, { maxLength: 4 }), revision, unknown, (pairs, at, extra) => {
        const kvs = pairs.map((each) => bytesField(2, pairBytes(each, extra)));
        const decoded = decodeRange(
          message(extra, header(2n ** 64n - 1n, at), ...kvs, numberField(3, 1n), extra),
        );
        expect(decoded.header).toEqual({ clusterId: 2n ** 64n - 1n, revision: at });
        expect(decoded.more).toBe(true);
        expect(
          decoded.pairs.map((each) => ({ ...each, key: [...each.key], value: [...each.value] })),
        ).toEqual(pairs.map((each) => ({ ...each, key: [...each.key], value: [...each.value] })));
      }),
    );
  });

  it("to a transaction says for each operation what became of it", () => {
    const inner = message(numberField(2, 1n), bytesField(3, bytesField(2, Buffer.alloc(0))));
    const range = message(
      bytesField(2, pairBytes({ key: Buffer.of(1), modRevision: 4n, value: Buffer.of(2) }, message())),
    );
    const ops = [bytesField(4, inner), bytesField(1, range), bytesField(3, Buffer.alloc(0))];
    const decoded = decodeTransaction(message(header(1n, 7n), ...ops.map((op) => bytesField(3, op))));
    expect(decoded.succeeded).toBe(false);
    expect(decoded.responses.map(({ kind }) => kind)).toEqual(["transaction", "range", "done"]);
    const [first] = decoded.responses as [Extract<ResponseOp, { kind: "transaction" }>];
    expect(first.transaction).toMatchObject({ succeeded: true, responses: [{ kind: "done" }] });
  });

  it("of a watch carries events, cancellation and compaction", () => {
    const kv = pairBytes({ key: Buffer.from("k"), modRevision: 12n, value: Buffer.from("v") }, message());
    const put = bytesField(11, bytesField(2, kv));
    const deleted = message(bytesField(1, "k"), numberField(3, 13n));
    const gone = bytesField(11, message(numberField(1, 1n), bytesField(2, deleted)));
    const decoded = decodeWatch(
      message(
        header(1n, 13n),
        numberField(4, 1n),
        numberField(5, 11n),
        bytesField(6, "why"),
        numberField(7, 1n),
        put,
        gone,
      ),
    );
    expect(decoded).toMatchObject({
      header: { revision: 13n },
      created: false,
      canceled: true,
      compactRevision: 11n,
      cancelReason: "why",
      fragment: true,
    });
    expect(decoded.events.map(({ modRevision }) => modRevision)).toEqual([12n, 13n]);
  });

  it("to a login is its token, and a status names the leader", () => {
    expect(decodeAuthenticate(message(header(1n, 1n), bytesField(2, "token.1")))).toBe("token.1");
    expect(
      decodeStatus(message(header(1n, 1n), bytesField(2, "3.4.23"), numberField(4, 2n ** 64n - 1n))).leader,
    ).toBe(2n ** 64n - 1n);
  });

  it("that is nonsense is refused, and nothing worse happens", () => {
    const decoders = [decodeRange, decodeTransaction, decodeWatch, decodeStatus, decodeAuthenticate];
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (nonsense) => {
        for (const decode of decoders) {
          try {
            decode(nonsense);
          } catch (error) {
            expect(error).toBeInstanceOf(ProtocolError);
          }
        }
      }),
      { numRuns: 2_000 },
    );
    expect(() => decodeTransaction(bytesField(3, Buffer.alloc(0)))).toThrow(ProtocolError);
    expect(() => decodeWatch(bytesField(11, Buffer.alloc(0)))).toThrow(ProtocolError);
    let deep: Buffer = Buffer.alloc(0);
    for (let depth = 0; depth < 5_000; depth += 1) deep = bytesField(3, bytesField(4, deep));
    expect(() => decodeTransaction(deep)).toThrow(/nested too deeply/);
  });
});

describe("a request", () => {
  it("compares the revision of the last write, and sends a zero as well", () => {
    for (const at of [0n, 5n]) {
      expect(fieldsOf(encodeCompare(Buffer.from("k"), at))).toEqual([
        [2, 2n],
        [3, hex("k")],
        [6, at],
      ]);
    }
  });

  it("is linearizable, limited and ends before the end of its range", () => {
    const range = encodeRange({ key: Buffer.from("a"), rangeEnd: Buffer.from("b"), limit: 7 });
    expect(fieldsOf(range)).toEqual([
      [1, hex("a")],
      [2, hex("b")],
      [3, 7n],
    ]);
  });

  it("puts each branch of a transaction where it belongs", () => {
    const key = Buffer.from("k");
    const [compare, put, range] = [encodeCompare(key, 1n), putOp(key, "v"), rangeOp({ key })];
    const encoded = encodeTransaction({ compare: [compare], success: [put, range], failure: [range] });
    expect(fieldsOf(encoded)).toEqual([
      [1, compare.toString("hex")],
      [2, put.toString("hex")],
      [2, range.toString("hex")],
      [3, range.toString("hex")],
    ]);
    const nested = transactionOp({ compare: [compare], success: [put, range], failure: [range] });
    expect(fieldsOf(nested)).toEqual([[4, encoded.toString("hex")]]);
  });

  it("for a watch asks for progress and for pieces", () => {
    const watch = encodeWatch({ key: Buffer.from("a"), rangeEnd: Buffer.from("b"), startRevision: 3n });
    const [[, create]] = fieldsOf(watch) as [[number, string]];
    expect(fieldsOf(Buffer.from(create, "hex"))).toEqual([
      [1, hex("a")],
      [2, hex("b")],
      [3, 3n],
      [4, 1n],
      [8, 1n],
    ]);
  });
});
