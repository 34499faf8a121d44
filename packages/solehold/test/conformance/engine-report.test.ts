/** The table at the end of the test command says what the report says, and no more. */
import { describe, expect, it } from "vitest";
import { engineRows, engineTable } from "../../../../scripts/engine-table.mjs";

const REDIS = {
  name: "Redis",
  version: "7.0.15",
  durable: false,
  clock: "reply",
  watch: true,
  conditionalDelete: true,
  maxBatch: 128,
};

function test(title: string, status: string, meta: object = {}) {
  return { ancestorTitles: [title], status, meta };
}

function reportOf(...assertionResults: readonly object[]) {
  return { testResults: [{ assertionResults }] };
}

describe("the table of engines", () => {
  it("counts the kit's cases of every way to an engine as that engine's", () => {
    const report = reportOf(
      test("the store contract on Redis by URL", "passed"),
      test("the store contract on Redis through a node-redis client", "failed"),
      test("leases on Redis", "passed"),
      test("leases on Redis", "skipped"),
      test("a holder on Redis", "passed"),
      test("what an engine can do", "passed", { engine: REDIS }),
    );
    expect(engineRows(report)).toEqual([{ name: "Redis", engine: REDIS, passed: 2, failed: 1 }]);
    expect(engineTable(report).split("\n")).toEqual([
      "engine  version  durable  clock  watch  conditional delete  batch  kit passed  kit failed",
      "Redis   7.0.15   no       reply  yes    yes                 128    2           1",
    ]);
  });

  it("shows an engine that did not say what it can do with question marks", () => {
    const report = reportOf(test("leases on a new engine", "passed"));
    expect(engineTable(report)).toMatch(/^a new engine {2}\? .*\? +1 +0$/m);
  });

  it("is empty when nothing about engines was run", () => {
    expect(engineTable(reportOf(test("a parser", "passed")))).toBe("");
  });
});
