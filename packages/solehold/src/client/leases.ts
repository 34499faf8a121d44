/**
 * Leases: what a program holds to take part. Acquire, run under a lease, stand for election, read, watch, and, for
 * operators, revoke and break.
 */
import {
  DEFAULT_PURPOSE,
  type Duration,
  durationMs,
  isStillValid,
  keyNameProblem,
  type LeaseKey,
  type LeaseState,
  readTransfer,
  renewalTimingProblem,
  tenantProblem,
  validityFrom,
} from "../core/index.ts";
import { type Env, RandomIds, readClocks, realEnv } from "../env/index.ts";
import type {
  AcquireRequest,
  AppliedOutcome,
  CommandOutcome,
  LeaseExecutor,
  LeaseRequest,
  LeaseView,
  WaitOptions,
} from "../executor/index.ts";
import { StoreError } from "../store/index.ts";
import { mayBeGranted, withWaitQueue } from "../waiting/index.ts";
import { acquireInTurn } from "./acquire-in-turn.ts";
import { type HeldDetails, LeaseHeldError, LeasesClosedError } from "./errors.ts";
import { Lease } from "./lease.ts";
import type { LeaseContext } from "./lease-context.ts";
import type { LeaseChange } from "./lease-diff.ts";
import { watchLeases } from "./lease-watcher.ts";
import {
  ACQUIRE_OPTIONS,
  type AcquireOptions,
  type CloseOptions,
  checkOptions,
  ONCE_PER_OPTIONS,
  type OncePerOptions,
  type OncePerResult,
  TRY_ACQUIRE_OPTIONS,
  type TryAcquireOptions,
  type WatchOptions,
} from "./options.ts";
import { failureOf } from "./outcome-errors.ts";
import { RenewalSchedule } from "./renewal-schedule.ts";
import { RevocationWatch } from "./revocation-watch.ts";
import { SuspendWatch } from "./suspend-detector.ts";

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
const MAX_RELEASE_UNCLAIMED_MS = 5_000;
const RENEW_PART = 1 / 3;
const RETRY_PART = 1 / 10;
/** Of the period of `runOncePer`. */
const CLOSED_PART = 9 / 10;
const CLOSE_OPTIONS: ReadonlySet<string> = new Set(["release"]);
const WATCH_OPTIONS: ReadonlySet<string> = new Set(["signal", "every"]);

type Work<Result> = (lease: Lease) => Result | Promise<Result>;

