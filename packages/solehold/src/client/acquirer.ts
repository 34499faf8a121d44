/** How `Leases` gets a grant: one attempt or a wait, what becomes of lost answers, and the handle that is made of it. */
import {
  DEFAULT_PURPOSE,
  type Duration,
  durationMs,
  isStillValid,
  type LeaseKey,
  renewalTimingProblem,
  slotKeys,
  validityFrom,
} from "../core/index.ts";
import { delay, RandomIds, readClocks } from "../env/index.ts";
import type {
  AcquireRequest,
  AppliedOutcome,
  CommandOutcome,
  LeaseExecutor,
  WaitOptions,
} from "../executor/index.ts";
import { StoreError } from "../store/index.ts";
import { isWorthWaiting, mayBeGranted } from "../waiting/index.ts";
import { LeasesClosedError } from "./errors.ts";
import { Lease } from "./lease.ts";
import type { LeaseContext } from "./lease-context.ts";
import type { AcquireOptions, TryAcquireOptions } from "./options.ts";
import { failureOf, timeoutOf } from "./outcome-errors.ts";
import { renewalTiming } from "./renewal.ts";

const MAX_RELEASE_UNCLAIMED_MS = 5_000;
const RETRY_UNAVAILABLE_MS = 200;

const NO_PROBE =
  "probe is asked on the main thread, and renewIn: 'worker' renews while that is busy: leave one of them out";

/** Options that a request has under the same name. */
const SAME = ["term", "note", "metadata", "slots", "priority", "idempotencyKey", "approval"] as const;

export type OnWaiting = NonNullable<WaitOptions["onWaiting"]>;

export interface AcquirerOptions {
  readonly context: LeaseContext;
  /** Who holds what is granted, unless a request names another. */
  readonly holder: string;
  /** Aborts when nothing may be acquired any more: waits end. */
  readonly closing: AbortSignal;
  /** "client": a server remembers no acquire that may have been granted without an answer. */
  readonly tokensBy: "client" | "executor";
}

export class Acquirer {
  readonly #context: LeaseContext;
  readonly #executor: LeaseExecutor;
  readonly #holder: string;
  readonly #closing: AbortSignal;
  readonly #tokensBy: AcquirerOptions["tokensBy"];
  readonly #ids: RandomIds;
  /** The last ttl that was found to leave room for renewals. */
  #goodTtlMs = 0;
  /** Releases under way of grants whose answer was lost. */
  readonly #unclaimed = new Set<Promise<unknown>>();

  constructor({ context, holder, closing, tokensBy }: AcquirerOptions) {
    this.#context = context;
    this.#executor = context.executor;
    this.#holder = holder;
    this.#closing = closing;
    this.#tokensBy = tokensBy;
    this.#ids = new RandomIds(context.env);
  }

