/**
 * What is queued for one commit. All that is queued in one turn of the event loop is one transaction, which
 * begins when the turn ends; what comes while it is under way is the next one.
 *
 * So a call of very many writes waits for the end of the turn before it goes on, and timers, sockets and
 * signals of this process get their turn.
 *
 * Smaller calls are worked on in one of three ways. Where this process has more to do for its writes than a commit
 * costs in itself, calls of some size take turns, and the thread is at work on the one while this process works on the
 * other, and on its answers. Where a commit takes a while, the second of two calls that come in one turn waits until
 * the first is done, and begins before the answers to that are worked on. It must not be queued any sooner: the thread takes
 * longer to wake up than this process to queue, so it would find both and make one commit of them, and as they
 * are then answered together, so would their successors be for ever, with this process idle meanwhile. Where a commit takes
 * next to nothing, the second is queued with the next turn: nothing is lost then if the thread takes both.
 * Where a commit costs more, as on a slow disk, two would be slower than one: calls share a commit, and one that comes
 * while another is under way waits for its end, because the answers to that one bring more.
 */
import type { Env } from "../../env/index.ts";
import type { Databases } from "./database.ts";

/** Takes some milliseconds to encode, to queue and to answer. */
export const WRITES_PER_TURN = 500;
/** Fewer writes than this cost less than a commit of their own. */
export const LEAST_SHARE = 16;
/** What a process roughly does for a write besides: deciding it, and working on its answer. */
const WORK_MS_PER_WRITE = 0.015;
/** What a commit takes longer for each of its writes, about. */
const COMMIT_MS_PER_WRITE = 0.01;

/** A commit that costs more in itself is worth waiting for: it spends most of that on the disk. */
const LONG_COMMIT_MS = 0.1;
/** Of the latest commit in what commits cost on average: a disk has slow moments. */
const LATEST_WEIGHT = 0.25;
/** Commits whose answers are no further apart were one, and the second says nothing of what one costs. */
const TOGETHER_MS = 0.03;

/** One transaction, from the first write that is queued for it. */
export interface Commit {
  count: number;
  beganAtMs: number;
  state: "open" | "done";
}

export class Turns {
  #open: Commit = newCommit();
  /** Queued or under way, and not yet answered. */
  #unanswered = 0;
  #waiting: (() => void)[] = [];
  #waitingForAnswers: (() => void)[] = [];
  readonly #env: Env;
  /** What commits cost in themselves on average, and when the latest was done. */
  #commitMs = 0;
  #doneAtMs = 0;

  constructor({ root }: Databases, env: Env) {
    this.#env = env;
    root.on("beforecommit", () => this.#begin());
    root.on("aftercommit", () => this.#wake());
  }

  /** How many more writes this turn takes. */
  get room(): number {
    return Math.max(0, WRITES_PER_TURN - this.#open.count);
  }

  /** Whether a call of so many writes is better off in the next turn. */
  isForNext(count: number): boolean {
    return this.isForAnother(count) && this.#commitMs < LONG_COMMIT_MS;
  }

  /** Whether a call of so many writes is better off when others have been answered. */
  isForLater(count: number): boolean {
    if (this.isForAnother(count)) return this.#commitMs >= LONG_COMMIT_MS;
    return this.#open.count === 0 && this.#unanswered > 0 && !this.#isCheap(this.#unanswered + count);
  }

  /** Whether a call of so many writes is better off in another commit than the one that is open. */
  isForAnother(count: number): boolean {
    const least = Math.min(count, this.#open.count);
    return least >= LEAST_SHARE && this.#isCheap(2 * least);
  }

  /** Whether a commit in itself costs less than what there is to do for so many writes. */
  #isCheap(count: number): boolean {
    return this.#commitMs < count * WORK_MS_PER_WRITE;
  }

  /** That many were handed to the database, for the commit that is returned. */
  note(count: number): Commit {
    this.#open.count += count;
    this.#unanswered += count;
    return this.#open;
  }

  /** So many writes of a commit were answered, or failed. */
  settle(commit: Commit, count: number): void {
    this.#unanswered -= count;
    if (commit.state === "done") return;
    commit.state = "done";
    const nowMs = this.#env.monotonicMs();
    // One that waited for another began when that was done.
    const tookMs = nowMs - Math.max(commit.beganAtMs, this.#doneAtMs);
    if (tookMs > TOGETHER_MS) this.#judge(tookMs - commit.count * COMMIT_MS_PER_WRITE);
    this.#doneAtMs = nowMs;
    this.#wake();
  }

  #judge(commitMs: number): void {
    const weight = this.#commitMs === 0 ? 1 : LATEST_WEIGHT;
    this.#commitMs += (commitMs - this.#commitMs) * weight;
  }

  /** When a commit is done, and nobody has seen its answers yet. */
  #wake(): void {
    const waiting = this.#waitingForAnswers;
    this.#waitingForAnswers = [];
    for (const resolve of waiting) resolve();
  }

  /** Only while something is queued: its commit begins with the next turn. */
  next(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Only while something is under way. */
  answers(): Promise<void> {
    return new Promise((resolve) => this.#waitingForAnswers.push(resolve));
  }

  #begin(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#open.beganAtMs = this.#env.monotonicMs();
    this.#open = newCommit();
    for (const resolve of waiting) resolve();
  }
}

function newCommit(): Commit {
  return { count: 0, beganAtMs: 0, state: "open" };
}
