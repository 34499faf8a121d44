/**
 * Leases: what a program holds to take part. Acquire, run under a lease, stand for election, look, watch,
 * and, for operators, revoke and break.
 */
import {
  DEFAULT_PURPOSE,
  type DriftBound,
  type Duration,
  durationMs,
  keyNameProblem,
  type LeaseKey,
  type LeaseState,
  type Purpose,
  readTransfer,
  renewalTimingProblem,
  tenantProblem,
} from "../core/index.ts";
import { type Env, RandomIds, realEnv } from "../env/index.ts";
import type {
  AcquireRequest,
  AppliedOutcome,
  CommandOutcome,
  LeaseExecutor,
  LeaseRequest,
  LeaseView,
  PresentedApprovals,
  WaitOptions,
} from "../executor/index.ts";
import { mayBeGranted, withWaitQueue } from "../waiting/index.ts";
import { acquireInTurn } from "./acquire-in-turn.ts";
import { type HeldDetails, LeaseHeldError } from "./errors.ts";
import { Lease } from "./lease.ts";
import type { LeaseContext } from "./lease-context.ts";
import { failureOf } from "./outcome-errors.ts";
import type { LivenessProbe } from "./probe.ts";
import { RenewalSchedule } from "./renewal-schedule.ts";
import { SuspendWatch } from "./suspend-detector.ts";

export interface TryAcquireOptions {
  /** How long the lease lasts without a renewal. Default: the policy's, 30 s. */
  readonly ttl?: Duration;
  readonly purpose?: Purpose;
  /** Who shall hold it; default: this Leases object's holder. */
  readonly holder?: string;
  readonly term?: bigint;
  /** Free text for people who look at the lease. */
  readonly note?: string;
  /** The same key again gets the same grant, over restarts of this process too. */
  readonly idempotencyKey?: string;
  /** Consent of signers to this very request, for a key that needs it. */
  readonly approval?: PresentedApprovals;
  /** Asked before each renewal. */
  readonly probe?: LivenessProbe;
  /** "no" leaves renewing to `lease.renew()`. */
  readonly autoRenew?: "yes" | "no";
  /** "yes" keeps the process from ending while the lease is held. */
  readonly keepAlive?: "yes" | "no";
}

export interface AcquireOptions extends TryAcquireOptions {
  /** How long to wait for a lease that somebody else has; 0 to fail at once. Default 10 s. */
  readonly wait?: Duration | "forever";
  /** Stops waiting. */
  readonly signal?: AbortSignal;
}

export type AcquireAttempt =
  | { readonly ok: true; readonly lease: Lease; [Symbol.asyncDispose](): Promise<void> }
  | ({ readonly ok: false; [Symbol.asyncDispose](): Promise<void> } & HeldDetails);

export interface LeasesOptions {
  readonly executor: LeaseExecutor;
  readonly env?: Env;
  readonly tenant?: string;
  readonly holder?: string;
}

const DEFAULT_WAIT_MS = 10_000;
const MAX_ABANDON_MS = 5_000;
const RENEW_PART = 1 / 3;
const RETRY_PART = 1 / 10;

export class Leases {
  readonly tenant: string;
  readonly holder: string;
  readonly executor: LeaseExecutor;
  readonly #env: Env;
  readonly #ids: RandomIds;
  readonly #context: LeaseContext;
  /** A server remembers no acquire that may have been granted without an answer: its client chooses the token. */
  readonly #choosesTokens: boolean;
  /** The last ttl that was found to leave room for renewals. */
  #goodTtlMs = 0;
  /** Releases under way of what may have been granted unheard. */
  readonly #abandoned = new Set<Promise<unknown>>();

