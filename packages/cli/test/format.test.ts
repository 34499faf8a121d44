import { describe, expect, it } from "vitest";
import { shortDuration } from "../src/format/duration.ts";
import { cellWidth, tableLines } from "../src/format/table.ts";
import { escapeControls, painter } from "../src/format/terminal.ts";
import { FakeIo } from "./support/fake-io.ts";

describe("durations for people", () => {
  it.each([
    [-5, "0ms"],
    [0.2, "1ms"],
    [999, "999ms"],
    [1_000, "1.0s"],
    [9_999, "9.9s"],
    [10_000, "10s"],
    [59_999, "59s"],
    [65_000, "1m05s"],
    [7_380_000, "2h03m"],
    [273_600_000, "3d04h"],
  ])("writes %d ms as %s", (ms, text) => {
    expect(shortDuration(ms)).toBe(text);
  });
});

describe("tables", () => {
  const columns = [
    { title: "KEY", align: "left" },
    { title: "HOLDER", align: "left", elastic: "yes" },
    { title: "N", align: "right" },
  ] as const;
  const asIs = (cell: string): string => cell;

  it("aligns columns without trailing space", () => {
    const lines = tableLines(
      columns,
      [
        ["a", "me", "7"],
        ["long-key", "you", "12"],
      ],
      null,
      asIs,
    );
    expect(lines).toEqual(["KEY       HOLDER   N", "a         me       7", "long-key  you     12"]);
  });

  it("cuts the elastic column to fit the terminal", () => {
    const lines = tableLines(columns, [["key", "a-very-long-holder-name", "1"]], 24, asIs);
    expect(lines[1]).toBe("key  a-very-long-hol…  1");
    expect(Math.max(...lines.map(cellWidth))).toBeLessThanOrEqual(24);
  });

  it("counts wide characters as two cells", () => {
    const lines = tableLines(
      columns,
      [
        ["日本", "x", "1"],
        ["abcd", "y", "2"],
      ],
      null,
      asIs,
    );
    expect(cellWidth(lines[1] ?? "")).toBe(cellWidth(lines[2] ?? ""));
  });
});

describe("what others wrote", () => {
  it("cannot steer the terminal", () => {
    expect(escapeControls("a\u001b[31mred\u202e\u0007\u2028")).toBe(
      "a\\u{1b}[31mred\\u{202e}\\u{7}\\u{2028}",
    );
  });

  it("is coloured on a terminal only, and not under NO_COLOR", () => {
    const terminal = { columns: 80 };
    const colour = (io: FakeIo): string => painter(io, io.stdout)("red", "x");
    expect(colour(new FakeIo({ terminal }))).toBe("\u001b[31mx\u001b[0m");
    expect(colour(new FakeIo({ terminal, env: { NO_COLOR: "1" } }))).toBe("x");
    expect(colour(new FakeIo({ terminal, env: { TERM: "dumb" } }))).toBe("x");
    expect(colour(new FakeIo())).toBe("x");
  });
});
