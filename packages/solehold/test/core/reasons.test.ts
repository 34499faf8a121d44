/** The table of reasons, where its columns must agree with each other. */
import { describe, expect, it } from "vitest";
import { REASONS, type Reason } from "../../src/core/index.ts";

const rows = Object.entries(REASONS) as readonly [Reason, (typeof REASONS)[Reason]][];

describe("a reason", () => {
  it("has a status of success exactly if its name and its service code say so", () => {
    for (const [reason, { status, serviceCode }] of rows) {
      expect([reason, status === 200]).toEqual([reason, reason.startsWith("OK_")]);
      expect([reason, serviceCode === "LS_OK"]).toEqual([reason, reason.startsWith("OK_")]);
    }
  });

  it("that is worth waiting for is never the fault of the request", () => {
    for (const [reason, { status, waitable }] of rows) {
      if (waitable !== "no") expect([reason, status]).not.toEqual([reason, 400]);
    }
  });

  it("that only refuses a request loses nobody a lease", () => {
    for (const [reason, { status, loss }] of rows) {
      if (status === 400 || status >= 500) expect([reason, loss]).toEqual([reason, null]);
    }
  });

  it("has a sentence of its own that continues a name and a colon", () => {
    const sentences = rows.map(([, { sentence }]) => sentence);
    expect(new Set(sentences).size).toBe(sentences.length);
    for (const sentence of sentences) expect(sentence).toMatch(/^[a-z].*[^.]$/);
  });
});
