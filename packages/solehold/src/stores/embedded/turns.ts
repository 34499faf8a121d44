/**
 * What is queued for one commit. All that is queued in one turn of the event loop is one transaction, which
 * begins when the turn ends; what comes while it is under way is the next one.
 *
 * So a call of very many writes waits for the end of the turn before it goes on, and timers, sockets and
 * signals of this process get their turn. And of two calls of some size that come in one turn the second
 * waits, too: then the thread is at work on the one while this process works on the other, and on its
 * answers. If the thread is slow to begin, it takes both: nothing is lost then. Where a commit takes longer than
 * this process has to do meanwhile, two would be slower than one, and they share it.
 */
import type { Env } from "../../env/index.ts";
import type { Databases } from "./database.ts";

/** Takes some milliseconds to encode, to queue and to answer. */
export const WRITES_PER_TURN = 500;
/** Fewer writes than this cost less than a commit of their own. */
export const LEAST_SHARE = 16;
/** What a process roughly does for a write besides: deciding it, and working on its answer. */
const WORK_MS_PER_WRITE = 0.015;

export class Turns {
  #queued = 0;
  #waiting: (() => void)[] = [];
  readonly #env: Env;
  /** How long the latest commit took, and when it was done. */
  #commitMs = 0;
  #doneAtMs = 0;

  constructor({ root }: Databases, env: Env) {
    this.#env = env;
    root.on("beforecommit", () => this.#begin());
  }

  /** How many more writes this turn takes. */
  get room(): number {
    return Math.max(0, WRITES_PER_TURN - this.#queued);
  }

  /** Whether a call of so many writes is better off in a commit of its own. */
  isForNext(count: number): boolean {
    const least = Math.min(count, this.#queued);
    return least >= LEAST_SHARE && this.#commitMs < 2 * least * WORK_MS_PER_WRITE;
  }

  /** After the commit of writes that were queued then. One that waited for another began when that was done. */
  learn(queuedAtMs: number): void {
    const nowMs = this.#env.monotonicMs();
    this.#commitMs = nowMs - Math.max(queuedAtMs, this.#doneAtMs);
    this.#doneAtMs = nowMs;
  }

  /** That many were handed to the database. */
  note(count: number): void {
    this.#queued += count;
  }

  /** Only while something is queued: its commit begins with the next turn. */
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
