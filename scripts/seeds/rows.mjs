// The rows of the five seed documents: docs/seeds/rows.json, which names for each the test that shows it, and the page
// that is made of them, docs/seeds/README.md.
import { readFileSync } from "node:fs";

export const ROOT = new URL("../../", import.meta.url);
export const ROWS_PAGE = "docs/seeds/README.md";

/** In the order of the documents. `bead`, `section` and `gate` are the names that they go by themselves. */
export const SEEDS = [
  {
    seed: "000",
    page: "000-lease-service.md",
    title: "generic lease service",
    gate: "lease_service",
    bead: "bd-bq6y",
    section: "10.13",
    contract: "lease_service_contract.json",
  },
  {
    seed: "001",
    page: "001-lease-manager.md",
    title: "lease manager and simulation",
    gate: "lease_dst",
    bead: "lease-dst",
    section: "DST",
    contract: "lease_manager_contract.json",
  },
  {
    seed: "002",
    page: "002-decision-gate.md",
    title: "decision gate for work orders",
    gate: "work_order_lease",
    bead: "PH1.LEASE",
    section: "ENTERPRISE_SUPPORT",
    contract: "decision_gate_contract.json",
  },
  {
    seed: "003",
    page: "003-lease-coordinator.md",
    title: "coordinator selection and quorum",
    gate: "lease_coordinator",
    bead: "bd-2vs4",
    section: "10.13",
    contract: "lease_quorum_vectors.json",
  },
  {
    seed: "004",
    page: "004-writer-lease.md",
    title: "serverless writer lease",
    gate: "writer_lease",
    bead: "W6",
    section: "Phase 5",
    contract: "writer_lease_contract.json",
  },
];

/** Each with `file`, its test's file, and `title`, its describes and its name. */
export function readRows() {
  const { files, rows } = JSON.parse(readFileSync(new URL("docs/seeds/rows.json", ROOT), "utf8"));
  return rows.map(({ test: [alias, title], ...row }) => ({ ...row, file: files[alias] ?? alias, title }));
}

export function rowsOf(rows, seed) {
  return rows.filter(({ id }) => id.startsWith(`${seed}-`));
}

/** docs/seeds/README.md. */
export function rowsPage(rows) {
  const counts = (some) => {
    const differs = some.filter(({ status }) => status === "differs").length;
    return `${some.length} | ${some.length - differs} | ${differs}`;
  };
  const overview = SEEDS.map(
    ({ seed, page, title }) => `| [${seed}](${page}) | ${title} | ${counts(rowsOf(rows, seed))} |`,
  );
  const parts = SEEDS.map(({ seed, title }) => {
    const lines = rowsOf(rows, seed).map(
      ({ id, kind, item, ours, status, file, title: test }) =>
        `| ${id} | ${cell(`${kind}: ${item}`)} | ${cell(status === "works" ? ours : `differs: ${ours}`)} | ${cell(test)} ([${nameOf(file)}](../../${file})) |`,
    );
    return [
      `## ${seed}: ${title}`,
      "",
      "| row | the document | here | shown by |",
      "| --- | --- | --- | --- |",
      ...lines,
      "",
    ].join("\n");
  });
  return [
    "# The five documents, row by row",
    "",
    "Solehold does what five documents describe. Every type, field, method, invariant, code, boundary and artifact of theirs is a",
    "row here, with the test that shows it. This page is made of [rows.json](rows.json) by `npm run evidence`, which runs those",
    "tests and writes their results to `artifacts/`; the test command fails when a row names no test, when a test of a row fails,",
    "or when this page or the artifacts are not what the command would write.",
    "",
    "| document | what it describes | rows | as in the document | differs on purpose |",
    "| --- | --- | --- | --- | --- |",
    ...overview,
    `| all | | ${counts(rows)} |`,
    "",
    ...parts,
  ].join("\n");
}

function nameOf(file) {
  return file.split("/").slice(-2).join("/");
}

function cell(text) {
  return text.replaceAll("|", "\\|").replaceAll("<", "&lt;");
}
