/** The rows of the five documents and what is made of them: each names a test, and nothing was written by hand. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  allPassed,
  filesOf,
  type Row,
  readRows,
  resultsOf,
  rowsOf,
  SEEDS,
  testOf,
} from "../../../../scripts/seeds/index.mjs";
import * as api from "../../src/facades/seeds.ts";

const ROOT = join(import.meta.dirname, "../../../..");
const rows = readRows();
const written = await filesOf(rows, allPassed(rows), api);
const seeds = SEEDS.map(({ seed, contract }) => [seed, contract] as const);

function committed(path: string): string {
  return existsSync(join(ROOT, path))
    ? readFileSync(join(ROOT, path), "utf8")
    : "not there: run npm run evidence";
}

describe("the rows of the documents", () => {
  it("are 290, numbered without a gap, and each says what is here and which test shows it", () => {
    expect(SEEDS.map(({ seed }) => rowsOf(rows, seed).length)).toEqual([53, 57, 57, 45, 78]);
    for (const { seed } of SEEDS)
      for (const [index, { id }] of rowsOf(rows, seed).entries())
        expect(id).toBe(`${seed}-${String(index + 1).padStart(2, "0")}`);
    for (const { kind, item, ours, status, title } of rows) {
      expect([kind, item, ours, title]).not.toContain("");
      expect(["works", "differs"]).toContain(status);
    }
  });

  it("name tests that exist: their files, and their names in them", () => {
    const missing = rows.filter(({ file, title }) => !isNamedIn(file, title.split(" > ").at(-1) ?? ""));
    expect(missing.map(testOf)).toEqual([]);
  });

  it("make up the page docs/seeds/README.md", () => {
    expect(committed("docs/seeds/README.md")).toBe(written.get("docs/seeds/README.md"));
  });
});

describe("the artifacts", () => {
  it.each(seeds)("%s: the contract is what its programs say now", (seed, contract) => {
    const path = `artifacts/${seed}/${contract}`;
    expect(committed(path)).toBe(written.get(path));
  });

  it.each(seeds)("%s: the evidence is what a run of its tests gives", (seed) => {
    const path = `artifacts/${seed}/verification_evidence.json`;
    expect(committed(path)).toBe(written.get(path));
    const { verdict, checks, summary } = JSON.parse(committed(path));
    expect([verdict, summary.failing_checks]).toEqual(["PASS", 0]);
    expect(checks.map(({ id }: { readonly id: string }) => id)).toEqual(
      rowsOf(rows, seed).map(({ id }) => id),
    );
  });

  it.each(seeds)("%s: the summary is what the evidence says", (seed) => {
    const path = `artifacts/${seed}/verification_summary.md`;
    expect(committed(path)).toBe(written.get(path));
  });

  it("say FAIL for a test that failed, was skipped or is not there, also if another of the same name passed", async () => {
    const [first, second, third] = rows as readonly [Row, Row, Row];
    const assertions = ({ title }: Row, ...results: readonly string[]) =>
      results.map((status) => ({
        ancestorTitles: title.split(" > ").slice(0, -1),
        title: title.split(" > ").at(-1),
        status,
      }));
    const report = {
      testResults: [
        { name: `/repo/${first.file}`, assertionResults: assertions(first, "passed", "failed", "passed") },
        { name: `/repo/${second.file}`, assertionResults: assertions(second, "skipped") },
      ],
    };
    const seen = resultsOf(report, "/repo/");
    expect([seen.get(testOf(first)), seen.get(testOf(second)), seen.get(testOf(third))]).toEqual([
      "failed",
      "skipped",
      undefined,
    ]);
    const files = await filesOf(rows, seen, api);
    const { verdict, checks } = JSON.parse(files.get("artifacts/000/verification_evidence.json") ?? "");
    expect([verdict, checks[0].status, checks[0].details.result]).toEqual(["FAIL", "FAIL", "failed"]);
  });
});

/** Names with parameters stand in the source with a placeholder, and their values beside it. */
function isNamedIn(file: string, name: string): boolean {
  if (!existsSync(join(ROOT, file))) return false;
  const sources = [file, ...SHARED_SUITES.filter(([, user]) => user === file).map(([suite]) => suite)];
  return sources.some((each) => {
    const text = readFileSync(join(ROOT, each), "utf8");
    const titles = [...text.matchAll(/\(\s*(["'`])((?:\\.|(?!\1)[^\\])*)\1,/g)].map(([, , title = ""]) =>
      title.replace(/\\(["'`])/g, "$1"),
    );
    return titles.some((title) => {
      if (title === name) return true;
      const [, ...values] = /%[sio]/.test(title) ? (patternOf(title).exec(name) ?? []) : [];
      return values.length > 0 && values.every((value) => text.includes(value) || DOCUMENTS.has(value));
    });
  });
}

/** What stands in the name of a test of all documents: their numbers and their pages. */
const DOCUMENTS: ReadonlySet<string> = new Set(SEEDS.flatMap(({ seed, page }) => [seed, page]));

/** Suites that another test file calls. */
const SHARED_SUITES = [
  ["packages/solehold/test/writer/seed-tests.ts", "packages/solehold/test/seeds/004/writer-lease.test.ts"],
] as const;

function patternOf(title: string): RegExp {
  const quoted = title.split(/%[sio]/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${quoted.join("(.+)")}$`, "s");
}
