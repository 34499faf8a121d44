/** Texts on their way into the database and back: arrays, prefixes, rows, payloads. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { COLUMNS, columnValues, storedRecordFrom } from "../../../src/stores/postgres/columns.ts";
import { changesFrom, EVERYTHING, type News, payloadsOf } from "../../../src/stores/postgres/payloads.ts";
import { PgQuery } from "../../../src/stores/postgres/pg-query.ts";
import { boundStatement, boundText } from "../../../src/stores/postgres/pg-wire.ts";
import { arrayLiteral, compareBytes, upperBound } from "../../../src/stores/postgres/sql-text.ts";
import { key, record } from "./support.ts";

function inByteOrder(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

describe("the range of a prefix", () => {
  it("holds exactly the names that begin with it", () => {
    // Around the gap of the surrogates, where byte order and code units disagree, and at the last code point.
    const edges = fc.constantFrom(0x61, 0x62, 0xd7ff, 0xe000, 0xfffd, 0x10000, 0x10ffff);
    const word = fc.array(edges, { maxLength: 3 });
    fc.assert(
      fc.property(word, word, (prefixPoints, namePoints) => {
        const [prefix, name] = [String.fromCodePoint(...prefixPoints), String.fromCodePoint(...namePoints)];
        const upper = upperBound(prefix);
        for (const each of [name, prefix + name]) {
          const inRange = inByteOrder(prefix, each) <= 0 && (upper === null || inByteOrder(each, upper) < 0);
          expect(inRange).toBe(each.startsWith(prefix));
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("the order of keys", () => {
  it("is that of their bytes", () => {
    const unit = fc.constantFrom("a", "b", "\u0000", "\ud7ff", "\ue000", "\uffff", "\u{10000}", "\u{10ffff}");
    const word = fc.array(unit, { maxLength: 4 }).map((units) => units.join(""));
    fc.assert(
      fc.property(word, word, (a, b) => {
        expect(Math.sign(compareBytes(a, b))).toBe(inByteOrder(a, b));
      }),
      { numRuns: 2_000 },
    );
  });
});

/** Reads the messages of a bound statement as the server does. */
function unbound(bytes: Buffer): { name: string; values: (string | null)[]; rest: string } {
  expect(bytes.toString("latin1", 0, 1)).toBe("B");
  const end = 1 + bytes.readInt32BE(1);
  const nameEnd = bytes.indexOf(0, 6);
  const values: (string | null)[] = [];
  let at = nameEnd + 5;
  for (let left = bytes.readUInt16BE(nameEnd + 3); left > 0; left -= 1) {
    const length = bytes.readInt32BE(at);
    at += 4;
    values.push(length < 0 ? null : bytes.toString("utf8", at, at + length));
    at += Math.max(0, length);
  }
  expect([bytes[5], bytes.readUInt16BE(nameEnd + 1), bytes.readUInt16BE(at), at + 2]).toEqual([0, 0, 0, end]);
  return { name: bytes.toString("latin1", 6, nameEnd), values, rest: bytes.toString("hex", end) };
}

describe("a bound statement", () => {
  it("holds the name and every value, and is followed by execute and sync", () => {
    const value = fc.option(fc.string({ unit: "binary", maxLength: 300 }));
    fc.assert(
      fc.property(fc.constantFrom("", "solehold_1"), fc.array(value, { maxLength: 20 }), (name, values) => {
        const found = unbound(Buffer.from(boundStatement(name, values)));
        expect(found).toEqual({ name, values, rest: "45000000090000000000" + "5300000004" });
      }),
    );
  });

  it("is the same as one text where all values are short and ASCII, and only there", () => {
    const ascii = fc.string({ unit: "binary-ascii", maxLength: 127 });
    const other = fc.constantFrom("é", "\u0080", "\u00ff", "€", "😀", "x".repeat(128));
    const values = fc.array(fc.option(ascii), { maxLength: 20 });
    fc.assert(
      fc.property(fc.constantFrom("", "solehold_1"), values, (name, all) => {
        const text = boundText(name, all);
        expect(Buffer.from(text ?? "", "latin1")).toEqual(Buffer.from(boundStatement(name, all)));
      }),
    );
    fc.assert(
      fc.property(values, other, values, (before, odd, after) => {
        expect(boundText("solehold_1", [...before, odd, ...after])).toBeNull();
      }),
    );
  });
});

