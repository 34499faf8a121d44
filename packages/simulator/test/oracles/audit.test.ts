// What the audit's oracle objects to, and what it has to let pass: the planted bugs show the rest.

import type { AuditEntry } from "solehold/internal";
import { describe, expect, it } from "vitest";
import { type AuditedLife, type AuditedTrail, audit } from "../../src/oracles/audit.ts";
import type { OracleContext } from "../../src/oracles/oracle.ts";

type Answer = "applied" | "refused" | "unsettled";
type Written = AuditEntry["outcome"];

const TRACE = "n1-1";

function life(answers: readonly Answer[], options: { died?: boolean; begun?: number } = {}): AuditedLife {
  return {
    name: "n1",
    diedMs: options.died === true ? 10 : Number.POSITIVE_INFINITY,
    answered: answers.map((kind) => ({ traceId: TRACE, keyId: "default/key1", outcome: { kind } })),
    begun: new Map([[TRACE, options.begun ?? answers.length]]),
  };
}

function objections(written: readonly Written[], lives: readonly AuditedLife[]): readonly string[] {
  const found: string[] = [];
  const entries = written.map((outcome) => ({ action: "renew", traceId: TRACE, outcome }) as AuditEntry);
  const context = {
    config: { entry: "library" },
    keys: [],
    lostEffects: () => [],
    fail: (_oracle: string, message: string) => void found.push(message),
  } as unknown as OracleContext;
  const trail: AuditedTrail = { name: "n1", entries, lives };
  audit(context, () => [trail]).atEnd?.();
  return found;
}

describe("the audit's oracle", () => {
  it.each<[string, readonly Written[], AuditedLife]>([
    ["an entry for each answer", ["applied"], life(["applied"])],
    ["answers of one trace in their order", ["refused", "applied"], life(["refused", "applied"])],
    ["what was answered before its process died", ["applied"], life(["applied"], { died: true })],
    ["what a dead process had begun, with an entry", ["applied"], life([], { died: true, begun: 1 })],
    ["what a dead process had begun, without one", [], life([], { died: true, begun: 1 })],
  ])("lets pass: %s", (_what, written, given) => {
    expect(objections(written, [given])).toEqual([]);
  });

  it.each<[string, readonly Written[], AuditedLife]>([
    ["an answer without an entry", [], life(["applied"])],
    ["an answer of a dead process without an entry", [], life(["applied"], { died: true })],
    ["two entries for one answer", ["applied", "applied"], life(["applied"])],
    [
      "two entries for one answer of a dead process",
      ["applied", "applied"],
      life(["applied"], { died: true }),
    ],
    ["another outcome than was answered", ["refused"], life(["applied"], { died: true })],
    ["an unknown attempt twice", ["unknown", "unknown"], life(["unsettled"], { died: true })],
    ["answers in another order", ["applied", "refused"], life(["refused", "applied"])],
    [
      "an unknown attempt of a process that lives, as applied, too",
      ["unknown", "applied"],
      life(["unsettled"]),
    ],
    [
      "an unknown attempt of a dead process, as applied, too",
      ["unknown", "applied"],
      life(["unsettled"], { died: true }),
    ],
  ])("objects to %s", (_what, written, given) => {
    expect(objections(written, [given])).toHaveLength(1);
  });
});
