/**
 * Linearizability per key: is there one order of all calls, each between its start and its end, in which
 * every answer is right? The search is that of Wing and Gong with Lowe's memory of visited configurations,
 * and it does not branch over answers that change nothing. Calls of unknown fate may take effect at any time
 * after their start, or never; in a simulated run the store's log says when (see lease-model.ts), so that none
 * has to be guessed.
 *
 * The search is exponential in the worst case, so it is bounded; a search that was given up proves nothing
 * and is counted, never reported as success.
 */

import { keyId, type LeaseKey } from "solehold/internal";
import { damagesRecords } from "../config.ts";
import type { AppliedWrite } from "../store/engine.ts";
import {
  type KeyState,
  type ModelOperation,
  operationOf,
  operationOfEffect,
  START,
  stateText,
} from "./lease-model.ts";
import type { Oracle, OracleContext } from "./oracle.ts";

export type LinearizabilityVerdict =
  | { readonly kind: "linearizable" }
  | { readonly kind: "given up" }
  /** The longest order that could be found, and what could not follow it. */
  | { readonly kind: "violated"; readonly order: readonly string[]; readonly stuck: readonly string[] };

const MOST_VISITS = 20_000;

export function checkLinearizable(given: readonly ModelOperation[]): LinearizabilityVerdict {
  // Those that end first are tried first: the usual order is then found without turning back.
  const operations = [...given].sort((a, b) => a.endedMs - b.endedMs || a.startedMs - b.startedMs);
  const search = new Search(operations);
  return search.run();
}

/** One step of the search: where it stands, and which operation it tries next. */
interface Frame {
  readonly state: KeyState;
  /** The first operation that is not done: whatever starts after its end must wait. */
  readonly open: number;
  readonly deadlineMs: number;
  next: number;
  /** What was done last to get here; -1 at the start. */
  readonly taken: number;
}

class Search {
  readonly #operations: readonly ModelOperation[];
  readonly #done: boolean[];
  readonly #visited = new Set<string>();
  readonly #frames: Frame[] = [];
  #longest: readonly number[] = [];
  #left: number;
  /** No operation after this one was ever done. */
  #lastDone = -1;
  #visits = 0;

  constructor(operations: readonly ModelOperation[]) {
    this.#operations = operations;
    this.#done = operations.map(() => false);
    this.#left = operations.filter(({ certainty }) => certainty === "known").length;
  }

  /** Depth first, with a stack of its own: histories can be longer than the engine's stack is deep. */
  run(): LinearizabilityVerdict {
    this.#enter(START, 0, -1);
    while (this.#left > 0) {
      const frame = this.#frames.at(-1);
      if (frame === undefined) return this.#violated();
      if (this.#visits > MOST_VISITS) return { kind: "given up" };
      if (!this.#advance(frame)) this.#leave(frame);
    }
    return { kind: "linearizable" };
  }

  /** Tries the next operation that can come now; false when there is none left. */
  #advance(frame: Frame): boolean {
    for (; frame.next < this.#operations.length; frame.next += 1) {
      const index = frame.next;
      const operation = this.#operations[index];
      if (operation === undefined || this.#done[index] === true) continue;
      if (operation.startedMs > frame.deadlineMs) continue;
      const state = operation.transition(frame.state);
      if (state === null || (operation.certainty === "unknown" && state === frame.state)) continue;
      // What fits here and changes nothing can as well come now as later: there is nothing else to try.
      frame.next = state === frame.state ? this.#operations.length : index + 1;
      this.#done[index] = true;
      this.#lastDone = Math.max(this.#lastDone, index);
      if (operation.certainty === "known") this.#left -= 1;
      this.#enter(state, frame.open, index);
      return true;
    }
    return false;
  }

  #enter(state: KeyState, firstOpen: number, taken: number): void {
    this.#visits += 1;
    let open = firstOpen;
    while (this.#done[open] === true) open += 1;
    const deadlineMs = this.#operations[open]?.endedMs ?? Number.POSITIVE_INFINITY;
    // A configuration that was visited before leads nowhere: it is left at once.
    const next = this.#seen(state, open) ? this.#operations.length : open;
    this.#frames.push({ state, open, deadlineMs, next, taken });
  }

  #leave({ taken }: Frame): void {
    if (this.#frames.length > this.#longest.length + 1)
      this.#longest = this.#frames.slice(1).map((frame) => frame.taken);
    this.#frames.pop();
    if (taken < 0) return;
    this.#done[taken] = false;
    if (this.#operations[taken]?.certainty === "known") this.#left += 1;
  }

  #violated(): LinearizabilityVerdict {
    const text = (index: number): string => this.#operations[index]?.text ?? "";
    const placed = new Set(this.#longest);
    const stuck = this.#operations.flatMap(({ certainty }, index) =>
      certainty === "known" && !placed.has(index) ? [text(index)] : [],
    );
    return { kind: "violated", order: this.#longest.map(text), stuck: stuck.slice(0, 4) };
  }

  /** What is done: everything before the first open operation, and some after it. */
  #seen(state: KeyState, open: number): boolean {
    let later = "";
    for (let index = open; index <= this.#lastDone; index += 1)
      later += this.#done[index] === true ? "1" : "0";
    const configuration = `${open}:${later.replace(/0+$/, "")}:${stateText(state)}`;
    if (this.#visited.has(configuration)) return true;
    this.#visited.add(configuration);
    return false;
  }
}

export interface LinearizabilityOracle extends Oracle {
  readonly givenUp: () => number;
}

export function linearizability(context: OracleContext, keys: readonly LeaseKey[]): LinearizabilityOracle {
  const name = "linearizability";
  const deletions = new Map<AppliedWrite, ModelOperation>();
  let givenUp = 0;
  return {
    name,
    givenUp: () => givenUp,
    /** Collection is nobody's call: it shows as an operation that happens at its very instant. */
    onWrite: (write) => {
      if (write.after !== null) return;
      deletions.set(write, deletionOf(context.nowMs()));
    },
    atEnd: () => {
      if (!context.expectations.linearizable || damagesRecords(context.config)) return;
      for (const key of keys) {
        const id = keyId(key);
        const operations = context.calls
          .filter((call) => keyId(call.request.key) === id)
          .map(operationOf)
          .filter((operation) => operation !== null);
        for (const [write, operation] of deletions) if (keyId(write.key) === id) operations.push(operation);
        operations.push(
          ...context
            .lostEffects()
            .filter((each) => each.keyId === id)
            .map(operationOfEffect),
        );
        const verdict = checkLinearizable(operations);
        if (verdict.kind === "given up") givenUp += 1;
        if (verdict.kind === "violated")
          context.fail(
            name,
            `${id}: after ${verdict.order.slice(-4).join("; ")}: none of ${verdict.stuck.join("; ")}`,
          );
      }
    },
  };
}

function deletionOf(atMs: number): ModelOperation {
  return {
    startedMs: atMs,
    endedMs: atMs,
    certainty: "known",
    transition: ({ generation, holder }) => ({ kind: "absent", generation, holder }),
    text: "collected",
  };
}
