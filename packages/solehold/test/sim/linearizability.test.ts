import { describe, expect, it } from "vitest";
import type { LeaseRecord } from "../../src/core/index.ts";
import {
  type ModelOperation,
  operationOf,
  operationsOfTakenBack,
  type Transition,
} from "../../src/sim/oracles/lease-model.ts";
import { checkLinearizable } from "../../src/sim/oracles/linearizability.ts";

function operation(text: string, startedMs: number, endedMs: number, transition: Transition): ModelOperation {
  return { text, startedMs, endedMs, certainty: "known", transition };
}

const grant =
  (generation: bigint, holder: string): Transition =>
  (state) =>
    state.generation + 1n === generation ? { kind: "held", generation, holder } : null;
const sees =
  (generation: bigint): Transition =>
  (state) =>
    state.generation === generation ? state : null;

describe("the linearizability checker", () => {
  it("finds the one order in which overlapping answers are right", () => {
    const history = [
      operation("b sees 1", 0, 10, sees(1n)),
      operation("a gets 1", 0, 10, grant(1n, "a")),
      operation("c sees 0", 0, 10, sees(0n)),
    ];
    expect(checkLinearizable(history).kind).toBe("linearizable");
  });

  it("objects to an answer that was right once, but not within its call", () => {
    const history = [operation("a gets 1", 0, 10, grant(1n, "a")), operation("b sees 0", 11, 20, sees(0n))];
    expect(checkLinearizable(history)).toMatchObject({ kind: "violated", stuck: ["b sees 0"] });
  });

  it("objects to two grants of one generation", () => {
    const history = [operation("a", 0, 10, grant(1n, "a")), operation("b", 0, 10, grant(1n, "b"))];
    expect(checkLinearizable(history).kind).toBe("violated");
  });

  it("lets a call of unknown fate happen late, or never", () => {
    const unknown: ModelOperation = {
      ...operation("a perhaps gets 1", 0, Number.POSITIVE_INFINITY, grant(1n, "a")),
      certainty: "unknown",
    };
    const late = [unknown, operation("b sees 0", 5, 6, sees(0n)), operation("b sees 1", 90, 91, sees(1n))];
    expect(checkLinearizable(late).kind).toBe("linearizable");
    expect(checkLinearizable([unknown, operation("b sees 0", 90, 91, sees(0n))]).kind).toBe("linearizable");
    const early = [{ ...unknown, startedMs: 50 }, operation("b sees 1", 5, 6, sees(1n))];
    expect(checkLinearizable(early).kind).toBe("violated");
  });

  it("does not give up on many answers that overlap and change nothing", () => {
    const history = Array.from({ length: 200 }, (_, index) =>
      operation(`sees ${index % 2}`, 0, 10, sees(BigInt(index % 2))),
    );
    const granted = [...history, operation("a gets 1", 0, 10, grant(1n, "a"))];
    expect(checkLinearizable(granted).kind).toBe("linearizable");
    const wrong = [...granted, operation("c sees 2", 0, 10, sees(2n))];
    expect(checkLinearizable(wrong)).toMatchObject({ kind: "violated", stuck: ["c sees 2"] });
  });

  it("does not run out of stack on a long history", () => {
    const history = Array.from({ length: 3_000 }, (_, index) =>
      operation(`grant ${index + 1}`, index, index + 0.5, grant(BigInt(index + 1), "a")),
    );
    expect(checkLinearizable(history).kind).toBe("linearizable");
  });
});

describe("an end that a crash took back", () => {
  const key = { tenant: "default", name: "key" };
  const record = (state: LeaseRecord["state"]): LeaseRecord =>
    ({ key, state, holder: "a", generation: 1n }) as LeaseRecord;
  const takenBack = operationsOfTakenBack({
    write: { key, before: record("held"), after: record("released"), by: "a", storeMs: 0, note: "none" },
    seenMs: 20,
    undoneMs: 30,
  });
  const sees = (text: string, startedMs: number, endedMs: number, kind: string): ModelOperation =>
    operation(text, startedMs, endedMs, (state) => (state.kind === kind ? state : null));
  const history = [operation("a gets 1", 0, 10, grant(1n, "a")), ...takenBack];

  /** The release as its caller was told of it. */
  function released(startedMs: number, endedMs: number): ModelOperation {
    const lease = record("released");
    const told = operationOf({
      id: 1,
      process: "a",
      request: { op: "release", key, holder: "a", token: "t" },
      patience: "at once",
      generation: 1n,
      startedMs,
      endedMs,
      outcome: { kind: "applied", decision: { lease } },
    } as unknown as Parameters<typeof operationOf>[0]);
    if (told === null) throw new Error("a release that was applied says something about its key");
    return told;
  }

  it("may be seen by others until then, and not afterwards", () => {
    const seen = [...history, sees("b sees the end", 22, 24, "released"), sees("b sees a", 32, 34, "held")];
    expect(checkLinearizable(seen).kind).toBe("linearizable");
    expect(checkLinearizable([...seen, sees("c sees the end", 40, 41, "released")]).kind).toBe("violated");
    expect(checkLinearizable([...seen, sees("c sees a", 22, 24, "held")]).kind).toBe("violated");
  });

  it("must not have been answered: who was told that it is done can rely on it", () => {
    expect(checkLinearizable([...history, released(15, 25)]).kind).toBe("violated");
    expect(checkLinearizable([...history, released(15, 45)]).kind).toBe("linearizable");
  });
});
