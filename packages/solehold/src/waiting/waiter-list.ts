/**
 * Those who wait for one key, in the order of their turns: how they come, how their time runs out, how they go and how they
 * are answered. A waiter that leaves never holds up those behind it; what was granted to it in that very moment is released
 * (release-unclaimed.ts).
 */
import type { CommandOutcome, LeaseExecutor } from "../executor/index.ts";
import { invariant } from "../support/invariant.ts";
import { asUnsettled, mayBeGranted } from "./outcomes.ts";
import { placeOf } from "./precedence.ts";
import { releaseOfUnclaimed } from "./release-unclaimed.ts";
import { type WaitEnd, waitEnded } from "./wait-ended-error.ts";
import type { Waiter } from "./waiter.ts";

export interface WaiterListOptions {
  readonly next: LeaseExecutor;
  readonly onSize: (change: 1 | -1) => void;
  readonly onDecided: (outcome: CommandOutcome) => void;
  /** An attempt of a waiter that is not in the list any more. */
  readonly lastAttempt: (waiter: Waiter) => Promise<CommandOutcome>;
  readonly inBackground: (work: Promise<unknown>) => void;
}

export class WaiterList {
  readonly all: Waiter[] = [];
  readonly #options: WaiterListOptions;

  constructor(options: WaiterListOptions) {
    this.#options = options;
  }

  /** Behind those who came before it, but for those whom its priority lets it pass. */
  add(waiter: Waiter): void {
    this.all.splice(placeOf(waiter.priority, this.all, waiter.sinceMs), 0, waiter);
    this.#options.onSize(1);
  }

  /** Its time can run out, and its caller can go, from now on. */
  arm(waiter: Waiter): void {
    if (waiter.isArmed) return;
    const onGone = (): void => this.end(waiter, "cancelled");
    waiter.arm(() => this.timeOut(waiter), onGone);
    if (waiter.recipient.isGone()) onGone();
  }

  /** The wait is over: what a last attempt is answered is the answer, and is in the audit like any other. */
  timeOut(waiter: Waiter): void {
    const { lastAttempt, inBackground, onDecided } = this.#options;
    // The attempt that is under way may succeed: its answer is the better one, and it is near.
    if (waiter.phase === "trying") waiter.phase = "overdue";
    if (waiter.phase !== "waiting") return;
    this.#remove(waiter);
    waiter.phase = "overdue";
    const last = lastAttempt(waiter)
      .catch(asUnsettled)
      .then((outcome) => {
        this.#answer(waiter, outcome);
        onDecided(outcome);
      });
    inBackground(last);
  }

  /** Ends a wait without an answer of the store. */
  end(waiter: Waiter, end: WaitEnd): void {
    const wasTrying = waiter.phase === "trying" || waiter.phase === "overdue";
    if (waiter.phase === "left" || !this.all.includes(waiter)) return;
    this.leave(waiter, waitEnded(end));
    // Its attempt may have been carried out although nobody confirmed it.
    if (!wasTrying && waiter.unconfirmed !== null)
      this.#options.inBackground(this.releaseUnclaimed(waiter, waiter.unconfirmed));
  }

  leave(waiter: Waiter, outcome: CommandOutcome): void {
    this.#remove(waiter);
    this.#answer(waiter, outcome);
  }

  /** Granted, or perhaps granted, to a caller that has gone. False when there is nothing to release. */
  async releaseUnclaimed(waiter: Waiter, outcome: CommandOutcome): Promise<boolean> {
    const { next, onDecided } = this.#options;
    const releases = releaseOfUnclaimed(waiter, outcome);
    for (const release of releases) onDecided(await next.execute(release, waiter.context).catch(asUnsettled));
    return releases.length > 0;
  }

  #answer(waiter: Waiter, outcome: CommandOutcome): void {
    waiter.leave(outcome);
    if (mayBeGranted(outcome)) this.#options.inBackground(this.releaseUnclaimed(waiter, outcome));
  }

  #remove(waiter: Waiter): void {
    const index = this.all.indexOf(waiter);
    invariant(index >= 0, "a waiter leaves once");
    this.all.splice(index, 1);
    this.#options.onSize(-1);
  }
}
