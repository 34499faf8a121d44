/**
 * Turns for what is large: lists, pages of the audit, choices among many. Of one caller a few are under way, over however
 * many connections it asks: one ends when its client has taken the answer. They begin one after the other, whoever asks, and
 * leave half of the time to all that is not large.
 */
import type { Env } from "solehold/internal";
import { clientGone, ProblemError } from "../protocol/problem.ts";
import type { Call } from "./call.ts";
import { Pacer } from "./pacer.ts";

const AT_ONCE = 4;

interface Caller {
  underWay: number;
  readonly waiting: (() => void)[];
}

export class Turns {
  readonly #pacer: Pacer;
  readonly #callers = new Map<string, Caller>();
  readonly #beginning: (() => void)[] = [];

  constructor(env: Env) {
    this.#pacer = new Pacer(env, () => {
      const begin = this.#beginning.shift();
      begin?.();
      return begin !== undefined;
    });
  }

  /** Does the work when it is its turn. Rejects with a ProblemError when the client did not wait for it. */
  async run<Result>(call: Call, work: () => Promise<Result>): Promise<Result> {
    const { id } = call.principal;
    const caller = this.#callers.get(id) ?? { underWay: 0, waiting: [] };
    this.#callers.set(id, caller);
    // Whoever waits takes the place of the one that ends.
    if (caller.underWay < AT_ONCE) caller.underWay += 1;
    else await new Promise<void>((resolve) => void caller.waiting.push(resolve));
    await this.#turn();
    try {
      if (call.isGone()) throw new ProblemError(clientGone());
      return await work();
    } finally {
      call.onTaken(() => this.#end(id, caller));
    }
  }

  #turn(): Promise<void> {
    return new Promise((resolve) => {
      this.#beginning.push(resolve);
      this.#pacer.wake();
    });
  }

  #end(id: string, caller: Caller): void {
    const next = caller.waiting.shift();
    if (next === undefined) caller.underWay -= 1;
    else next();
    if (caller.underWay === 0) this.#callers.delete(id);
  }
}
