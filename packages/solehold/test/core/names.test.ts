/** What a tenant, a name, a holder and a token may look like, against those who try everything else. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  equalInConstantTime,
  isReservedName,
  keyId,
  keyNameProblem,
  nameProblem,
  noteProblem,
  tenantProblem,
  tokenProblem,
} from "../../src/core/index.ts";

const HOSTILE: readonly (readonly [string, string])[] = [
  ["NUL", "a\u0000b"],
  ["a line feed", "a\nb"],
  ["a carriage return", "a\rb"],
  ["a tab", "a\tb"],
  ["an escape sequence", "a\u001b[31mb"],
  ["DEL", "a\u007fb"],
  ["a C1 control", "a\u0085b"],
  ["a lone high surrogate", "a\ud800b"],
  ["a lone low surrogate", "a\udc00b"],
  ["swapped surrogates", "\udc00\ud800"],
  ["a right-to-left override", "a\u202eb"],
  ["a left-to-right isolate", "a\u2066b"],
  ["a right-to-left mark", "a\u200fb"],
  ["a zero-width space", "a\u200bb"],
  ["a zero-width joiner", "a\u200db"],
  ["a byte order mark", "\ufeffa"],
  ["a soft hyphen", "a\u00adb"],
  ["an interlinear annotation", "a\ufff9b"],
  ["a line separator", "a\u2028b"],
  ["a paragraph separator", "a\u2029b"],
  ["a private use character", "a\ue000b"],
  ["a tag character", "a\u{e0041}b"],
  ["a Hangul filler", "\u3164"],
  ["a half-width Hangul filler", "a\uffa0"],
  ["a combining grapheme joiner", "a\u034fb"],
  ["a variation selector", "a\ufe0f"],
  ["a blank Braille pattern", "\u2800"],
  ["a leading space", " a"],
  ["a trailing space", "a "],
  ["a trailing no-break space", "a\u00a0"],
  ["only spaces", "  "],
  ["a letter that is not in normal form", "e\u0301"],
  ["a Hangul syllable that is not composed", "\u1100\u1161"],
  ["nothing", ""],
];

describe("names", () => {
  it.each(HOSTILE)("with %s are refused", (_what, text) => {
    expect(nameProblem(text, 256)).toBeTypeOf("string");
    expect(keyNameProblem(text)).toBeTypeOf("string");
    expect(tenantProblem(text)).toBeTypeOf("string");
    expect(tokenProblem(text, 256)).toBeTypeOf("string");
  });

  it.each([
    "a",
    "orders/42",
    "../../etc/passwd",
    "a b",
    "~!@#%^&*()",
    "Zürich",
    "注文/四十二",
    "заказ",
    "😀",
    "한글",
    "$".padStart(2, "x"),
  ])("%j is a name", (text) => {
    expect(nameProblem(text, 256)).toBeNull();
    expect(keyNameProblem(text)).toBeNull();
  });

  it.each([
    [255, null],
    [256, null],
    [257, "must have at most 256 characters, got 257"],
  ])("of %i characters: %s", (length, problem) => {
    expect(keyNameProblem("n".repeat(length))).toBe(problem);
  });

  it.each([null, undefined, 5, 5n, [], {}, Symbol("s")])(
    "that are no strings are refused by type",
    (value) => {
      expect(nameProblem(value, 10)).toMatch(/^must be a string, got /);
      expect(keyNameProblem(value)).toMatch(/^must be a string, got /);
      expect(tokenProblem(value, 10)).toMatch(/^must be a string, got /);
      expect(tenantProblem(value)).toBeTypeOf("string");
    },
  );

  it("that begin with $ belong to Solehold", () => {
    expect(keyNameProblem("$approval/x")).toMatch(/reserved/);
    expect(keyNameProblem("$")).toMatch(/reserved/);
    expect(isReservedName("$x")).toBe(true);
    expect(isReservedName("x$")).toBe(false);
  });

  it("never contain a control character or an unpaired surrogate when they are accepted", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 30 }), (text) => {
        if (nameProblem(text, 256) !== null) return;
        expect(text).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{DI}]/u);
        expect(text).toBe(text.trim());
        expect(text).toBe(text.normalize("NFC"));
        expect(Buffer.from(text, "utf8").toString("utf8")).toBe(text);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("tenants", () => {
  it.each(["a", "A9", "acme.eu-1_x", "0", "a".repeat(64), "a..b"])("%j is a tenant", (tenant) => {
    expect(tenantProblem(tenant)).toBeNull();
  });

  it.each(["", ".", "..", "-a", "_a", "a/b", "a b", "a\n", "ä", "a".repeat(65), "$a", "a:b"])(
    "%j is no tenant",
    (tenant) => {
      expect(tenantProblem(tenant)).toMatch(/1 to 64/);
    },
  );

  it("have no slash, so the id of a key is never the id of another", () => {
    const tenants = fc.constantFrom("a", "a.b", "ab", "b");
    const names = fc.constantFrom("a", "b/a", "a/b", "/a", "b//a", "ab/a");
    fc.assert(
      fc.property(tenants, names, tenants, names, (tenantA, nameA, tenantB, nameB) => {
        const same = tenantA === tenantB && nameA === nameB;
        const [a, b] = [keyId({ tenant: tenantA, name: nameA }), keyId({ tenant: tenantB, name: nameB })];
        expect(a === b).toBe(same);
      }),
    );
  });
});

describe("tokens and notes", () => {
  it("a token has 1 to its limit of letters, digits and _ - : . /", () => {
    expect(tokenProblem("Az09_-:./", 192)).toBeNull();
    expect(tokenProblem("a".repeat(192), 192)).toBeNull();
    expect(tokenProblem("a".repeat(193), 192)).toMatch(/at most 192/);
    for (const bad of ["a b", "a+b", "a=", "a\n", "é"])
      expect(tokenProblem(bad, 192)).toMatch(/may only contain/);
  });

  it("a note may be empty but not break a line", () => {
    expect(noteProblem("", 10)).toBeNull();
    expect(noteProblem("by hand", 10)).toBeNull();
    expect(noteProblem("a\nb", 10)).toBeTypeOf("string");
  });

  it("hashes are equal only when every character is", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (a, b) => {
        expect(equalInConstantTime(a, b)).toBe(a === b);
        expect(equalInConstantTime(a, a)).toBe(true);
      }),
    );
    expect(equalInConstantTime("", "a")).toBe(false);
    expect(equalInConstantTime("aa", "a")).toBe(false);
    expect(equalInConstantTime("a", "aa")).toBe(false);
  });
});
