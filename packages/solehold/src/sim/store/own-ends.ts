/**
 * The ends that a process sent and got no answer to, where ends are seen before they are safe: what it sees of them
 * counts only once it is safe.
 */
import type { ApplyReply } from "../../stores/index.ts";
import { StoreError } from "../../stores/index.ts";
import type { WriteForm } from "./early-writes.ts";

interface OwnEnd {
  isUnderWay: boolean;
}

const NONE: readonly OwnEnd[] = [];

export class OwnEnds {
  readonly #doubts: "as shipped" | "never";
  readonly #unanswered = new Set<OwnEnd>();

  constructor(doubts: "as shipped" | "never") {
    this.#doubts = doubts;
  }

  unanswered(): readonly OwnEnd[] {
    return this.#unanswered.size === 0 ? NONE : [...this.#unanswered];
  }

  /** A call left that is answered so. */
  sent(form: WriteForm, answer: Promise<ApplyReply>): Promise<ApplyReply> {
    if (form === "usual" || this.#doubts === "never") return answer;
    const end: OwnEnd = { isUnderWay: true };
    this.#unanswered.add(end);
    const settled = (outcome: "known" | "unknown"): void => {
      end.isUnderWay = false;
      if (outcome === "known") this.#unanswered.delete(end);
    };
    answer.then(
      ({ results }) => settled(results.some(({ kind }) => kind === "unknown") ? "unknown" : "known"),
      (error: unknown) =>
        settled(error instanceof StoreError && error.outcome === "not-applied" ? "known" : "unknown"),
    );
    return answer;
  }

  /** All that could be seen, when these had not been answered, is safe. */
  confirmed(ends: readonly OwnEnd[]): void {
    for (const end of ends) if (!end.isUnderWay) this.#unanswered.delete(end);
  }
}
