import { describe, expect, it } from "vitest";
import type { ModelOperation, Transition } from "../src/oracles/lease-model.ts";
import { checkLinearizable } from "../src/oracles/linearizability.ts";

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
