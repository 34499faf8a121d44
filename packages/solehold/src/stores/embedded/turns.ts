/**
 * How much is queued for one commit. All that is queued in one turn of the event loop is one transaction,
 * which begins when the turn ends; so a call of very many writes waits for that before it goes on, and
 * timers, sockets and signals of this process get their turn.
 */
import type { Databases } from "./database.ts";

/** Takes some milliseconds to encode and queue, and about as long to answer. */
export const WRITES_PER_TURN = 1_000;

export class Turns {
  #queued = 0;
  #waiting: (() => void)[] = [];

  constructor({ root }: Databases) {
    root.on("beforecommit", () => this.#begin());
  }

  /** How many more writes this turn takes. */
  get room(): number {
    return Math.max(0, WRITES_PER_TURN - this.#queued);
  }

  /** That many were handed to the database. */
  note(count: number): void {
    this.#queued += count;
  }

  /** Only while there is no room: then something is queued, whose commit begins with the next turn. */
  next(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #begin(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#queued = 0;
    for (const resolve of waiting) resolve();
  }
}
