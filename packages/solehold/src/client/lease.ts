/**
 * A lease in the hand of its holder.
 *
 * Promised: `assertHeld()` reads the clocks, so it is right even after a pause in which no timer could
 * fire; `signal` aborts exactly once, no later than the lease ends, even if the store never answers again;
 * after `release()` nothing renews it, and `release()` never throws.
 * Not promised: that work which ignores the signal stops. Give the fence to what it writes to.
 */
import {
  type ClockReading,
  formatFence,
  handoffProblem,
  isStillValid,
  JITTER_RATIO,
  type LeaseKey,
  laterValidity,
  type Purpose,
  type Reason,
  recordFence,
  remainingValidityMs,
  slotIn,
  type Validity,
  validityFrom,
  writeTransfer,
} from "../core/index.ts";
import { jittered, readClocks, type Timer } from "../env/index.ts";
import type { AppliedOutcome, CommandOutcome } from "../executor/index.ts";
import { isWatched, publish } from "./diagnostics.ts";
import { LeaseLostError, LeaseRefusedError, type LossReason } from "./errors.ts";
import type { LeaseContext, LeaseHandleState, LeaseOptions } from "./lease-context.ts";
import { lossOf, type ReleaseResult, releaseResult, unreachable } from "./loss.ts";
import { failureOf } from "./outcome-errors.ts";
import { probeSaysAlive } from "./probe.ts";
import type { Renewable } from "./renewal-schedule.ts";
import type { Suspendable } from "./suspend-detector.ts";

/** Renewals are sent after a third of the ttl, retries after a tenth, and given up on after a sixth. */
const RENEW_PART = 1 / 3;
const RETRY_PART = 1 / 10;
const TIMEOUT_PART = 1 / 6;
const MIN_TIMEOUT_MS = 10;
const MAX_RELEASE_MS = 5_000;
/** After these there is nothing to release, or no way to do it. */
const UNRELEASABLE: ReadonlySet<LossReason> = new Set(["superseded", "released", "closed"]);
/** Timers may fire a little late; the signal must not. */
const EARLY_MS = 1;

export class Lease implements Renewable, Suspendable {
  readonly key: LeaseKey;
  readonly holder: string;
  readonly purpose: Purpose;
  readonly fence: bigint;
  readonly ttlMs: number;
  /** The last holder did not finish: rebuild from persisted state, then call `resumed()`. */
  readonly resumeFromLedgerRequired: boolean;
  readonly #context: LeaseContext;
  readonly #options: LeaseOptions;
  readonly #token: string;
  /** Made when somebody asks for the signal: short leases end before anybody does, and both cost time. */
  #abort: AbortController | null = null;
  #listeners: Set<(state: LeaseHandleState) => void> | null = null;
  #renewalListeners: Set<(remainingMs: number) => void> | null = null;
  #state: LeaseHandleState = "held";
  #lossReason: LossReason | null = null;
  #validity: Validity;
  #expiresAtMs: number;
  #expiryTimer: Timer | null = null;
  /** Somebody observes the end: then a suspend and a revocation must reach it at once. Otherwise the clocks are read when asked. */
  #isObserved = false;
  #storeFailing = false;
  #breaking = false;
  #releasing: Promise<ReleaseResult> | null = null;
  /** On the monotonic clock: when it came into this hand. */
  readonly #sinceMs: number;

  constructor(context: LeaseContext, grant: AppliedOutcome, options: LeaseOptions) {
    const { lease } = grant.decision;
    this.#context = context;
    this.#options = options;
    this.#token = grant.token;
    this.key = lease.key;
    this.holder = lease.holder;
    this.purpose = lease.purpose;
    this.fence = recordFence(lease);
    this.ttlMs = options.ttlMs;
    this.resumeFromLedgerRequired = grant.decision.resumeFromLedgerRequired;
    this.#validity = this.#validityOf(grant);
    this.#expiresAtMs = lease.expiresAtMs;
    context.held.add(this);
    const now = this.#now();
    this.#sinceMs = now.monotonicMs;
    this.#planRenewal(RENEW_PART, now);
    // The answer may have been so long on its way that the lease is over.
    this.#check(now);
  }

  /** The secret that proves this grant, for programs that renew or release it elsewhere. Never log it. */
  get token(): string {
    return this.#token;
  }

  get name(): string {
    return this.key.name;
  }

  /** Which of the slots that were asked for, from 0 on; 0 for a lease without slots. Its key's name says it, too. */
  get slot(): number {
    return slotIn(this.key.name).slot;
  }

