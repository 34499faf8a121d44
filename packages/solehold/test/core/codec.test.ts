/** The record as text: it comes back exactly, or the damage is reported. Nothing in between. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeRecord, encodeRecord, type LeaseRecord } from "../../src/core/index.ts";
import { records } from "./arbitraries.ts";
import { acquire, Cell, handoff, hashOf, KEY } from "./cell.ts";

function sample(): LeaseRecord {
  const cell = new Cell();
  const idempotency = { keyHash: hashOf("k"), fingerprint: hashOf("f"), sealedToken: "sealed" };
  const proof = { nonce: "nonce-1", tokenHash: hashOf("z") };
  cell.run(acquire("Zürich 😀", { ...proof, idempotency, note: "by hand", term: 7n }), 1_000);
  cell.run(handoff("Zürich 😀", "next", proof), 2_000);
  return { ...cell.record!, generation: 2n ** 53n + 1n, breakAtMs: 9_000 };
}

/** The checksum as the format defines it, written a second time: FNV-1a over UTF-16 units. */
function sealed(body: string): string {
  let hash = 0x811c9dc5;
  for (const unit of Array.from({ length: body.length }, (_, index) => body.charCodeAt(index))) {
    hash = Math.imul(hash ^ unit, 0x01000193) >>> 0;
  }
  return body + hash.toString(16).padStart(8, "0");
}

function withLine(index: number, value: string): string {
  const lines = encodeRecord(sample()).split("\n");
  lines[index] = value;
  return sealed(`${lines.slice(0, -1).join("\n")}\n`);
}

/** Damage, or exactly what was encoded. */
function expectHarmless(text: string, record: LeaseRecord): void {
  const decoded = decodeRecord(text, KEY);
  if (decoded.ok) expect(decoded.record).toEqual(record);
  else expect(decoded.detail.length).toBeGreaterThan(0);
}

describe("a record", () => {
  it("comes back exactly, whatever it holds", () => {
    fc.assert(
      fc.property(records, (record) => {
        expect(decodeRecord(encodeRecord(record), KEY)).toEqual({ ok: true, record });
      }),
      { numRuns: 1_000 },
    );
  });

  it("has one text only: equal records encode to equal bytes", () => {
    fc.assert(
      fc.property(records, (record) => {
        expect(encodeRecord(structuredClone(record))).toBe(encodeRecord(record));
      }),
    );
  });

  it("keeps fields apart that look alike: nothing, zero, and empty", () => {
    const base = { ...sample(), handoff: null, idempotency: null, note: "" };
    const variants = [
      { ...base, endedAtMs: null, breakAtMs: null },
      { ...base, endedAtMs: 0, breakAtMs: null },
      { ...base, endedAtMs: null, breakAtMs: 0 },
    ];
    for (const record of variants) {
      expect(decodeRecord(encodeRecord(record), KEY)).toEqual({ ok: true, record });
    }
    expect(new Set(variants.map(encodeRecord)).size).toBe(3);
  });

  it.each([
    ["not JSON", "{"],
    ["not an object", "[]"],
    ["a value that is no text", '{"a":1}'],
    ["a name outside of the alphabet", '{"a b":"c"}'],
  ])("with metadata that is %s is damaged", (_what, text) => {
    expect(decodeRecord(withLine(28, text), KEY)).toMatchObject({ ok: false });
  });

  it("can be read by a person: one field a line", () => {
    const lines = encodeRecord(sample()).split("\n");
    expect(lines).toHaveLength(32);
    expect(lines.slice(0, 5)).toEqual(["S2", "nonce-1", KEY.tenant, KEY.name, "Zürich 😀"]);
  });
});

