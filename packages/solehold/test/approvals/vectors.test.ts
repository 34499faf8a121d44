/** The committed vectors are what the sources produce, and the formats that they promise hold on their own. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { buildVectors } from "../../../../scripts/approval-vectors.mjs";
import * as approvals from "../../src/approvals/index.ts";
import * as core from "../../src/core/index.ts";
import * as placement from "../../src/placement/index.ts";
import { StoreError } from "../../src/store/index.ts";
import { isWorthWaiting } from "../../src/waiting/index.ts";
import * as wire from "../../src/wire/index.ts";

const FOLDER = new URL("../../../../docs/vectors/", import.meta.url);

function committed(name: string): string {
  return readFileSync(new URL(name, FOLDER), "utf8");
}

describe("the vectors", () => {
  const built: { readonly [name: string]: string } = buildVectors({
    ...{ ...approvals, ...placement, ...core, ...wire },
    ...{ StoreError, isWorthWaiting },
  });

  it.each(["coordinator-selection.json", "approvals.json", "quorum.json", "validity.json", "wire.json"])(
    "%s is what the command would write now: run node scripts/approval-vectors.mjs if this is meant",
    (name) => {
      expect(built[name]).toBe(committed(name));
    },
  );

  it("hold every published selection with the published node", () => {
    const { selections } = JSON.parse(committed("coordinator-selection.json"));
    const product = selections
      .filter((row: { algorithm: string }) => row.algorithm === "product-v1")
      .slice(0, 8);
    expect(product.map((row: { leaseId: string; selected: string }) => [row.leaseId, row.selected])).toEqual([
      ["lease-1", "node-a"],
      ["lease-2", "node-b"],
      ["lease-order", "node-b"],
      ["lease-fuzz-baseline", "node-c"],
      ["lease-1", "node-b"],
      ["lease-wrap", "node-a"],
      ["l1", "n1"],
      ["lease-fuzz-max-weight", "node-max"],
    ]);
  });

  it("hold every published quorum case with the published codes", () => {
    const { cases } = JSON.parse(committed("quorum.json"));
    const published = cases
      .slice(0, 6)
      .map((row: { name: string; expected: approvals.QuorumVerification }) => [
        row.name,
        row.expected.passed,
        row.expected.failures.map(({ code }) => code).join(" "),
      ]);
    expect(published).toEqual([
      ["standard-1-of-1", true, ""],
      ["risky-2-of-2", true, ""],
      ["risky-1-of-2", false, "LC_BELOW_QUORUM"],
      ["dangerous-3-of-3", true, ""],
      ["unknown-signer", false, "LC_UNKNOWN_SIGNER"],
      ["invalid-signature", false, "LC_INVALID_SIGNATURE LC_BELOW_QUORUM"],
    ]);
  });

  it("cover every kind of failure of an approval", () => {
    const { cases } = JSON.parse(committed("quorum.json"));
    const kinds = cases.flatMap((row: { expected: approvals.QuorumVerification }) =>
      row.expected.failures.map(({ kind }) => kind),
    );
    expect(new Set(kinds)).toEqual(
      new Set([
        "UnknownSigner",
        "InvalidSignature",
        "KeyNotValid",
        "ApprovalNotYetValid",
        "ApprovalExpired",
        "ApprovalReplayed",
        "BelowQuorum",
      ]),
    );
  });
});