export class Leases {
  readonly tenant: string;
  readonly holder: string;
  readonly executor: LeaseExecutor;
  readonly #env: Env;
  readonly #ids: RandomIds;
  readonly #context: LeaseContext;
  /** Aborts when this object is closed: waits and elections end. */
  readonly #closing = new AbortController();
  /** A server remembers no acquire that may have been granted without an answer: its client chooses the token. */
  readonly #choosesTokens: boolean;
  /** The last ttl that was found to leave room for renewals. */
  #goodTtlMs = 0;
  /** Releases under way of grants whose answer was lost. */
  readonly #unclaimed = new Set<Promise<unknown>>();

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
    this.#context = {
      executor,
      env,
      drift: executor.drift,
      schedule: new RenewalSchedule(env),
      suspendWatch: new SuspendWatch(env),
      held: new Set(),
      revocations: new RevocationWatch(executor),
    };
  }

  /** One attempt. Somebody else having it is a value; a store that does not answer is an error. */
  async tryAcquire(name: string, options: TryAcquireOptions = {}): Promise<AcquireAttempt> {
    checkOptions("tryAcquire", options, TRY_ACQUIRE_OPTIONS);
    const key = this.#key(name);
    try {
      return new Granted(await this.#acquireAtOnce(key, options));
    } catch (error) {
      if (!(error instanceof LeaseHeldError)) throw error;
      const { reason, holder, retryAfterMs } = error;
      return { ok: false, key, reason, holder, retryAfterMs, [Symbol.asyncDispose]: async () => undefined };
    }
  }

  /**
   * Waits for it. Throws LeaseHeldError, LeaseTimeoutError, LeaseUnavailableError, LeasesClosedError, or the signal's
   * reason.
   */
  async acquire(name: string, options: AcquireOptions = {}): Promise<Lease> {
    checkOptions("acquire", options, ACQUIRE_OPTIONS);
    const key = this.#key(name);
    const waitMs = waitOf(options.wait);
    options.signal?.throwIfAborted();
    if (waitMs === 0) return await this.#acquireAtOnce(key, options);
    const lease = this.#leaseFrom(await this.#waitFor(key, options, waitMs), options);
    if (options.signal?.aborted !== true) return lease;
    // Granted just when the caller stopped waiting: it is released, so that nobody has to wait for its ttl.
    await lease.release();
    throw options.signal.reason;
  }

  /**
   * Runs `work` under the lease and releases it when the work has settled, not before. The work's result or error is the
   * result, whatever becomes of the lease: watch `lease.signal`, and give the fence to what you write to.
   */
  async run<Result>(name: string, work: Work<Result>): Promise<Result>;
  async run<Result>(name: string, options: AcquireOptions, work: Work<Result>): Promise<Result>;
  async run<Result>(
    name: string,
    ...given: readonly [Work<Result>] | readonly [AcquireOptions, Work<Result>]
  ): Promise<Result> {
    const [options, work] = given.length === 1 ? [{}, given[0]] : given;
    if (typeof work !== "function") throw new TypeError("run(name, work) or run(name, options, work)");
    const lease = await this.acquire(name, { keepAlive: true, ...options });
    try {
      return await work(lease);
    } finally {
      await lease.release();
    }
  }

  /**
   * Runs the work if it has not run in this period, here or in any other process; otherwise it says why not, at once. The
   * period begins with the grant and counts whether the work succeeds, throws or is killed.
   *
   * The key stays closed for nine tenths of the period: the next regular start may come a little early.
   */
  async runOncePer<Result>(
    name: string,
    options: OncePerOptions,
    work: Work<Result>,
  ): Promise<OncePerResult<Result>> {
    checkOptions("runOncePer", options, ONCE_PER_OPTIONS);
    const { period, ...rest } = options;
    const holdAtLeast = Math.floor(durationMs("period", period, 1) * CLOSED_PART);
    const attempt = await this.tryAcquire(name, { keepAlive: true, ...rest, holdAtLeast });
    if (!attempt.ok) {
      const { reason, holder, retryAfterMs } = attempt;
      return { ran: false, reason, holder, retryAfterMs };
    }
    try {
      return { ran: true, result: await work(attempt.lease) };
    } finally {
      await attempt.lease.release();
    }
  }

  /**
   * One term of leadership after another, for as long as the loop runs: `for await (const term of ...)`. Ends when the
   * signal aborts or this object is closed.
   */
  async *elect(name: string, options: Omit<AcquireOptions, "wait"> = {}): AsyncGenerator<Lease, void, void> {
    while (options.signal?.aborted !== true && !this.#closing.signal.aborted) {
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
    checkOptions("adopt", options, TRY_ACQUIRE_OPTIONS);
    const { key, holder, token, ttlMs } = readTransfer(secret);
    this.#assertOpen(key);
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

  /**
   * Changes of the leases whose names begin with `prefix`, beginning with those that are held: granted, renewed, released,
   * expired, ... until the signal aborts or this object is closed. Where the store cannot announce changes it is polled.
   */
  async *watch(prefix = "", options: WatchOptions = {}): AsyncGenerator<LeaseChange, void, void> {
    checkOptions("watch", options, WATCH_OPTIONS);
    const { signal, every = "1s" } = options;
    const closing = this.#closing.signal;
    const ending = signal === undefined ? closing : AbortSignal.any([signal, closing]);
    const everyMs = durationMs("every", every, 10);
    yield* watchLeases(
      { executor: this.executor, env: this.#env, tenant: this.tenant, prefix, everyMs },
      ending,
    );
  }

  /** The leader of an election, or the holder of any lease, and then each change of it; null while there is none. */
  async *observe(name: string, options: WatchOptions = {}): AsyncGenerator<LeaseView | null, void, void> {
    const key = this.#key(name);
    let last = await this.executor.read(key);
    if (last?.live !== true) last = null;
    yield last;
    for await (const { view } of this.watch(name, options)) {
      if (view.key.name !== name) continue;
      const next = view.live ? view : null;
      if (next?.fence === last?.fence) continue;
      last = next;
      yield next;
    }
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

  /**
   * For SIGTERM: ends waits and elections, and releases every lease that is held, so that the next process need not wait
   * for a ttl. Stop the work first: after this the handles say that they are over. `close()` is still to be called.
   */
  async drain(): Promise<void> {
    this.#closing.abort();
    await Promise.all([...this.#context.held].map((lease) => lease.release()));
    await Promise.all(this.#unclaimed);
  }

  /**
   * Ends waits, elections and handles at once, and closes the connection to the store. Leases that are still held end by
   * their ttl, unless `release` is true.
   */
  async close(options: CloseOptions = {}): Promise<void> {
    checkOptions("close", options, CLOSE_OPTIONS);
    if (options.release === true) await this.drain();
    this.#closing.abort();
    for (const lease of this.#context.held) lease.endByClose();
    this.#context.schedule.close();
    this.#context.suspendWatch.close();
    await Promise.all(this.#unclaimed);
    await this.executor.close();
  }

  async #acquireAtOnce(key: LeaseKey, options: TryAcquireOptions): Promise<Lease> {
    this.#assertOpen(key);
    const token = this.#tokenForServer();
    const outcome = await this.#attempt(key, options, undefined, token);
    if (outcome.kind === "applied") return this.#leaseFrom(outcome, options);
    if (mayBeGranted(outcome)) this.#releaseUnclaimed(key, options, token);
    throw failureOf(key, outcome);
  }

  /** The only place that waits. */
  async #waitFor(key: LeaseKey, options: AcquireOptions, waitMs: number): Promise<AppliedOutcome> {
    this.#assertOpen(key);
    const { onWaiting } = options;
    const closing = this.#closing.signal;
    const signal = options.signal === undefined ? closing : AbortSignal.any([options.signal, closing]);
    // One token for all attempts: a later one finds the grant of an earlier one whose answer was lost.
    const token = this.#tokenForServer();
    try {
      return await acquireInTurn(this.#env, {
        ...{ key, waitMs, signal },
        attempt: (wait) =>
          this.#attempt(key, options, onWaiting === undefined ? wait : { ...wait, onWaiting }, token),
        abandon: () => this.#releaseUnclaimed(key, options, token),
      });
    } catch (error) {
      if (closing.aborted && options.signal?.aborted !== true) throw new LeasesClosedError(key);
      throw error;
    }
  }

  #tokenForServer(): string | undefined {
    return this.#choosesTokens ? this.#ids.next() : undefined;
  }

  /**
   * A grant whose answer was lost would keep the key until its ttl ends. With an idempotency key the caller may ask for
   * that very grant again, unless it stopped waiting itself.
   */
  #releaseUnclaimed(key: LeaseKey, options: AcquireOptions, token: string | undefined): void {
    const { holder = this.holder, idempotencyKey, signal } = options;
    if (token === undefined || (idempotencyKey !== undefined && signal?.aborted !== true)) return;
    const timeoutMs = Math.min(MAX_RELEASE_UNCLAIMED_MS, this.#ttlMs(options.ttl));
    const releasing: Promise<unknown> = this.executor
      .execute({ op: "release", key, holder, token, timeoutMs })
      .catch(() => undefined)
      .finally(() => this.#unclaimed.delete(releasing));
    this.#unclaimed.add(releasing);
  }

  async #campaign(name: string, options: Omit<AcquireOptions, "wait">): Promise<Lease | null> {
    try {
      return await this.acquire(name, { keepAlive: true, ...options, wait: "forever" });
    } catch (error) {
      if (options.signal?.aborted === true || error instanceof LeasesClosedError) return null;
      throw error;
    }
  }

  async #attempt(
    key: LeaseKey,
    options: TryAcquireOptions,
    wait?: WaitOptions,
    token?: string,
  ): Promise<CommandOutcome> {
    const ttlMs = this.#ttlMs(options.ttl);
    const request = this.#request(key, options, ttlMs, token);
    const first = await this.executor.execute(request, wait === undefined ? {} : { wait });
    const outcome = isReplay(first) ? await this.#extended(first, ttlMs) : first;
    return outcome.kind === "applied" && this.#isOver(outcome) ? await this.#returned(outcome) : outcome;
  }

  /** The answer took longer than the ttl. */
  #isOver({ believedFrom, validForMs }: AppliedOutcome): boolean {
    return !isStillValid(validityFrom(believedFrom, validForMs, this.#context.drift), readClocks(this.#env));
  }

  /** Nobody may work under a grant that is over when it arrives: it is released, and counts as a failed attempt. */
  async #returned({ token, decision }: AppliedOutcome): Promise<CommandOutcome> {
    const { key, holder } = decision.lease;
    await this.executor.execute({ op: "release", key, holder, token, timeoutMs: MAX_RELEASE_UNCLAIMED_MS });
    const message = "the store took longer to answer than the ttl: the lease was over when its grant arrived";
    const cause = new StoreError("timeout", message, { outcome: "not-applied" });
    return { kind: "unsettled", outcome: "not-applied", cause };
  }

  #request(
    key: LeaseKey,
    options: TryAcquireOptions,
    ttlMs: number,
    token: string | undefined,
  ): AcquireRequest {
    const { purpose = DEFAULT_PURPOSE, holder = this.holder, term, note, idempotencyKey, approval } = options;
    const { holdAtLeast, lockDelay } = options;
    return {
      ...{ op: "acquire", key, holder, ttlMs, purpose },
      ...(term === undefined ? {} : { term }),
      ...(note === undefined ? {} : { note }),
      ...(holdAtLeast === undefined ? {} : { holdAtLeastMs: durationMs("holdAtLeast", holdAtLeast, 0) }),
      ...(lockDelay === undefined ? {} : { lockDelayMs: durationMs("lockDelay", lockDelay, 0) }),
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
      ...(approval === undefined ? {} : { approval }),
      ...(token === undefined ? {} : { token }),
    };
  }

  /**
   * An answer that was only repeated wrote nothing, so nothing may be believed from it: the belief of a repeated grant
   * starts with a renewal.
   */
  async #extended({ token, decision }: AppliedOutcome, ttlMs: number): Promise<CommandOutcome> {
    const { key, holder } = decision.lease;
    const renewed = await this.executor.execute({ op: "renew", key, holder, token, ttlMs });
    return renewed.kind === "applied"
      ? { ...renewed, decision: { ...renewed.decision, replayed: true } }
      : renewed;
  }

  #leaseFrom(outcome: AppliedOutcome, options: TryAcquireOptions): Lease {
    const { autoRenew = true, keepAlive = false, probe } = options;
    const ttlMs = this.#ttlMs(options.ttl);
    const lease = new Lease(this.#context, outcome, { ttlMs, autoRenew, keepAlive, probe });
    if (this.#closing.signal.aborted) lease.endByClose();
    return lease;
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

  #assertOpen(key: LeaseKey): void {
    if (this.#closing.signal.aborted) throw new LeasesClosedError(key);
  }
}

/** What `await using` releases at the end of its block. */
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
  if (wait === undefined) return DEFAULT_WAIT_MS;
  return wait === "forever" ? Number.POSITIVE_INFINITY : durationMs("wait", wait, 0);
}