describe("a query whose rows are only counted", () => {
  it.each([
    ["INSERT 0 1", "counted", 1],
    ["UPDATE 1", "counted", 1],
    ["UPDATE 0", "counted", 0],
    ["INSERT 0 0", "counted", 0],
    ["UPDATE 1", undefined, 0],
  ] as const)("that ends with '%s' and is %s answers %d", (text, answer, count) => {
    let length = -1;
    const statement = { name: "one", text: "", ...(answer === undefined ? {} : { answer }) };
    const query = new PgQuery(statement, [], (_error, rows) => {
      length = rows.length;
    });
    query.handleCommandComplete({ text });
    query.handleReadyForQuery();
    expect(length).toBe(count);
  });
});

describe("a query that is followed by another", () => {
  it("sends both in one piece, each behind its own parse, and the other sends nothing when its turn comes", () => {
    const sent: string[] = [];
    const wire = {
      parsedStatements: { first: "" },
      parse: ({ name }: { name: string }) => void sent.push(`parse ${name}`),
      stream: {
        writable: true,
        write: (bytes: Uint8Array | string) =>
          sent.push(unbound(Buffer.from(bytes as string, "latin1")).name),
        cork: () => void sent.push("cork"),
        uncork: () => void sent.push("uncork"),
      },
    };
    const ends: string[] = [];
    const [first, second] = ["first", "second"].map(
      (name) => new PgQuery({ name, text: "" }, [], () => ends.push(name)),
    ) as [PgQuery, PgQuery];
    first.followedBy(second);
    first.submit(wire);
    second.submit(wire);
    expect(sent).toEqual(["cork", "first", "parse second", "second", "uncork"]);
    first.handleError(new Error("refused"));
    first.handleReadyForQuery();
    expect(ends).toEqual(["first"]);
  });

  it.each([
    ["as one text when there is nothing to parse", true, "plain", ["first plain|second 2"]],
    ["as two when a value is not plain", true, "über", ["cork", "first über", "second 2", "uncork"]],
    ["not at all when the stream is closed", false, "plain", []],
  ])("is sent %s", (_case, writable, value, expected) => {
    const sent: string[] = [];
    const wire = {
      parsedStatements: { first: "", second: "" },
      parse: ({ name }: { name: string }) => void sent.push(`parse ${name}`),
      stream: {
        writable,
        write: (bytes: Uint8Array | string) => {
          // Each statement ends with "sync".
          const parts = Buffer.from(bytes as string, "latin1")
            .toString("latin1")
            .split("S\0\0\0\u0004");
          const messages = parts.slice(0, -1).map((part) => unbound(Buffer.from(part, "latin1")));
          sent.push(messages.map(({ name, values }) => [name, ...values].join(" ")).join("|"));
        },
        cork: () => void sent.push("cork"),
        uncork: () => void sent.push("uncork"),
      },
    };
    const first = new PgQuery({ name: "first", text: "" }, [value], () => undefined);
    const second = new PgQuery({ name: "second", text: "" }, ["2"], () => undefined);
    first.followedBy(second);
    first.submit(wire);
    second.submit(wire);
    expect(sent.filter((each) => writable || each.includes("first"))).toEqual(expected);
  });
});

describe("an array literal", () => {
  it("quotes what would end an element, and tells null from its name", () => {
    expect(arrayLiteral(['a"b', "c\\d", "e,f{}", "", null, "NULL"])).toBe(
      String.raw`{"a\"b","c\\d","e,f{}","",NULL,"NULL"}`,
    );
  });
});

