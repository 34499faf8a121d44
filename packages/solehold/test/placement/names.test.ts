import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareUtf8, idProblem, nameProblem, printableId, shown } from "../../src/placement/names.ts";

const wellFormed = fc.string({ unit: "binary", maxLength: 12 });

describe("ids and names", () => {
  it.each([
    ["a NUL", "node\0a"],
    ["a line break", "node\na"],
    ["a C1 control", "node\u0085a"],
    ["an unpaired surrogate", "node\ud800"],
    ["a right-to-left override", "node\u202ea"],
    ["a zero-width space", "node\u200ba"],
    ["a leading space", " node"],
    ["a trailing space", "node "],
    ["a trailing no-break space", "node\u00a0"],
    ["nothing at all", ""],
  ])("refuse %s, in an id and in a name", (_, value) => {
    expect(idProblem(value)).not.toBeNull();
    expect(nameProblem(value, 1024)).not.toBeNull();
  });

  it("allow an inner space in a name but not in an id", () => {
    expect(nameProblem("nightly report", 1024)).toBeNull();
    expect(idProblem("node a")).toContain('must not contain white space, got "node a"');
  });

  it("count bytes of UTF-8, not characters, up to exactly 256", () => {
    expect(idProblem("n".repeat(256))).toBeNull();
    expect(idProblem("n".repeat(257))).toContain("at most 256 bytes of UTF-8, got 257");
    expect(idProblem("é".repeat(128))).toBeNull();
    expect(idProblem("é".repeat(129))).toContain("got 258");
    expect(idProblem("\u{1f512}".repeat(64))).toBeNull();
    expect(idProblem(`${"\u{1f512}".repeat(64)}x`)).toContain("got 257");
  });

  it("refuse what is not a string and say what it was", () => {
    const values = [undefined, null, 7, 7n, true, {}, [], Symbol("x"), () => 1];
    const problems = values.map((value) => idProblem(value));
    expect(problems.map((problem) => problem?.replace("must be a string, got ", ""))).toEqual([
      "undefined",
      "null",
      "7",
      "7n",
      "true",
      "an object",
      "an array",
      "symbol",
      "function",
    ]);
  });

  it("are shown escaped and short, so that a message is always one printable line", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (value) => {
        expect(shown(value)).toMatch(/^"[\x20-\x7e]*"$/);
        expect(shown(value).length).toBeLessThan(60);
      }),
    );
  });

  it("stand in for a bad id with a text that is no good id", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (value) => {
        const printable = printableId(value);
        if (printable !== value) expect(idProblem(printable)).not.toBeNull();
        expect(idProblem(value) === null).toBe(printable === value);
      }),
    );
  });

  it("are ordered as their UTF-8 bytes are", () => {
    fc.assert(
      fc.property(wellFormed, wellFormed, (a, b) => {
        expect(Math.sign(compareUtf8(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
      }),
      { numRuns: 2000 },
    );
    // UTF-16 order would put the emoji, a surrogate pair, before U+FF5E.
    expect(compareUtf8("\u{1f512}", "\uff5e")).toBeGreaterThan(0);
    expect("\u{1f512}" < "\uff5e").toBe(true);
  });
});
