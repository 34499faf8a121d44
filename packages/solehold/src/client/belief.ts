/**
 * What a holder believes of its lease: whether it is held, until when, and why no longer. It reads the clocks whenever it
 * is asked; a timer only brings the end to those who observe it (`signal`, `onStateChange`).
 *
 * Promised: "held" is never said after the validity ended; the signal aborts once. It talks to no store: renewals extend it
 * (renewal.ts), commands end it (lease.ts).
 */
import {
  type ClockReading,
  isStillValid,
  laterValidity,
  remainingValidityMs,
  type Validity,
  validityFrom,
} from "../core/index.ts";
import { readClocks, type Timer } from "../env/index.ts";
import type { AppliedOutcome } from "../executor/index.ts";
import { isWatched, publish } from "./diagnostics.ts";
import { LeaseLostError, type LossReason } from "./errors.ts";
import type { Lease } from "./lease.ts";
import type { LeaseContext, LeaseHandleState } from "./lease-context.ts";
import { movedApart, type Suspendable } from "./suspend-detector.ts";

export interface BeliefOptions {
  readonly context: LeaseContext;
  /** For events and errors. */
  readonly lease: Lease;
  readonly keepAlive: boolean;
  /** Where another thread renews: makes what it reported known here. Called before each judgement. */
  readonly catchUp: (() => void) | null;
  /** It is over, and nobody knows yet. */
  readonly onEnd: () => void;
}

/** Timers may fire a little late; the signal must not. */
const EARLY_MS = 1;

export class Belief implements Suspendable {
  readonly #options: BeliefOptions;
  /** Made when somebody asks for the signal: short leases end before anybody does, and both cost time. */
  #abort: AbortController | null = null;
  #listeners: Set<(state: LeaseHandleState) => void> | null = null;
  #state: LeaseHandleState = "held";
  #lossReason: LossReason | null = null;
  /** Why it will have ended if nothing prolongs it. */
  #endsAs: LossReason = "expired";
  #validity: Validity;
  #expiresAtMs: number;
  #expiryTimer: Timer | null = null;
  /** Somebody observes the end: then a suspend must reach it at once. Otherwise the clocks are read when asked. */
  #isObserved = false;
  /** When the lease came into this hand. */
  readonly #since: ClockReading;

  constructor(grant: AppliedOutcome, now: ClockReading, options: BeliefOptions) {
    this.#options = options;
    this.#validity = this.validityOf(grant);
    this.#expiresAtMs = grant.decision.lease.expiresAtMs;
    this.#since = now;
  }

  get isOver(): boolean {
    return this.#state === "lost" || this.#state === "released";
  }

  get state(): LeaseHandleState {
    this.check();
    return this.#state;
  }

  get lossReason(): LossReason | null {
    this.check();
    return this.#lossReason;
  }

  get expiresAtMs(): number {
    return this.#expiresAtMs;
  }

  get signal(): AbortSignal {
    if (this.#abort === null) {
      this.#abort = new AbortController();
      this.#observe();
      this.check();
      if (this.isOver) this.#abort.abort(this.lostError());
    }
    return this.#abort.signal;
  }

  /** Only reads: a lease that ran out is ended by its timer, or by the next question for its state. */
  remainingMs(now = this.#now()): number {
    this.#options.catchUp?.();
    return this.isOver ? 0 : remainingValidityMs(this.#validity, now);
  }

  isHeld(): boolean {
    this.check();
    return !this.isOver;
  }

  assertHeld(): void {
    if (!this.isHeld()) throw this.lostError();
  }

  heldMs(): number {
    return this.#now().monotonicMs - this.#since.monotonicMs;
  }

  lostError(): LeaseLostError {
    const { key, fence } = this.#options.lease;
    return new LeaseLostError(key, this.#lossReason ?? "expired", fence);
  }

  onStateChange(listener: (state: LeaseHandleState) => void): () => void {
    this.#observe();
    const listeners = this.#listeners ?? new Set();
    this.#listeners = listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  /** What an answer of the store lets its holder believe. */
  validityOf({ believedFrom, validForMs }: AppliedOutcome): Validity {
    return validityFrom(believedFrom, validForMs, this.#options.context.drift);
  }

  /** The store confirmed a renewal. */
  extend(renewed: AppliedOutcome): void {
    this.#validity = laterValidity(this.#validity, this.validityOf(renewed));
    this.#expiresAtMs = renewed.decision.lease.expiresAtMs;
    if (this.#endsAs === "unreachable") this.#endsAs = "expired";
    this.#setState("held");
  }

  /** It is still held, and may not be prolonged. `endsAs`: why it will have ended then. */
  endanger(endsAs?: "unreachable" | "revoked"): void {
    if (endsAs !== undefined && this.#endsAs !== "revoked") this.#endsAs = endsAs;
    this.#setState("jeopardy");
  }

  check(now = this.#now()): void {
    this.#options.catchUp?.();
    if (!this.isOver && !isStillValid(this.#validity, now)) this.end("lost", this.#endsAs);
  }

  end(state: "lost" | "released", reason: LossReason): void {
    if (this.isOver) return;
    const { context, lease, onEnd } = this.#options;
    this.#lossReason = reason;
    if (this.#isObserved) context.suspendWatch.remove(this);
    this.#expiryTimer?.cancel();
    onEnd();
    if (state === "lost" && isWatched("lost")) publish("lost", { lease, reason, heldMs: this.heldMs() });
    this.#setState(state);
    this.#abort?.abort(this.lostError());
  }

  /** The end is noticed when it comes, whatever else happens. */
  armExpiry(): void {
    const { context, keepAlive } = this.#options;
    this.#observe();
    this.#expiryTimer?.cancel();
    const inMs = Math.max(0, this.remainingMs() - EARLY_MS);
    this.#expiryTimer = context.env.timer(inMs, () => this.#expire(), { keepAlive });
  }

  /** Something else comes well before the end. */
  disarmExpiry(): void {
    this.#expiryTimer?.cancel();
  }

  /** The clocks moved apart, and what is left may be less than the timer knows. */
  afterSuspend(): void {
    this.check();
    if (!this.isOver) this.armExpiry();
  }

  #expire(): void {
    if (this.isOver) return;
    if (this.remainingMs() > EARLY_MS * 2) this.armExpiry();
    else this.end("lost", this.#endsAs);
  }

  #observe(): void {
    if (this.#isObserved || this.isOver) return;
    this.#isObserved = true;
    this.#options.context.suspendWatch.add(this);
    // Of a suspend before now the watch knows nothing, and what is planned comes later than it should.
    if (movedApart(this.#since, this.#now())) this.armExpiry();
  }

  #setState(state: LeaseHandleState): void {
    if (this.#state === state) return;
    this.#state = state;
    if (state === "jeopardy" && isWatched("jeopardy"))
      publish("jeopardy", { lease: this.#options.lease, remainingMs: this.remainingMs() });
    for (const listener of this.#listeners ?? []) safely(() => listener(state));
  }

  #now(): ClockReading {
    return readClocks(this.#options.context.env);
  }
}

/** A listener's mistake must not keep the lease from being renewed or ended. */
export function safely(call: () => void): void {
  try {
    call();
  } catch {
    // It is the listener's own.
  }
}
