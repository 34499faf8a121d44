/**
 * Group commit. Events wait here in order; whatever has gathered while the disk was busy goes out in one
 * write and one sync. What a failure means depends on the durability:
 *  - "before-reply": the events of the failed round are refused to their callers and forgotten;
 *  - "background": nobody waits, so they are kept and tried again with the next event or flush.
 * A round begins at the end of the turn in which something came in or the round before it ended, or when what
 * belongs to it has come in too (`hold`).
 *
 * Events that are safe in a store already (`pushKept`) are in no hurry: they wait for a round that others need, until
 * they are many, or for a moment. They are never forgotten: a round that fails leaves them for the next.
 */
import type { Env, Timer } from "../../env/index.ts";
import type { AnchorFile } from "./anchors.ts";
import type { EncodedEvent } from "./chain.ts";
import { AuditError, describeCause } from "./error.ts";
import type { Journal } from "./journal.ts";

export type AuditDurability = "before-reply" | "background";

interface Pending {
  readonly event: EncodedEvent;
  readonly settled: Settled | null;
  /** "in a store": it can wait, and must not be forgotten. */
  readonly safe: "in a store" | "not yet";
}

/** Called once, with null when the event is on the device. Must not throw. */
export type Settled = (failure: AuditError | null) => void;

interface FlushWaiter {
  /** Everything up to this many settled events. */
  readonly target: number;
  readonly resolve: () => void;
  readonly reject: (error: AuditError) => void;
}

export interface QueueOptions {
  readonly env: Pick<Env, "defer" | "timer">;
  readonly journal: Journal;
  readonly anchors: AnchorFile;
  readonly durability: AuditDurability;
  readonly anchorEvery: number;
}

/** Bounds how long sealing one round keeps the event loop: about two milliseconds. */
const ROUND_EVENTS = 512;
/** With more than these a round is worth its while: nothing waits for those that hold. */
const FEW_EVENTS = 4;
/** In the background the disk is asked to sync after this many, which also bounds what is kept for a retry. */
const BACKGROUND_SYNC_EVENTS = 1024;

/** Events that are safe in a store wait until they are so many, or for so long. */
const KEPT_TOGETHER = 256;
const KEPT_FOR_MS = 20;
/** After a failure, if nothing else tries again before. */
const KEPT_RETRY_MS = 1_000;

export class CommitQueue {
  readonly #options: QueueOptions;
  /** The first `#written` of them are in the file but not synced. */
  #pending: Pending[] = [];
  #written = 0;
  /** The first so many of them are part of the round that is under way. */
  #attempted = 0;
  #accepted = 0;
  #settled = 0;
  #flushWaiters: FlushWaiter[] = [];
  #round: Promise<void> | null = null;
  readonly #holds = new Set<Promise<void>>();
  #anchoring: Promise<void> | null = null;
  #lastError: AuditError | null = null;
  /** How many of those pending are safe in a store. */
  #kept = 0;
  #keptTimer: Timer | null = null;
  #isStopped = false;

  constructor(options: QueueOptions) {
    this.#options = options;
  }

  /** Events accepted and not yet safe. */
  get lag(): number {
    return this.#pending.length;
  }

  /** Why the last round failed; null again after a good one. */
  get lastError(): AuditError | null {
    return this.#lastError;
  }

  /** An encoded event. Nobody is told; look at `lag` and `lastError`. */
  push(event: string): void {
    this.#add({ event, settled: null, safe: "not yet" });
  }

  /** For one that is safe in a store. Calls back when that need not keep it any longer. */
  pushKept(event: EncodedEvent, settled: (() => void) | null): void {
    this.#kept += 1;
    this.#add({ event, settled, safe: "in a store" });
  }

  /** Calls back: a promise for each event would cost more than its line. */
  pushThen(event: string, settled: Settled): void {
    this.#add({ event, settled, safe: "not yet" });
  }