  constructor(options: LeasesOptions) {
    const { env = realEnv, tenant = "default" } = options;
    const problem = tenantProblem(tenant);
    if (problem !== null) throw new RangeError(`tenant ${problem}, got ${JSON.stringify(tenant)}`);
    this.tenant = tenant;
    this.#choosesTokens = options.executor.features.has("queue");
    const executor = this.#choosesTokens ? options.executor : withWaitQueue({ env })(options.executor);
    this.executor = executor;
    this.#env = env;
    this.#ids = new RandomIds(env);
    this.holder = options.holder ?? `holder-${this.#ids.next()}`;
    const drift: DriftBound = executor.drift;
    this.#context = {
      executor,
      env,
      drift,
      schedule: new RenewalSchedule(env),
      suspendWatch: new SuspendWatch(env),
    };
  }

  /** One attempt. Somebody else having it is a value; a store that does not answer is an error. */
  tryAcquire(name: string, options: TryAcquireOptions = {}): Promise<AcquireAttempt> {
    try {
      const key = this.#key(name);
      const token = this.#tokenForServer();
      // One promise, and no function that waits: this is what short leases cost most.
      return this.#attempt(key, options, undefined, token).then((outcome) => {
        if (outcome.kind === "applied") return new Granted(this.#leaseFrom(outcome, options));
        if (mayBeGranted(outcome)) this.#abandon(key, options, token);
        const failure = failureOf(key, outcome);
        if (!(failure instanceof LeaseHeldError)) throw failure;
        const { reason, holder, retryAfterMs } = failure;
        return { ok: false, key, reason, holder, retryAfterMs, [Symbol.asyncDispose]: async () => undefined };
      });
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Waits for it. Throws LeaseHeldError, LeaseTimeoutError, LeaseUnavailableError, or the signal's reason. */
  async acquire(name: string, options: AcquireOptions = {}): Promise<Lease> {
    const key = this.#key(name);
    const waitMs = waitOf(options.wait);
    options.signal?.throwIfAborted();
    if (waitMs === 0) return await this.#acquireAtOnce(key, options);
    const { signal } = options;
    // One token for all attempts: a later one finds the grant of an earlier one whose answer was lost.
    const token = this.#tokenForServer();
    const outcome = await acquireInTurn(this.#env, {
      key,
      waitMs,
      signal,
      attempt: (wait) => this.#attempt(key, options, wait, token),
      abandon: () => this.#abandon(key, options, token),
    });
    const lease = this.#leaseFrom(outcome, options);
    if (signal?.aborted !== true) return lease;
    // Granted just when the caller gave up: the grant goes back, so that nobody waits for a ghost.
    await lease.release();
    throw signal.reason;
  }

  /**
   * Runs `work` under the lease and gives it back when the work has settled, not before. The work's result
   * or error is the result, whatever becomes of the lease: watch `lease.signal`, and fence what you write.
   */
  async run<Result>(
    name: string,
    options: AcquireOptions,
    work: (lease: Lease) => Result | Promise<Result>,
  ): Promise<Result> {
    const lease = await this.acquire(name, { keepAlive: "yes", ...options });
    try {
      return await work(lease);
    } finally {
      await lease.release();
    }
  }

  /** One term of leadership after another, for as long as the loop runs: `for await (const term of ...)`. */
  async *elect(name: string, options: Omit<AcquireOptions, "wait"> = {}): AsyncGenerator<Lease, void, void> {
    while (options.signal?.aborted !== true) {
      const lease = await this.#campaign(name, options);
      if (lease === null) return;
      try {
        yield lease;
      } finally {
        await lease.release();
      }
    }
  }

  /** Takes on a lease that another process gave up by `transfer()`. */
  async adopt(
    secret: string,
    options: Omit<TryAcquireOptions, "ttl" | "holder" | "purpose"> = {},
  ): Promise<Lease> {
    const { key, holder, token, ttlMs } = readTransfer(secret);
    const outcome = await this.executor.execute({ op: "renew", key, holder, token, ttlMs });
    if (outcome.kind === "applied") return this.#leaseFrom(outcome, { ...options, ttl: ttlMs });
    throw failureOf(key, outcome);
  }

  /** What the store knows; null when nothing was ever granted. */
  async inspect(name: string): Promise<LeaseView | null> {
    return await this.executor.read(this.#key(name));
  }

  /** All leases whose names begin with `prefix`, in the order of names, read page by page. */
  async *list(
    filter: { readonly prefix?: string; readonly holder?: string; readonly state?: LeaseState } = {},
  ): AsyncGenerator<LeaseView> {
    const { prefix = "", ...rest } = filter;
    let after: string | null = null;
    do {
      const cursor: { after?: string } = after === null ? {} : { after };
      const page = await this.executor.list({ tenant: this.tenant, prefix, limit: 500, ...rest, ...cursor });
      yield* page.leases;
      after = page.next;
    } while (after !== null);
  }

  /** Ends a lease now: its holder can neither use nor renew it. With `fence`, only that grant. */
  async revoke(name: string, options: { readonly fence?: bigint } = {}): Promise<void> {
    await this.#operate(this.#key(name), options.fence, (target) => ({ op: "revoke", ...target }));
  }

  /** Asks for a lease: no renewal reaches past `period` from now. With `fence`, only that grant. */
  async break(name: string, options: { readonly period: Duration; readonly fence?: bigint }): Promise<void> {
    const periodMs = durationMs("period", options.period, 0);
    await this.#operate(this.#key(name), options.fence, (target) => ({ op: "break", ...target, periodMs }));
  }

  /** Leases that are still held are not released: they end by themselves, and their signals say so. */
  async close(): Promise<void> {
    this.#context.schedule.close();
    this.#context.suspendWatch.close();
    await Promise.all(this.#abandoned);
    await this.executor.close();
  }

  #tokenForServer(): string | undefined {
    return this.#choosesTokens ? this.#ids.next() : undefined;
  }

  /**
   * Nobody heard of what may have been granted: without this it would bar the key until its ttl ends. With an
   * idempotency key the caller may ask for that very grant again, unless it was the one to give up.
   */
  #abandon(key: LeaseKey, options: AcquireOptions, token: string | undefined): void {
    const { holder = this.holder, idempotencyKey, signal } = options;
    if (token === undefined || (idempotencyKey !== undefined && signal?.aborted !== true)) return;
    const timeoutMs = Math.min(MAX_ABANDON_MS, this.#ttlMs(options.ttl));
    const giving: Promise<unknown> = this.executor
      .execute({ op: "release", key, holder, token, timeoutMs })
      .catch(() => undefined)
      .finally(() => this.#abandoned.delete(giving));
    this.#abandoned.add(giving);
  }

  async #acquireAtOnce(key: LeaseKey, options: AcquireOptions): Promise<Lease> {
    const token = this.#tokenForServer();
    const outcome = await this.#attempt(key, options, undefined, token);
    if (outcome.kind === "applied") return this.#leaseFrom(outcome, options);
    if (mayBeGranted(outcome)) this.#abandon(key, options, token);
    throw failureOf(key, outcome);
  }

  async #campaign(name: string, options: Omit<AcquireOptions, "wait">): Promise<Lease | null> {
    try {
      return await this.acquire(name, { keepAlive: "yes", ...options, wait: "forever" });
    } catch (error) {
      if (options.signal?.aborted === true) return null;
      throw error;
    }
  }

  #attempt(
    key: LeaseKey,
    options: TryAcquireOptions,
    wait?: WaitOptions,
    token?: string,
  ): Promise<CommandOutcome> {
    const ttlMs = this.#ttlMs(options.ttl);
    const request = this.#request(key, options, ttlMs, token);
    const answer = this.executor.execute(request, wait === undefined ? {} : { wait });
    // Only who asks by such a key gets an answer again.
    return options.idempotencyKey === undefined
      ? answer
      : answer.then((outcome) => (isReplay(outcome) ? this.#prolonged(outcome, ttlMs) : outcome));
  }

  #request(
    key: LeaseKey,
    options: TryAcquireOptions,
    ttlMs: number,
    token: string | undefined,
  ): AcquireRequest {
    const { purpose = DEFAULT_PURPOSE, holder = this.holder, term, note, idempotencyKey, approval } = options;
    return {
      ...{ op: "acquire", key, holder, ttlMs, purpose },
      ...(term === undefined ? {} : { term }),
      ...(note === undefined ? {} : { note }),
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
      ...(approval === undefined ? {} : { approval }),
      ...(token === undefined ? {} : { token }),
    };
  }

  /**
   * An answer that was only repeated wrote nothing, so it promises nothing to who hears it now: the belief
   * of a repeated grant starts with a renewal.
   */
  async #prolonged({ token, decision }: AppliedOutcome, ttlMs: number): Promise<CommandOutcome> {
    const { key, holder } = decision.lease;
    const renewed = await this.executor.execute({ op: "renew", key, holder, token, ttlMs });
    return renewed.kind === "applied"
      ? { ...renewed, decision: { ...renewed.decision, replayed: true } }
      : renewed;
  }

  #leaseFrom(outcome: AppliedOutcome, options: TryAcquireOptions): Lease {
    const { autoRenew = "yes", keepAlive = "no", probe } = options;
    const ttlMs = this.#ttlMs(options.ttl);
    return new Lease(this.#context, outcome, { ttlMs, autoRenew, keepAlive, probe });
  }

  async #operate(
    key: LeaseKey,
    fence: bigint | undefined,
    request: (target: { key: LeaseKey; generation?: bigint }) => LeaseRequest,
  ): Promise<void> {
    const generation = fence === undefined ? {} : { generation: fence & (2n ** 64n - 1n) };
    const outcome = await this.executor.execute(request({ key, ...generation }));
    if (outcome.kind !== "applied") throw failureOf(key, outcome);
  }

  #ttlMs(ttl: Duration | undefined): number {
    const ttlMs = ttl === undefined ? this.executor.policy.defaultTtlMs : durationMs("ttl", ttl, 1);
    if (ttlMs === this.#goodTtlMs) return ttlMs;
    const timing = { ttlMs, renewEveryMs: ttlMs * RENEW_PART, retryEveryMs: ttlMs * RETRY_PART };
    const problem = renewalTimingProblem(timing, this.#context.drift);
    if (problem !== null) throw new RangeError(problem);
    this.#goodTtlMs = ttlMs;
    return ttlMs;
  }

  #key(name: string): LeaseKey {
    const problem = keyNameProblem(name);
    if (problem !== null) throw new RangeError(`the lease name ${problem}, got ${JSON.stringify(name)}`);
    return { tenant: this.tenant, name };
  }
}

/** What `await using` gives back at the end of its block. */
class Granted {
  readonly ok = true;
  readonly lease: Lease;

  constructor(lease: Lease) {
    this.lease = lease;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.lease[Symbol.asyncDispose]();
  }
}

function isReplay(outcome: CommandOutcome): outcome is AppliedOutcome {
  return outcome.kind === "applied" && outcome.decision.replayed;
}

function waitOf(wait: Duration | "forever" | undefined): number {
  if (wait === "forever") return Number.POSITIVE_INFINITY;
  return wait === undefined ? DEFAULT_WAIT_MS : durationMs("wait", wait, 0);
}