  /** Resolves when no grant whose answer was lost is being released any more. */
  async settled(): Promise<void> {
    await Promise.all(this.#unclaimed);
  }

  assertOpen(key: LeaseKey): void {
    if (this.#closing.aborted) throw new LeasesClosedError(key);
    this.#context.worker?.assertAlive();
  }

  /** One attempt if `waitMs` is 0. `onWaiting`: of those who watch what happens in this process. */
  async acquire(
    key: LeaseKey,
    options: AcquireOptions,
    waitMs: number,
    onWaiting: OnWaiting | null,
  ): Promise<Lease> {
    const outcome = await this.#granted(key, options, waitMs, bothOf(options.onWaiting, onWaiting));
    const lease = this.leaseFrom(outcome, options);
    if (options.signal?.aborted !== true) return lease;
    // Granted just when the caller stopped waiting: it is released, so that nobody has to wait for its ttl.
    await lease.release();
    throw options.signal.reason;
  }

  /**
   * The only place that waits: in the queue of the executor. A queue on a server is lost with the connection, and takes only
   * waits of a bounded length: then the acquire queues again, with the same token.
   */
  async #granted(
    key: LeaseKey,
    options: AcquireOptions,
    waitMs: number,
    onWaiting: OnWaiting | undefined,
  ): Promise<AppliedOutcome> {
    this.assertOpen(key);
    const { env } = this.#context;
    const closing = this.#closing;
    const signal = options.signal === undefined ? closing : AbortSignal.any([options.signal, closing]);
    const shown = onWaiting === undefined ? {} : { onWaiting };
    // One token for all attempts: a later one finds the grant of an earlier one whose answer was lost.
    const token = this.#tokensBy === "client" ? this.#ids.next() : undefined;
    const startedMs = env.monotonicMs();
    let perhapsGranted = false;
    try {
      for (;;) {
        const leftMs = Math.max(0, waitMs - (env.monotonicMs() - startedMs));
        const wait = waitMs === 0 ? undefined : { waitMs: leftMs, signal, ...shown };
        const outcome = await this.#attempt(key, options, wait, token);
        if (outcome.kind === "applied") return outcome;
        perhapsGranted ||= mayBeGranted(outcome);
        signal.throwIfAborted();
        if (waitMs === 0 || !isWorthWaiting(outcome)) throw failureOf(key, outcome);
        if (env.monotonicMs() - startedMs >= waitMs) throw timeoutOf(key, outcome, waitMs);
        if (outcome.kind === "unsettled") await delay(env, RETRY_UNAVAILABLE_MS, signal);
      }
    } catch (error) {
      if (perhapsGranted) this.#releaseUnclaimed(key, options, token);
      if (closing.aborted && options.signal?.aborted !== true) throw new LeasesClosedError(key);
      throw error;
    }
  }

  /**
   * A grant whose answer was lost would keep the key until its ttl ends. With an idempotency key the caller may ask for
   * that very grant again, unless it stopped waiting itself.
   */
  #releaseUnclaimed(key: LeaseKey, options: AcquireOptions, token: string | undefined): void {
    const { holder = this.#holder, idempotencyKey, signal } = options;
    if (token === undefined || (idempotencyKey !== undefined && signal?.aborted !== true)) return;
    const timeoutMs = Math.min(MAX_RELEASE_UNCLAIMED_MS, this.#ttlMs(options.ttl));
    // Nobody knows which slot it may have been.
    for (const slot of slotKeys(key, options.slots ?? 1)) {
      const releasing: Promise<unknown> = this.#executor
        .execute({ op: "release", key: slot, holder, token, timeoutMs })
        .catch(() => undefined)
        .finally(() => this.#unclaimed.delete(releasing));
      this.#unclaimed.add(releasing);
    }
  }

  async #attempt(
    key: LeaseKey,
    options: AcquireOptions,
    wait: WaitOptions | undefined,
    token: string | undefined,
  ): Promise<CommandOutcome> {
    const ttlMs = this.#ttlMs(options.ttl);
    if (options.probe !== undefined && this.#context.worker !== null) throw new RangeError(NO_PROBE);
    const request = this.#request(key, options, ttlMs, token);
    const first = await this.#executor.execute(request, wait === undefined ? {} : { wait });
    const outcome = isReplay(first) ? await this.#extended(first, ttlMs) : first;
    return outcome.kind === "applied" && this.#isOver(outcome) ? await this.#returned(outcome) : outcome;
  }

  /** The answer took longer than the ttl. */
  #isOver({ believedFrom, validForMs }: AppliedOutcome): boolean {
    return !isStillValid(
      validityFrom(believedFrom, validForMs, this.#context.drift),
      readClocks(this.#context.env),
    );
  }

  /** Nobody may work under a grant that is over when it arrives: it is released, and counts as a failed attempt. */
  async #returned({ token, decision }: AppliedOutcome): Promise<CommandOutcome> {
    const { key, holder } = decision.lease;
    await this.#executor.execute({ op: "release", key, holder, token, timeoutMs: MAX_RELEASE_UNCLAIMED_MS });
    const message = "the store took longer to answer than the ttl: the lease was over when its grant arrived";
    const cause = new StoreError("timeout", message, { outcome: "not-applied" });
    return { kind: "unsettled", outcome: "not-applied", cause };
  }

  #request(key: LeaseKey, options: AcquireOptions, ttlMs: number, token: string | undefined): AcquireRequest {
    const { purpose = DEFAULT_PURPOSE, holder = this.#holder, holdAtLeast, lockDelay } = options;
    const request: { [field: string]: unknown } = { op: "acquire", key, holder, ttlMs, purpose };
    for (const name of SAME) if (options[name] !== undefined) request[name] = options[name];
    if (holdAtLeast !== undefined) request.holdAtLeastMs = durationMs("holdAtLeast", holdAtLeast, 0);
    if (lockDelay !== undefined) request.lockDelayMs = durationMs("lockDelay", lockDelay, 0);
    if (token !== undefined) request.token = token;
    return request as unknown as AcquireRequest;
  }

  /**
   * An answer that was only repeated wrote nothing, so nothing may be believed from it: the belief of a repeated grant
   * starts with a renewal.
   */
  async #extended({ token, decision }: AppliedOutcome, ttlMs: number): Promise<CommandOutcome> {
    const { key, holder } = decision.lease;
    const renewed = await this.#executor.execute({ op: "renew", key, holder, token, ttlMs });
    return renewed.kind === "applied"
      ? { ...renewed, decision: { ...renewed.decision, replayed: true } }
      : renewed;
  }

  leaseFrom(outcome: AppliedOutcome, options: TryAcquireOptions): Lease {
    const { autoRenew = true, keepAlive = false, probe } = options;
    const ttlMs = this.#ttlMs(options.ttl);
    const lease = new Lease(this.#context, outcome, { ttlMs, autoRenew, keepAlive, probe });
    if (this.#closing.aborted) lease.endByClose();
    return lease;
  }

  #ttlMs(ttl: Duration | undefined): number {
    const ttlMs = ttl === undefined ? this.#executor.policy.defaultTtlMs : durationMs("ttl", ttl, 1);
    if (ttlMs === this.#goodTtlMs) return ttlMs;
    const problem = renewalTimingProblem(renewalTiming(ttlMs), this.#context.drift);
    if (problem !== null) throw new RangeError(problem);
    this.#goodTtlMs = ttlMs;
    return ttlMs;
  }
}

function isReplay(outcome: CommandOutcome): outcome is AppliedOutcome {
  return outcome.kind === "applied" && outcome.decision.replayed;
}

function bothOf(one: OnWaiting | undefined, other: OnWaiting | null): OnWaiting | undefined {
  if (one === undefined || other === null) return one ?? other ?? undefined;
  return (details) => {
    other(details);
    one(details);
  };
}