describe("payloads", () => {
  const news = (id: string, held: News["held"] = "yes", holder = "me", generation = 1n): News => ({
    id,
    held,
    record: { holder, generation },
    end: null,
  });

  it("name every key and whether it is held, and are as long as the server allows", () => {
    const name = fc.string({ unit: "grapheme", maxLength: 200 }).filter((each) => !each.includes("\n"));
    const held = fc.constantFrom<News["held"]>("yes", "no", "unknown");
    const end = fc.option(fc.stringMatching(/^[\w:-]{1,150}$/), { freq: 1 });
    fc.assert(
      fc.property(fc.array(fc.tuple(name, held, end), { maxLength: 400 }), (keys) => {
        const all = keys.map(([each, state, how]) => ({ ...news(`default/${each}`, state), end: how }));
        const payloads = payloadsOf(all);
        expect(payloads.flatMap(changesFrom)).toEqual(
          keys.map(([each, state, how]) => ({
            key: key(each),
            held: state,
            by: expect.any(String),
            grant: "0001",
            end: how,
          })),
        );
        for (const payload of payloads) expect(Buffer.byteLength(payload)).toBeLessThan(8_000);
      }),
    );
  });

  it("are few and full: the longest keys do not exceed the limit either", () => {
    const all = Array.from({ length: 100 }, (_, index) => news(`default/${index}/${"\u6f22".repeat(250)}`));
    const sizes = payloadsOf(all).map((payload) => Buffer.byteLength(payload));
    expect(Math.max(...sizes)).toBeLessThan(8_000);
    expect(sizes.length).toBeLessThan(all.length / 8);
  });

  it("tell holders and grants apart, without names", () => {
    const [payload = ""] = payloadsOf([
      news("default/a", "no", "host:1", 1_794_775_264_617_001n),
      news("default/b", "yes", "host:2", 1_794_775_264_617_001n),
      { id: "default/c", held: "no", record: null, end: null },
      news("default/d", "no", "host:1", 1_794_775_264_617_002n),
    ]);
    const [a, b, c, d] = changesFrom(payload);
    expect(a?.by).toBe(d?.by);
    expect(a?.by).not.toBe(b?.by);
    expect(a?.grant).toBe(b?.grant);
    expect(a?.grant).not.toBe(d?.grant);
    expect(c).toMatchObject({ by: null, grant: null });
    expect(payload).not.toContain("host");
  });

  it("say that everything may have changed when there were too many", () => {
    expect(payloadsOf([news("default/a"), news(EVERYTHING)])).toEqual([EVERYTHING]);
  });

  it("are understood without letters, as earlier versions send them, and are understood by those", () => {
    const changes = [key("a/b"), key("c")].map((each) => ({
      key: each,
      held: "unknown",
      by: null,
      grant: null,
      end: null,
    }));
    expect(changesFrom("default/a/b\ndefault/c")).toEqual(changes);
    const ended: News = { ...news("default/a/b", "no"), end: "how:it-ended" };
    const [payload = ""] = payloadsOf([ended, news("default/c")]);
    // They take a line without a slash for no key.
    expect(payload.split("\n").filter((line) => line.includes("/"))).toEqual(["default/a/b", "default/c"]);
    // They read the marks in the last line.
    expect(payload.split("\n").at(-1)).toMatch(/^[\w-]{16}$/);
  });
});

describe("a row that makes no sense", () => {
  const of = key("job");
  const version = "6f1c1f0e-0000-4000-8000-000000000000";
  const good = columnValues(record(of)).map((value) => value ?? "");
  const rowWith = (column: string, value: string): string => {
    const index = COLUMNS.findIndex(({ name }) => name === column);
    return [version, ...good.with(index, value)].join("\n");
  };

  it("is read when it does make sense", () => {
    expect(storedRecordFrom([version, ...good].join("\n"), of)).toMatchObject({ kind: "found", version });
  });

  it.each([
    ["work_order_id", "another", /belongs to another key/],
    ["lease_state", "EXPIRED", /lease_state 'EXPIRED' is unknown/],
    ["lease_owner_id", "two\nlines", /is not|is unknown|belongs/],
    ["term", "-1", /term '-1' is not an unsigned 64-bit number/],
    ["generation", "18446744073709551616", /generation '18446744073709551616'/],
    ["acquired_at_ms", "9007199254740993", /acquired_at_ms/],
    ["lease_expires_at_ms", "", /lease_expires_at_ms '' is not a whole number/],
    ["idempotency_key_hash", "hash", /idempotency_key_hash does not fit/],
    ["details", "{", /JSON/],
    ["details", "[]", /details are not an object/],
    ["details", "{}", /details.ttlMs is not a whole number/],
    ["details", '{"ttlMs":1,"purpose":"Fun"}', /unknown purpose 'Fun'/],
    ["details", '{"ttlMs":1,"resumeRequired":"yes"}', /resumeRequired/],
    ["details", '{"ttlMs":1,"handoff":{"successor":"a"}}', /handoff.deadlineMs/],
    ["details", '{"ttlMs":1,"idempotency":{}}', /idempotency/],
    ["details", '{"ttlMs":1,"note":7}', /details.note is not a text/],
  ])("because of its %s (%j) is reported as corrupt, with its version", (column, value, detail) => {
    const stored = storedRecordFrom(rowWith(column, value), of);
    expect(stored).toMatchObject({ kind: "corrupt", version });
    expect(stored.kind === "corrupt" && stored.detail).toMatch(detail);
  });
});
