// What the audit's oracle objects to, and what it has to let pass: the planted bugs show the rest.
import { describe, expect, it } from "vitest";
import type { AuditEntry } from "../../../src/service/index.ts";
import { type AuditedLife, type AuditedTrail, audit } from "../../../src/sim/oracles/audit.ts";
import type { Scene } from "../../../src/sim/oracles/oracle.ts";

type Told = "applied" | "refused" | "unsettled";
type Written = AuditEntry["outcome"];

const TRACE = "n1-1";

function life(told: readonly Told[], options: { died?: boolean; begun?: number } = {}): AuditedLife {
  return {
    name: "n1",
    diedMs: options.died === true ? 10 : Number.POSITIVE_INFINITY,
    answered: told.map((kind) => ({ traceId: TRACE, outcome: { kind } })),
    begun: new Map([[TRACE, options.begun ?? told.length]]),
  };
}

function objections(
  written: readonly Written[],
  lives: readonly AuditedLife[],
  more: Partial<AuditedTrail> = {},
) {
  const found: string[] = [];
  const entries = written.map((outcome) => ({ action: "renew", traceId: TRACE, outcome }) as AuditEntry);
  const scene = {
    config: { entry: "library" },
    keys: [],
    lostEffects: () => [],
    fail: (_oracle: string, message: string) => void found.push(message),
  } as unknown as Scene;
  const trail: AuditedTrail = { name: "n1", kind: "files", entries, unsaved: 0, lives, ...more };
  audit(
    scene,
    () => [trail],
    () => true,
  ).atEnd?.();
  return found;
}

describe("the audit's oracle", () => {
  it.each<[string, readonly Written[], AuditedLife, Partial<AuditedTrail>?]>([
    ["an entry for each answer", ["applied"], life(["applied"])],
    ["answers of one trace in their order", ["refused", "applied"], life(["refused", "applied"])],
    ["what was answered before its process died", ["applied"], life(["applied"], { died: true })],
    ["what a dead process had begun, with an entry", ["applied"], life([], { died: true, begun: 1 })],
    ["what a dead process had begun, without one", [], life([], { died: true, begun: 1 })],
    ["what became of an unknown attempt", ["unknown", "applied"], life(["unsettled"], { died: true })],
  ])("lets pass: %s", (_what, written, given, more) => {
    expect(objections(written, [given], more)).toEqual([]);
  });

  it.each<[string, readonly Written[], AuditedLife, Partial<AuditedTrail>?]>([
    ["an answer without an entry", [], life(["applied"])],
    ["an answer of a dead process without an entry", [], life(["applied"], { died: true })],
    ["two entries for one answer", ["applied", "applied"], life(["applied"])],
    [
      "two entries for one answer of a dead process",
      ["applied", "applied"],
      life(["applied"], { died: true }),
    ],
    ["another outcome than was told", ["refused"], life(["applied"], { died: true })],
    ["an unknown attempt twice", ["unknown", "unknown"], life(["unsettled"], { died: true })],
    ["answers in another order", ["applied", "refused"], life(["refused", "applied"])],
    [
      "an unknown attempt of a process that lives, as applied, too",
      ["unknown", "applied"],
      life(["unsettled"]),
    ],
    [
      "what became of an unknown attempt, in memory, where there are no notes",
      ["unknown", "applied"],
      life(["unsettled"], { died: true }),
      { kind: "memory" },
    ],
    ["what is in notes alone when all is closed", ["applied"], life(["applied"]), { unsaved: 1 }],
  ])("objects to %s", (_what, written, given, more) => {
    expect(objections(written, [given], more)).toHaveLength(1);
  });
});
