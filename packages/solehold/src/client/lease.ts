/**
 * A lease in the hand of its holder.
 *
 * Promised: `assertHeld()` reads the clocks, so it is right even after a pause in which no timer could
 * fire; `signal` aborts exactly once, no later than the lease ends, even if the store never answers again;
 * after `release()` nothing renews it, and `release()` never throws.
 * Not promised: that work which ignores the signal stops. Give the fence to what it writes to.
 */
import {
  formatFence,
  handoffProblem,
  type LeaseKey,
  type Purpose,
  recordFence,
  slotIn,
  writeTransfer,
} from "../core/index.ts";
import { readClocks } from "../env/index.ts";
import type { AppliedOutcome } from "../executor/index.ts";
import { Belief } from "./belief.ts";
import { isWatched, publish } from "./diagnostics.ts";
import { LeaseRefusedError, type LossReason } from "./errors.ts";
import type { LeaseContext, LeaseHandleState, LeaseOptions } from "./lease-context.ts";
import { type ReleaseResult, releaseResult, unreachable } from "./loss.ts";
import { failureOf } from "./outcome-errors.ts";
import { MIN_TIMEOUT_MS, Renewal } from "./renewal.ts";

const MAX_RELEASE_MS = 5_000;
/** After these there is nothing to release, or (after a close) no way to do it. */
const UNRELEASABLE: ReadonlySet<LossReason> = new Set(["superseded", "released", "closed"]);
const NOT_RELEASED: ReleaseResult = { released: false, reason: "already-gone" };

export class Lease {
  readonly key: LeaseKey;
  readonly holder: string;
  readonly purpose: Purpose;
  readonly fence: bigint;
  readonly ttlMs: number;
  /** The last holder did not finish: rebuild from persisted state, then call `resumed()`. */
  readonly resumeFromLedgerRequired: boolean;
  readonly #context: LeaseContext;
  readonly #token: string;
  readonly #belief: Belief;
  readonly #renewal: Renewal;
  #releasing: Promise<ReleaseResult> | null = null;

  constructor(context: LeaseContext, grant: AppliedOutcome, options: LeaseOptions) {
    const { lease } = grant.decision;
    this.#context = context;
    this.#token = grant.token;
    this.key = lease.key;
    this.holder = lease.holder;
    this.purpose = lease.purpose;
    this.fence = recordFence(lease);
    this.ttlMs = options.ttlMs;
    this.resumeFromLedgerRequired = grant.decision.resumeFromLedgerRequired;
    const now = readClocks(context.env);
    const onEnd = (): void => {
      this.#renewal.stop();
      context.held.delete(this);
    };
    const { keepAlive } = options;
    const catchUp = context.worker === null ? null : (): void => this.#renewal.catchUp();
    this.#belief = new Belief(grant, now, { context, lease: this, keepAlive, catchUp, onEnd });
    this.#renewal = new Renewal(context, this, this.#belief, options);
    context.held.add(this);
    this.#renewal.start(grant, now);
    // The answer may have been so long on its way that the lease is over.
    this.#belief.check(now);
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
    const { signal } = this.#belief;
    this.#renewal.watchForRevocation();
    return signal;
  }

  /** Reads the clocks: never a stale "held". */
  get state(): LeaseHandleState {
    return this.#belief.state;
  }

  /** Why it is over; null while it is not. */
  get lossReason(): LossReason | null {
    return this.#belief.lossReason;
  }

  /** The expiry on the store's clock, for people and logs. Decide by `remaining()`, not by this. */
  get expiresAtMs(): number {
    return this.#belief.expiresAtMs;
  }

  /** Milliseconds for which the lease may still be believed without another renewal; 0 when it is over. */
  remaining(): number {
    return this.#belief.remainingMs();
  }

  isHeld(): boolean {
    return this.#belief.isHeld();
  }

  /** Throws LeaseLostError unless the lease is held at this very moment. */
  assertHeld(): void {
    this.#belief.assertHeld();
  }

  /** Calls back after every renewal that the store confirmed, with how long the lease may now be believed. */
  onRenewed(listener: (remainingMs: number) => void): () => void {
    return this.#renewal.onRenewed(listener);
  }

  /** Calls back on every change of state. */
  onStateChange(listener: (state: LeaseHandleState) => void): () => void {
    this.#renewal.watchForRevocation();
    return this.#belief.onStateChange(listener);
  }

  /** Renews now. Throws LeaseLostError when the lease is over, or returns false when the store did not answer. */
  async renew(): Promise<boolean> {
    this.assertHeld();
    const outcome = await this.#renewal.renew();
    this.assertHeld();
    return outcome.kind === "applied";
  }

  /** Says that work was rebuilt from persisted state after a takeover: steps may run again. */
  async resumed(): Promise<void> {
    this.assertHeld();
    const { key, holder } = this;
    const outcome = await this.#context.executor.execute({ op: "resume", key, holder, token: this.#token });
    if (outcome.kind === "unsettled") throw outcome.cause;
    if (outcome.kind === "refused") this.#renewal.loseBy(outcome.decision.reason);
    this.assertHeld();
  }

  /** Ends the lease, so that the next one can begin. Never throws; bounded in time; calling it again gives the same answer. */
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
    this.#belief.end("released", "released");
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
    this.#belief.end("released", "abandoned");
    this.#releasing ??= this.#announced(Promise.resolve(NOT_RELEASED));
  }

  /**
   * The secret with which another process can `adopt` this lease. This handle stops believing at once: at
   * any instant one of the two may act.
   */
  transfer(): string {
    this.assertHeld();
    this.#belief.end("released", "released");
    this.#releasing ??= this.#announced(Promise.resolve(NOT_RELEASED));
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
    this.#belief.end("lost", "closed");
  }

  #release(): Promise<ReleaseResult> {
    const lostBy = this.#belief.isOver ? this.lossReason : null;
    this.#belief.end("released", "released");
    if (lostBy !== null && UNRELEASABLE.has(lostBy)) return Promise.resolve(NOT_RELEASED);
    const { key, holder } = this;
    const timeoutMs = this.#releaseTimeoutMs();
    return this.#context.executor
      .execute({ op: "release", key, holder, token: this.#token, timeoutMs })
      .then(releaseResult, unreachable);
  }

  /** Nothing for a lease that was lost before: that was its end. */
  #announced(releasing: Promise<ReleaseResult>): Promise<ReleaseResult> {
    if (!isWatched("released") || this.state !== "released") return releasing;
    const { env } = this.#context;
    const [heldMs, startedMs] = [this.#belief.heldMs(), env.monotonicMs()];
    return releasing.then((result) => {
      publish("released", { lease: this, heldMs, durationMs: env.monotonicMs() - startedMs, result });
      return result;
    });
  }

  #releaseTimeoutMs(): number {
    return Math.min(MAX_RELEASE_MS, Math.max(this.ttlMs, MIN_TIMEOUT_MS));
  }
}