  /** Aborts, once, when the lease is over for this holder; the reason is a LeaseLostError. */
  get signal(): AbortSignal {
    if (this.#abort === null) {
      this.#abort = new AbortController();
      this.#observe();
      this.#check();
      if (this.#isOver()) this.#abort.abort(this.#lostError());
      else this.#watchForRevocation();
    }
    return this.#abort.signal;
  }

  /** Reads the clocks: never a stale "held". */
  get state(): LeaseHandleState {
    this.#check();
    return this.#state;
  }

  /** Why it is over; null while it is not. */
  get lossReason(): LossReason | null {
    this.#check();
    return this.#lossReason;
  }

  /** The expiry on the store's clock, for people and logs. Decide by `remaining()`, not by this. */
  get expiresAtMs(): number {
    return this.#expiresAtMs;
  }

  /** Milliseconds for which the lease may still be believed without another renewal; 0 when it is over. */
  remaining(): number {
    this.#check();
    return this.#isOver() ? 0 : remainingValidityMs(this.#validity, this.#now());
  }

  isHeld(): boolean {
    return this.remaining() > 0;
  }

  /** For observers that must not change a run: as `remaining`, but a lease that is over is not ended by the question. */
  peekRemaining(): number {
    return this.#isOver() ? 0 : remainingValidityMs(this.#validity, this.#now());
  }

  /** Throws LeaseLostError unless the lease is held at this very moment. */
  assertHeld(): void {
    if (!this.isHeld()) throw this.#lostError();
  }

  /** Calls back after every renewal that the store confirmed, with how long the lease may now be believed. */
  onRenewed(listener: (remainingMs: number) => void): () => void {
    const listeners = this.#renewalListeners ?? new Set();
    this.#renewalListeners = listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  /** Calls back on every change of state. */
  onStateChange(listener: (state: LeaseHandleState) => void): () => void {
    this.#observe();
    if (!this.#isOver()) this.#watchForRevocation();
    const listeners = this.#listeners ?? new Set();
    this.#listeners = listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  /** Renews now. Throws LeaseLostError when the lease is over, or returns false when the store did not answer. */
  async renew(): Promise<boolean> {
    this.assertHeld();
    const outcome = await this.#sendRenewal();
    this.#settleRenewal(outcome);
    this.assertHeld();
    return outcome.kind === "applied";
  }

  /** Says that work was rebuilt from persisted state after a takeover: steps may run again. */
  async resumed(): Promise<void> {
    this.assertHeld();
    const { key, holder } = this;
    const outcome = await this.#context.executor.execute({ op: "resume", key, holder, token: this.#token });
    if (outcome.kind === "unsettled") throw outcome.cause;
    if (outcome.kind === "refused") this.#loseBy(outcome.decision.reason);
    this.assertHeld();
  }

  /** Gives the lease back. Never throws; bounded in time; calling it again gives the same answer. */
  release(): Promise<ReleaseResult> {
    this.#releasing ??= this.#announced(this.#release());
    return this.#releasing;
  }

  /**
   * Stops here, and lets only `successor` take over until the deadline; after it anybody may. Throws
   * LeaseRefusedError when the request is wrong; a wrong one that is seen here does not end the lease.
   */
  async handOff(successor: string, deadline: { readonly withinMs: number }): Promise<ReleaseResult> {
    this.assertHeld();
    const { key, holder } = this;
    const { withinMs } = deadline;
    const { executor } = this.#context;
    const problem = handoffProblem({ successor, withinMs }, executor.policy);
    if (problem !== null) {
      throw new LeaseRefusedError(key, "INPUT_SCHEMA_INVALID", problem.field, problem.message);
    }
    this.#end("released", "released");
    const timeoutMs = this.#releaseTimeoutMs();
    const handing = executor.execute({
      op: "handoff",
      key,
      holder,
      token: this.#token,
      successor,
      withinMs,
      timeoutMs,
    });
    this.#releasing ??= this.#announced(handing.then(releaseResult, unreachable));
    const outcome = await handing.catch(() => null);
    // A server's policy may be stricter than what is known of it here.
    if (outcome?.kind === "refused" && outcome.decision.kind === "refused") throw failureOf(key, outcome);
    return await this.#releasing;
  }

  /**
   * Stops renewing and believing, and releases nothing: the lease ends by its ttl. For work that could not be stopped, and
   * must keep others out for as long as it may still run.
   */
  abandon(): void {
    this.#end("released", "abandoned");
    this.#releasing ??= this.#announced(Promise.resolve({ released: false, reason: "already-gone" }));
  }

  /**
   * The secret with which another process can `adopt` this lease. This handle stops believing at once: at
   * any instant one of the two may act.
   */
  transfer(): string {
    this.assertHeld();
    this.#end("released", "released");
    this.#releasing ??= this.#announced(Promise.resolve({ released: false, reason: "already-gone" }));
    const { key, holder, ttlMs, fence } = this;
    return writeTransfer({ key, holder, ttlMs, fence, token: this.#token });
  }

  /** What may be logged: everything but the token. */
  toJSON(): Record<string, string | number | null> {
    const { key, holder, purpose, ttlMs, state } = this;
    const { expiresAtMs, lossReason } = this;
    return { ...key, holder, purpose, fence: formatFence(this.fence), ttlMs, state, lossReason, expiresAtMs };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** For `Leases.close()`: the handle is over at once, whatever becomes of the record. */
  endByClose(): void {
    this.#end("lost", "closed");
  }

  /** For the schedule: starts a renewal and never throws. */
  renewNow(): void {
    this.#renewInBackground().catch(() => {
      // Not the store's failure (those are outcomes), but no mistake may escape from a timer.
      this.#setState("jeopardy");
      this.#planRenewal(RETRY_PART);
    });
  }

  async #renewInBackground(): Promise<void> {
    // After a suspend this timer may be the first to run: a lease that is over must not be renewed.
    this.#check();
    if (this.#isOver()) return;
    this.#armExpiry();
    if (this.#breaking) return;
    const { probe } = this.#options;
    if (probe !== undefined && !(await probeSaysAlive(probe, this.#context.env, this.#timeoutMs()))) {
      this.#setState("jeopardy");
      this.#planRenewal(RETRY_PART);
      return;
    }
    this.#check();
    if (this.#isOver()) return;
    this.#settleRenewal(await this.#sendRenewal());
  }

  async #sendRenewal(): Promise<CommandOutcome> {
    const { key, holder, ttlMs } = this;
    const sentMs = isWatched("renewed") ? this.#now().monotonicMs : 0;
    const outcome = await this.#context.executor.execute({
      op: "renew",
      key,
      holder,
      token: this.#token,
      ttlMs,
      timeoutMs: this.#timeoutMs(),
    });
    if (isWatched("renewed") && outcome.kind === "applied" && !this.#isOver()) {
      const now = this.#now();
      const remainingMs = remainingValidityMs(this.#validityOf(outcome), now);
      publish("renewed", { lease: this, durationMs: now.monotonicMs - sentMs, remainingMs });
    }
    return outcome;
  }

  #settleRenewal(outcome: CommandOutcome): void {
    if (this.#isOver()) return;
    if (outcome.kind === "refused") {
      this.#loseBy(outcome.decision.reason);
      return;
    }
    this.#storeFailing = outcome.kind === "unsettled";
    if (outcome.kind === "unsettled" && outcome.cause.kind === "data-loss") {
      // The store may grant the lease to somebody else as soon as it trusts its data again.
      this.#end("lost", "store-lost-data");
      return;
    }
    if (outcome.kind === "unsettled") {
      this.#setState("jeopardy");
      this.#planRenewal(RETRY_PART);
      return;
    }
    this.#validity = laterValidity(this.#validity, this.#validityOf(outcome));
    this.#expiresAtMs = outcome.decision.lease.expiresAtMs;
    this.#setState("held");
    this.#planRenewal(RENEW_PART);
    if (this.#renewalListeners === null) return;
    const remainingMs = remainingValidityMs(this.#validity, this.#now());
    for (const listener of this.#renewalListeners) safely(() => listener(remainingMs));
  }

  /** The store's word: an authoritative loss stops at once, with one exception. */
  #loseBy(reason: Reason): void {
    if (reason === "LEASE_BREAKING") {
      // Somebody asked for the lease. It stays valid until its end, but cannot be prolonged.
      this.#breaking = true;
      this.#armExpiry();
      this.#setState("jeopardy");
      return;
    }
    this.#end("lost", lossOf(reason));
  }

  /**
   * The end needs no timer of its own as long as a renewal comes well before it: most leases are renewed or
   * released long before they could end.
   */
  #planRenewal(partOfTtl: number, now = this.#now()): void {
    if (this.#isOver()) return;
    const { autoRenew, keepAlive } = this.#options;
    const { env, schedule } = this.#context;
    const inMs = jittered(env, this.ttlMs * partOfTtl, JITTER_RATIO);
    if (autoRenew) schedule.plan(this, now.monotonicMs, inMs);
    const spareMs = remainingValidityMs(this.#validity, now) - inMs;
    const comesInTime = autoRenew && partOfTtl === RENEW_PART && spareMs > this.#timeoutMs();
    if (keepAlive || !comesInTime) this.#armExpiry();
    else this.#expiryTimer?.cancel();
  }

  #armExpiry(): void {
    this.#observe();
    this.#expiryTimer?.cancel();
    const { env } = this.#context;
    const inMs = remainingValidityMs(this.#validity, this.#now()) - EARLY_MS;
    this.#expiryTimer = env.timer(Math.max(0, inMs), () => this.#expire(), {
      keepAlive: this.#options.keepAlive,
    });
  }

  #expire(): void {
    if (this.#isOver()) return;
    if (remainingValidityMs(this.#validity, this.#now()) > EARLY_MS * 2) this.#armExpiry();
    else this.#runOut();
  }

  #check(now = this.#now()): void {
    if (!this.#isOver() && !isStillValid(this.#validity, now)) this.#runOut();
  }

  #observe(): void {
    if (this.#isObserved || this.#isOver()) return;
    this.#isObserved = true;
    this.#context.suspendWatch.add(this);
  }

  /** A handle that does not renew by itself must not be renewed by an event either. */
  #watchForRevocation(): void {
    if (this.#options.autoRenew) this.#context.revocations.add(this);
  }

  /** For the suspend watch: the clocks moved apart, and what is left may be less than the timer knows. */
  afterSuspend(): void {
    this.#check();
    if (!this.#isOver()) this.#armExpiry();
  }

  #runOut(): void {
    this.#end("lost", this.#breaking ? "revoked" : this.#storeFailing ? "unreachable" : "expired");
  }

  #end(state: "lost" | "released", reason: LossReason): void {
    if (this.#isOver()) return;
    this.#lossReason = reason;
    this.#context.schedule.cancel(this);
    if (this.#isObserved) this.#context.suspendWatch.remove(this);
    this.#context.revocations.remove(this);
    this.#context.held.delete(this);
    this.#expiryTimer?.cancel();
    if (state === "lost" && isWatched("lost"))
      publish("lost", { lease: this, reason, heldMs: this.#heldMs() });
    this.#setState(state);
    this.#abort?.abort(this.#lostError());
  }

  #setState(state: LeaseHandleState): void {
    if (this.#state === state) return;
    this.#state = state;
    if (state === "jeopardy" && isWatched("jeopardy"))
      publish("jeopardy", { lease: this, remainingMs: remainingValidityMs(this.#validity, this.#now()) });
    for (const listener of this.#listeners ?? []) safely(() => listener(state));
  }

  #release(): Promise<ReleaseResult> {
    // After a close nothing can be sent any more.
    const gone = this.#lossReason !== null && UNRELEASABLE.has(this.#lossReason);
    this.#end("released", "released");
    if (gone) return Promise.resolve({ released: false, reason: "already-gone" });
    const { key, holder } = this;
    const timeoutMs = this.#releaseTimeoutMs();
    return this.#context.executor
      .execute({ op: "release", key, holder, token: this.#token, timeoutMs })
      .then(releaseResult, unreachable);
  }

  /** Nothing for a lease that was lost before: that was its end. */
  #announced(releasing: Promise<ReleaseResult>): Promise<ReleaseResult> {
    if (!isWatched("released") || this.#state !== "released") return releasing;
    const [heldMs, startedMs] = [this.#heldMs(), this.#now().monotonicMs];
    return releasing.then((result) => {
      publish("released", { lease: this, heldMs, durationMs: this.#now().monotonicMs - startedMs, result });
      return result;
    });
  }

  #heldMs(): number {
    return this.#now().monotonicMs - this.#sinceMs;
  }

  #releaseTimeoutMs(): number {
    return Math.min(MAX_RELEASE_MS, Math.max(this.ttlMs, MIN_TIMEOUT_MS));
  }

  #timeoutMs(): number {
    return Math.max(MIN_TIMEOUT_MS, this.ttlMs * TIMEOUT_PART);
  }

  #validityOf(outcome: AppliedOutcome): Validity {
    return validityFrom(outcome.believedFrom, outcome.validForMs, this.#context.drift);
  }

  #isOver(): boolean {
    return this.#state === "lost" || this.#state === "released";
  }

  #lostError(): LeaseLostError {
    return new LeaseLostError(this.key, this.#lossReason ?? "expired", this.fence);
  }

  #now(): ClockReading {
    return readClocks(this.#context.env);
  }
}

/** A listener's mistake must not keep the lease from being renewed or ended. */
function safely(call: () => void): void {
  try {
    call();
  } catch {
    // It is the listener's own.
  }
}
