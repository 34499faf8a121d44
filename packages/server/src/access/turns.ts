/**
 * Turns for what is large: lists, pages of the audit. Of one caller one begins in a turn of the event loop, over however
 * many connections it asks, so that others come between.
 */
import type { Env } from "solehold/internal";
import { clientGone, ProblemError } from "../protocol/problem.ts";
import type { Call } from "./call.ts";

export class Turns {
  readonly #env: Env;
  /** By caller, while one of its own began in this turn or waits for the next. */
  readonly #waiting = new Map<string, (() => void)[]>();

  constructor(env: Env) {
    this.#env = env;
  }

  /** Resolves when it is its turn. Rejects with a ProblemError when the client did not wait for it. */
  async next({ principal: { id }, connection }: Call): Promise<void> {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) {
      this.#waiting.set(id, []);
      this.#plan(id);
      return;
    }
    await new Promise<void>((resolve) => void waiting.push(resolve));
    if (connection.isGone()) throw new ProblemError(clientGone());
  }

  #plan(id: string): void {
    this.#env.timer(0, () => {
      const begin = this.#waiting.get(id)?.shift();
      if (begin === undefined) {
        this.#waiting.delete(id);
        return;
      }
      begin();
      this.#plan(id);
    });
  }
}
