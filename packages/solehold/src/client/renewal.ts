/**
 * Keeps one lease renewed: when the next renewal is sent, what its answer means, and when there is none any more. Nothing
 * escapes from here into a timer, and nothing is sent for a lease that is over.
 */
import {
  type ClockReading,
  JITTER_RATIO,
  type LeaseKey,
  type Reason,
  type RenewalTiming,
} from "../core/index.ts";
import { type Env, jittered, readClocks } from "../env/index.ts";
import type { AppliedOutcome, CommandOutcome } from "../executor/index.ts";
import { type Belief, safely } from "./belief.ts";
import { isWatched, publish } from "./diagnostics.ts";
import type { Lease } from "./lease.ts";
import type { LeaseContext, LeaseOptions } from "./lease-context.ts";
import { lossOf } from "./loss.ts";
import type { Renewable } from "./renewal-schedule.ts";
import type { RenewalReport, ThreadRenewal } from "./renewal-worker.ts";
import type { RevocableLease } from "./revocation-watch.ts";

/** Renewals are sent after a third of the ttl, retries after a tenth, and given up on after a sixth. */
const RENEW_PART = 1 / 3;
const RETRY_PART = 1 / 10;
const TIMEOUT_PART = 1 / 6;
export const MIN_TIMEOUT_MS = 10;

export function renewalTiming(ttlMs: number): RenewalTiming {
  return { ttlMs, renewEveryMs: ttlMs * RENEW_PART, retryEveryMs: ttlMs * RETRY_PART };
}

export class Renewal implements Renewable, RevocableLease {
  readonly #context: LeaseContext;
  readonly #lease: Lease;
  readonly #belief: Belief;
  readonly #options: LeaseOptions;
  #listeners: Set<(remainingMs: number) => void> | null = null;
  /** Somebody asked for the lease: it cannot be prolonged any more. */
  #isBreaking = false;
  /** Another thread renews it, and this one only settles what it reports. */
  #thread: ThreadRenewal | null = null;

  constructor(context: LeaseContext, lease: Lease, belief: Belief, options: LeaseOptions) {
    this.#context = context;
    this.#lease = lease;
    this.#belief = belief;
    this.#options = options;
  }

  get #renewsHere(): boolean {
    return this.#options.autoRenew && this.#context.worker === null;
  }

  /** For a lease that is renewed from now on. */
  start(grant: AppliedOutcome, now: ClockReading): void {
    const { worker } = this.#context;
    this.#planNext(now);
    if (worker !== null && this.#options.autoRenew)
      this.#thread = worker.keep(grant, this.#options.ttlMs, (report) => this.#settle(report));
  }

  /** The belief is about to be judged: what another thread reported counts, even if the event loop was blocked since. */
  catchUp(): void {
    this.#thread?.drain();
  }

  get key(): LeaseKey {
    return this.#lease.key;
  }

  get fence(): bigint {
    return this.#lease.fence;
  }

  onRenewed(listener: (remainingMs: number) => void): () => void {
    const listeners = this.#listeners ?? new Set();
    this.#listeners = listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  /** Somebody observes the end. A handle that does not renew by itself must not be renewed by an event either. */
  watchForRevocation(): void {
    if (this.#renewsHere && !this.#belief.isOver) this.#context.revocations.add(this);
  }

  stop(): void {
    this.#context.schedule.cancel(this);
    this.#context.revocations.remove(this);
    this.#thread?.stop();
  }

  /** For the schedule: starts a renewal and never throws. */
  renewNow(): void {
    this.#renewInBackground().catch(() => {
      // Not the store's failure (those are outcomes), but no mistake may escape from a timer.
      this.#retry();
    });
  }

  /** Sends one, and settles what its answer means for the belief. */
  async renew(): Promise<CommandOutcome> {
    const { key, holder, token, ttlMs } = this.#lease;
    const { env } = this.#context;
    const sentMs = env.monotonicMs();
    const timeoutMs = this.#timeoutMs();
    const outcome = await this.#context.renew({ op: "renew", key, holder, token, ttlMs, timeoutMs });
    this.#settle({ outcome, durationMs: env.monotonicMs() - sentMs });
    return outcome;
  }

  #settle({ outcome, durationMs }: RenewalReport): void {
    if (this.#belief.isOver) return;
    if (outcome.kind === "refused") this.loseBy(outcome.decision.reason);
    else if (outcome.kind === "applied") this.#extend(outcome, durationMs);
    // The store may grant the lease to somebody else as soon as it trusts its data again.
    else if (outcome.cause.kind === "data-loss") this.#belief.end("lost", "store-lost-data");
    else this.#retry("unreachable");
  }

  /** The store's word: an authoritative loss stops at once, with one exception. */
  loseBy(reason: Reason): void {
    if (reason !== "LEASE_BREAKING") {
      this.#belief.end("lost", lossOf(reason));
      return;
    }
    // It stays valid until its end.
    this.#isBreaking = true;
    this.#belief.armExpiry();
    this.#belief.endanger("revoked");
  }

  /**
   * The end needs no timer of its own as long as a renewal comes well before it: most leases are renewed or released long
   * before they could end.
   */
  #planNext(now = readClocks(this.#context.env)): void {
    if (this.#belief.isOver) return;
    const inMs = this.#plan(RENEW_PART, now.monotonicMs);
    const comesInTime = this.#renewsHere && this.#belief.remainingMs(now) - inMs > this.#timeoutMs();
    if (this.#options.keepAlive || !comesInTime) this.#belief.armExpiry();
    else this.#belief.disarmExpiry();
  }

  #extend(renewed: AppliedOutcome, durationMs: number): void {
    this.#belief.extend(renewed);
    this.#planNext();
    if (this.#listeners === null && !isWatched("renewed")) return;
    const remainingMs = this.#belief.remainingMs();
    if (isWatched("renewed")) publish("renewed", { lease: this.#lease, durationMs, remainingMs });
    for (const listener of this.#listeners ?? []) safely(() => listener(remainingMs));
  }

  #retry(endsAs?: "unreachable"): void {
    if (this.#belief.isOver) return;
    this.#belief.endanger(endsAs);
    // Whoever was called back may have released it.
    if (this.#belief.isOver) return;
    this.#plan(RETRY_PART, this.#context.env.monotonicMs());
    this.#belief.armExpiry();
  }

  #plan(partOfTtl: number, nowMs: number): number {
    const { env, schedule } = this.#context;
    const inMs = jittered(env, this.#options.ttlMs * partOfTtl, JITTER_RATIO);
    if (this.#renewsHere) schedule.plan(this, nowMs, inMs);
    return inMs;
  }

  async #renewInBackground(): Promise<void> {
    const belief = this.#belief;
    // After a suspend this timer may be the first to run: a lease that is over must not be renewed.
    if (!belief.isHeld()) return;
    belief.armExpiry();
    if (this.#isBreaking) return;
    const { probe } = this.#options;
    if (probe !== undefined && !(await saysAlive(probe, this.#context.env, this.#timeoutMs()))) this.#retry();
    else if (belief.isHeld()) await this.renew();
  }

  #timeoutMs(): number {
    return Math.max(MIN_TIMEOUT_MS, this.#options.ttlMs * TIMEOUT_PART);
  }
}

/** False also for a probe that throws, and for one that is silent for so long. */
function saysAlive(probe: () => boolean | Promise<boolean>, env: Env, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const silence = env.timer(timeoutMs, () => resolve(false));
    const answer = (alive: unknown): void => {
      silence.cancel();
      resolve(alive === true);
    };
    Promise.resolve()
      .then(probe)
      .then(answer, () => answer(false));
  });
}