  /** See AuditTrail. */
  hold(): () => void {
    let open: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      open = resolve;
    });
    this.#holds.add(held);
    return () => {
      this.#holds.delete(held);
      open();
    };
  }

  flush(): Promise<void> {
    if (this.#settled === this.#accepted) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#flushWaiters.push({ target: this.#accepted, resolve, reject });
      this.#wake();
    });
  }

  /** Tries again to write what is still waiting. */
  retry(): void {
    if (this.#workDue()) this.#wake();
  }

  /** Nothing is tried again by itself from now on. */
  stop(): void {
    this.#isStopped = true;
    this.#keptTimer?.cancel();
  }

  /** Resolves when no round is running, and no anchor is being written. */
  async idle(): Promise<void> {
    while (this.#round !== null || this.#anchoring !== null) {
      await this.#round;
      await this.#anchoring;
    }
  }

  #add(pending: Pending): void {
    this.#pending.push(pending);
    this.#accepted += 1;
    if (this.#isPressing()) this.#wake();
    else this.#lookAgain();
  }

  /** Somebody waits for one of those pending, or those that can wait have become many. */
  #isPressing(): boolean {
    const { length } = this.#pending;
    const areMany = length >= KEPT_TOGETHER && this.#lastError === null;
    return length > this.#kept || areMany || this.#flushWaiters.length > 0;
  }

  #lookAgain(): void {
    if (this.#isStopped) return;
    const afterMs = this.#lastError === null ? KEPT_FOR_MS : KEPT_RETRY_MS;
    this.#keptTimer ??= this.#options.env.timer(afterMs, () => {
      this.#keptTimer = null;
      this.#wake();
    });
  }

  #wake(): void {
    this.#round ??= this.#run();
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    // Those who were just answered often have more to append: they get the rest of the turn to join.
    await this.#endOfTurn();
    for (let isFirst = true; this.#workDue() && (isFirst || this.#isPressing()); isFirst = false) {
      // Those that hold by now, and no others: a round that is due is never put off for long.
      if (this.#holds.size > 0 && this.#pending.length <= FEW_EVENTS) await Promise.all(this.#holds);
      try {
        await this.#oneRound();
      } catch (cause) {
        await this.#fail(cause);
        // Kept events wait for the next occasion, unless somebody asked for a flush in the meantime.
        if (this.#options.durability === "background" && this.#flushWaiters.length === 0) break;
      }
      await this.#endOfTurn();
    }
    this.#round = null;
    // What was planned before the round was planned for a disk that works.
    this.#keptTimer?.cancel();
    this.#keptTimer = null;
    if (this.#kept > 0) this.#lookAgain();
  }

  #endOfTurn(): Promise<void> {
    return new Promise((resolve) => this.#options.env.defer(resolve));
  }

  #workDue(): boolean {
    return this.#written < this.#pending.length || this.#commitDue();
  }

  #commitDue(): boolean {
    if (this.#written === 0) return false;
    const { durability, journal } = this.#options;
    if (durability === "before-reply" || this.#flushWaiters.length > 0) return true;
    return this.#written >= BACKGROUND_SYNC_EVENTS || journal.segmentFull;
  }

  async #oneRound(): Promise<void> {
    const { journal, durability } = this.#options;
    const round = this.#pending.slice(this.#written, this.#written + ROUND_EVENTS);
    this.#attempted = this.#written + round.length;
    const purpose = durability === "before-reply" ? "for a commit" : "for later";
    if (round.length > 0) this.#written += await journal.write(round.map(encodedEvent), purpose);
    this.#attempted = this.#written;
    if (!this.#commitDue()) return;
    const segment = await journal.commit();
    this.#lastError = null;
    for (const { settled } of this.#take(this.#written)) settled?.(null);
    this.#written = 0;
    this.#settleFlushes();
    if (segment === "segment ended" || this.#anchorDue()) this.#anchoring ??= this.#anchor();
  }

  #anchorDue(): boolean {
    const { anchors, journal, anchorEvery } = this.#options;
    return anchors.uncovered(journal.durableHead) >= anchorEvery;
  }

  /** The entries are safe whether or not this works, and need not wait for it; it is tried again later. */
  async #anchor(): Promise<void> {
    const { anchors, journal } = this.#options;
    await anchors.write(journal.durableHead).catch((cause: unknown) => {
      this.#lastError = writeFailed(cause);
    });
    this.#anchoring = null;
  }

  async #fail(cause: unknown): Promise<void> {
    const error = writeFailed(cause);
    this.#lastError = error;
    const attempted = this.#options.durability === "before-reply" ? this.#take(this.#attempted) : [];
    const failed = attempted.filter(({ safe }) => safe === "not yet");
    this.#putBack(attempted.filter(({ safe }) => safe === "in a store"));
    this.#written = 0;
    const waiters = this.#flushWaiters;
    this.#flushWaiters = [];
    await this.#options.journal.rollBack();
    for (const { settled } of failed) settled?.(error);
    for (const waiter of waiters) waiter.reject(error);
  }

  #take(count: number): readonly Pending[] {
    const taken = this.#pending.splice(0, count);
    this.#settled += taken.length;
    for (const { safe } of taken) if (safe === "in a store") this.#kept -= 1;
    return taken;
  }

  #putBack(kept: readonly Pending[]): void {
    this.#pending.unshift(...kept);
    this.#kept += kept.length;
    this.#settled -= kept.length;
  }

  #settleFlushes(): void {
    const due = this.#flushWaiters.filter((waiter) => waiter.target <= this.#settled);
    if (due.length === 0) return;
    this.#flushWaiters = this.#flushWaiters.filter((waiter) => waiter.target > this.#settled);
    for (const waiter of due) waiter.resolve();
  }
}

function encodedEvent({ event }: Pending): EncodedEvent {
  return event;
}

function writeFailed(cause: unknown): AuditError {
  if (cause instanceof AuditError) return cause;
  const advice = "the entry is not confirmed; free space or repair the disk, then repeat";
  return new AuditError(
    "AUDIT_WRITE_FAILED",
    `the audit trail cannot be written: ${describeCause(cause)}; ${advice}`,
    cause,
  );
}
