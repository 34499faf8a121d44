// The artifacts of the seed documents, from the rows and the results of a test run: for each document a contract, the
// verification evidence and a summary. Nothing in them changes from run to run: no clock, no durations, no randomness.
import { contractsOf } from "./contracts.mjs";
import { ROWS_PAGE, rowsOf, rowsPage, SEEDS } from "./rows.mjs";

const NAME_OF_TEST = " > ";

/** Where the artifacts' own test stands: it can only run once they are written. */
export const OWN_TEST = "packages/solehold/test/seeds/evidence.test.ts";

/** What became of each test of a vitest report: by file and titles, "passed" only if all of that name did. */
export function resultsOf(report, root) {
  const results = new Map();
  for (const { name, assertionResults } of report.testResults) {
    const file = name.startsWith(root) ? name.slice(root.length) : name;
    for (const { ancestorTitles, title, status } of assertionResults) {
      const id = [file, ...ancestorTitles, title].join(NAME_OF_TEST);
      results.set(id, results.has(id) && results.get(id) !== "passed" ? results.get(id) : status);
    }
  }
  return results;
}

/** Results in which every test of a row has passed. */
export function allPassed(rows) {
  return new Map(rows.map((row) => [testOf(row), "passed"]));
}

export function testOf({ file, title }) {
  return `${file}${NAME_OF_TEST}${title}`;
}

/** Path -> content, all that `npm run evidence` writes. `api` is what `solehold/seeds` exports. */
export async function filesOf(rows, results, api) {
  const contracts = await contractsOf(api);
  const files = new Map([[ROWS_PAGE, rowsPage(rows)]]);
  for (const document of SEEDS) {
    const { seed, contract } = document;
    const evidence = evidenceOf(document, rowsOf(rows, seed), results);
    files.set(`artifacts/${seed}/${contract}`, json(contracts[seed]));
    files.set(`artifacts/${seed}/verification_evidence.json`, json(evidence));
    files.set(`artifacts/${seed}/verification_summary.md`, summaryOf(document, evidence));
  }
  return files;
}

function evidenceOf({ gate, bead, section }, rows, results) {
  const checks = rows.map((row) => {
    const result = results.get(testOf(row)) ?? "there is no such test";
    const description = `${row.kind}: ${row.item}`;
    const details = {
      test: testOf(row),
      here: row.ours,
      row: row.status,
      ...(result === "passed" ? {} : { result }),
    };
    return { id: row.id, description, status: result === "passed" ? "PASS" : "FAIL", details };
  });
  const passing = checks.filter(({ status }) => status === "PASS").length;
  const summary = {
    total_checks: checks.length,
    passing_checks: passing,
    failing_checks: checks.length - passing,
  };
  return { gate, bead, section, verdict: passing === checks.length ? "PASS" : "FAIL", checks, summary };
}

function summaryOf({ seed, title, contract, page }, { verdict, checks, summary }) {
  const failing = checks.filter(({ status }) => status !== "PASS");
  return [
    `# ${seed}: ${title}`,
    "",
    `Verdict: ${verdict}. ${summary.passing_checks} of ${summary.total_checks} checks pass.`,
    "",
    ...failing.map(
      ({ id, description, details }) => `- ${id} ${description}: ${details.result} (${details.test})`,
    ),
    ...(failing.length === 0 ? [] : [""]),
    `- [Contract](${contract}): what the document's vectors give, played through \`solehold/seeds\`.`,
    "- [Evidence](verification_evidence.json): one check a row, with the test that was run.",
    `- [The document's page](../../docs/seeds/${page}) and [all rows](../../${ROWS_PAGE}).`,
    "",
    "Written by `npm run evidence` from a run of the tests; the test command fails if a hand has changed it.",
    "",
  ].join("\n");
}

function json(value) {
  return `${JSON.stringify(value, (_name, field) => (typeof field === "bigint" ? String(field) : field), 2)}\n`;
}
