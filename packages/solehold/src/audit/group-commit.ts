/**
 * Group commit. Events wait here in order; all that came in while the disk was busy go out in one write and one sync.
 * A round begins at the end of the turn in which an event came in or the round before it ended. What a failure means
 * depends on the durability:
 *  - "before-reply": the events of the failed round are refused to their callers and forgotten;
 *  - "background": nobody waits, so they are kept and tried again with the next event or flush.
 */
import type { Env } from "../env/index.ts";
import { invariant } from "../support/invariant.ts";
import type { AnchorFile } from "./anchors.ts";
import { AuditError, describeCause } from "./error.ts";
import type { Journal } from "./segment-writer.ts";

export type AuditDurability = "before-reply" | "background";

interface Pending {
  /** Encoded. */
  readonly event: string;
  readonly settled: Settled;
}

/** Called once, with null when the event is on the device. Must not throw. */
type Settled = (failure: AuditError | null) => void;

interface FlushWaiter {
  /** Everything up to this many settled events. */
  readonly target: number;
  readonly resolve: () => void;
  readonly reject: (error: AuditError) => void;
}

export interface QueueOptions {
  readonly env: Pick<Env, "defer">;
  readonly journal: Journal;
  readonly anchors: AnchorFile;
  readonly durability: AuditDurability;
  readonly anchorEvery: number;
}

/** Bounds how long sealing one round keeps the event loop: about two milliseconds. */
const ROUND_EVENTS = 512;
/** In the background the disk is asked to sync after this many, which also bounds what is kept for a retry. */
const BACKGROUND_SYNC_EVENTS = 1024;

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
  #anchoring: Promise<void> | null = null;
  #lastError: AuditError | null = null;

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

  /** An encoded event whose caller does not wait; see `lag` and `lastError`. */
  push(event: string): void {
    this.#add({ event, settled: ignore });
  }

  /** Resolves when the encoded event is on the device. */
  commit(event: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#add({ event, settled: (failure) => (failure === null ? resolve() : reject(failure)) });
    });
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
    invariant(this.#accepted === this.#settled + this.#pending.length, "an event is settled or pending");
    this.#wake();
  }

  #wake(): void {
    this.#round ??= this.#run();
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    // Those who were just answered often have more to append: they get the rest of the turn to join.
    await this.#endOfTurn();
    while (this.#workDue()) {
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
    const { journal } = this.#options;
    const round = this.#pending.slice(this.#written, this.#written + ROUND_EVENTS);
    this.#attempted = this.#written + round.length;
    if (round.length > 0) this.#written += await journal.write(round.map(({ event }) => event));
    invariant(this.#written <= this.#attempted, "no more events are written than the round has");
    this.#attempted = this.#written;
    if (!this.#commitDue()) return;
    const segment = await journal.commit();
    this.#lastError = null;
    for (const { settled } of this.#take(this.#written)) settled(null);
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
    const { durability, journal } = this.#options;
    const error = writeFailed(cause);
    this.#lastError = error;
    const failed = durability === "before-reply" ? this.#take(this.#attempted) : [];
    this.#written = 0;
    const waiters = this.#flushWaiters;
    this.#flushWaiters = [];
    await journal.rollBack();
    for (const { settled } of failed) settled(error);
    for (const waiter of waiters) waiter.reject(error);
  }

  #take(count: number): readonly Pending[] {
    const taken = this.#pending.splice(0, count);
    this.#settled += taken.length;
    return taken;
  }

  #settleFlushes(): void {
    const due = this.#flushWaiters.filter((waiter) => waiter.target <= this.#settled);
    if (due.length === 0) return;
    this.#flushWaiters = this.#flushWaiters.filter((waiter) => waiter.target > this.#settled);
    for (const waiter of due) waiter.resolve();
  }
}

function ignore(): void {}

function writeFailed(cause: unknown): AuditError {
  if (cause instanceof AuditError) return cause;
  const advice = "the entry is not confirmed; free space or repair the disk, then repeat";
  return new AuditError(
    "AUDIT_WRITE_FAILED",
    `the audit trail cannot be written: ${describeCause(cause)}; ${advice}`,
    cause,
  );
}