describe("damage", () => {
  it("by a change of any single character is found", () => {
    const record = sample();
    const text = encodeRecord(record);
    for (let index = 0; index < text.length; index += 1) {
      for (const replacement of ["0", "1", "a", "\n", "\u0000", " ", "é", "\uffff"]) {
        if (text[index] === replacement) continue;
        const damaged = text.slice(0, index) + replacement + text.slice(index + 1);
        expect(decodeRecord(damaged, KEY).ok, `character ${index} as ${JSON.stringify(replacement)}`).toBe(
          false,
        );
      }
    }
  });

  it("by a flip of any single bit is found", () => {
    fc.assert(
      fc.property(records, fc.nat(), fc.nat({ max: 15 }), (record, position, bit) => {
        const text = encodeRecord(record);
        const index = position % text.length;
        const flipped = String.fromCharCode(text.charCodeAt(index) ^ (1 << bit));
        expect(decodeRecord(text.slice(0, index) + flipped + text.slice(index + 1), KEY).ok).toBe(false);
      }),
      { numRuns: 2_000 },
    );
  });

  it("by a cut at any length is found", () => {
    const text = encodeRecord(sample());
    for (let length = 0; length < text.length; length += 1) {
      expect(decodeRecord(text.slice(0, length), KEY).ok).toBe(false);
      expect(decodeRecord(text.slice(length + 1), KEY).ok).toBe(false);
    }
  });

  it("by an extra line, a lost line or a doubled line is found", () => {
    const text = encodeRecord(sample());
    const lines = text.split("\n");
    for (let index = 0; index <= lines.length; index += 1) {
      expect(decodeRecord(lines.toSpliced(index, 0, "").join("\n"), KEY).ok).toBe(false);
      expect(decodeRecord(lines.toSpliced(index, 0, lines[index] ?? "x").join("\n"), KEY).ok).toBe(false);
      if (index < lines.length)
        expect(decodeRecord(lines.toSpliced(index, 1).join("\n"), KEY).ok).toBe(false);
    }
    expect(decodeRecord(`${text}\n`, KEY).ok).toBe(false);
  });

  it("by two lines that changed places is found, or they were equal", () => {
    const record = sample();
    const lines = encodeRecord(record).split("\n");
    for (let first = 0; first < lines.length; first += 1) {
      for (let second = first + 1; second < lines.length; second += 1) {
        const swapped = lines.with(first, lines[second]!).with(second, lines[first]!);
        expectHarmless(swapped.join("\n"), record);
      }
    }
  });

  it("by two records that were torn together is found, or the result is one of them", () => {
    fc.assert(
      fc.property(records, records, fc.nat(), (left, right, position) => {
        const [a, b] = [encodeRecord(left), encodeRecord(right)];
        const cut = position % Math.min(a.length, b.length);
        const torn = a.slice(0, cut) + b.slice(cut);
        if (torn === a || torn === b) return;
        expect(decodeRecord(torn, KEY).ok).toBe(false);
      }),
      { numRuns: 1_000 },
    );
  });

  it("that is not a record at all never throws", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("", "S1", "S1\n", "S2\n", "{}")),
        (text) => {
          expect(decodeRecord(text, KEY).ok).toBe(false);
        },
      ),
    );
  });

  it("under another key is found: a misdirected write is damage, too", () => {
    const text = encodeRecord(sample());
    expect(decodeRecord(text, { ...KEY, name: "orders/43" })).toMatchObject({
      ok: false,
      detail: "it belongs to another key",
    });
    expect(decodeRecord(text, { ...KEY, tenant: "other" }).ok).toBe(false);
  });
});

describe("a text with a valid checksum", () => {
  it("is checked line by line all the same", () => {
    expect(decodeRecord(withLine(24, "another note"), KEY)).toMatchObject({ ok: true });
    expect(decodeRecord(withLine(5, "Lunch"), KEY)).toMatchObject({
      ok: false,
      detail: expect.stringContaining("purpose 'Lunch'"),
    });
    expect(decodeRecord(withLine(14, "gone"), KEY)).toMatchObject({
      ok: false,
      detail: expect.stringContaining("state 'gone'"),
    });
  });

  it.each(["", " ", "-1", "-0", "+5", "05", "0x10", "1e3", "1.0", "5 ", "1_000", "NaN", "9007199254740993"])(
    "holds no number that is written as %j",
    (value) => {
      for (const line of [9, 10, 11, 12, 15]) {
        expect(decodeRecord(withLine(line, value), KEY), `line ${line}`).toMatchObject({ ok: false });
      }
    },
  );

  it.each(["", " ", "-1", "+5", "05", "0x10", "1e3", "1.0", "5 ", "18446744073709551616"])(
    "holds no term and no generation that is written as %j",
    (value) => {
      for (const line of [7, 8]) {
        expect(decodeRecord(withLine(line, value), KEY), `line ${line}`).toMatchObject({ ok: false });
      }
    },
  );

  it.each(["", "2", "true", " "])("says yes or no in one way: %j is neither", (value) => {
    expect(decodeRecord(withLine(16, value), KEY).ok).toBe(false);
  });
});
