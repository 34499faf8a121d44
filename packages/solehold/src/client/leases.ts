/**
 * Leases: what a program holds to take part. Acquire, run under a lease, stand for election, read, watch, and, for
 * operators, revoke and break.
 */
import {
  type Duration,
  durationMs,
  keyNameProblem,
  type LeaseKey,
  type LeaseState,
  readTransfer,
  tenantProblem,
} from "../core/index.ts";
import { type Env, randomId, realEnv } from "../env/index.ts";
import type { LeaseExecutor, LeaseRequest, LeaseView } from "../executor/index.ts";
import { pagesOf } from "../store/index.ts";
import { builtin } from "../support/builtin.ts";
import { withWaitQueue } from "../waiting/index.ts";
import { acquireAll } from "./acquire-all.ts";
import { Acquirer } from "./acquirer.ts";
import { observed } from "./diagnostics.ts";
import { type HeldDetails, LeaseHeldError, LeasesClosedError } from "./errors.ts";
import type { Lease } from "./lease.ts";
import { type LeaseContext, leaseContext } from "./lease-context.ts";
import type { LeaseChange } from "./lease-diff.ts";
import type { LeaseSet } from "./lease-set.ts";
import { watchLeases } from "./lease-watcher.ts";
import {
  ACQUIRE_ALL_OPTIONS,
  ACQUIRE_OPTIONS,
  type AcquireAllOptions,
  type AcquireOptions,
  BREAK_OPTIONS,
  checkOptions,
  LIST_OPTIONS,
  ONCE_PER_OPTIONS,
  type OncePerOptions,
  type OncePerResult,
  REVOKE_OPTIONS,
  TRY_ACQUIRE_OPTIONS,
  type TryAcquireOptions,
  type WatchOptions,
} from "./options.ts";
import { failureOf } from "./outcome-errors.ts";
import type { RenewalWorker } from "./renewal-worker.ts";

export type AcquireAttempt =
  | { readonly ok: true; readonly lease: Lease; [Symbol.asyncDispose](): Promise<void> }
  | ({ readonly ok: false; [Symbol.asyncDispose](): Promise<void> } & HeldDetails);

export interface LeasesOptions {
  readonly executor: LeaseExecutor;
  readonly env?: Env;
  readonly tenant?: string;
  readonly holder?: string;
  /** Renews in a thread of its own: see `renewIn` of `connect`. */
  readonly worker?: RenewalWorker;
}

const DEFAULT_WAIT_MS = 10_000;
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
  readonly #acquirer: Acquirer;
  readonly #context: LeaseContext;
  /** Aborts when this object is closed: waits and elections end. */
  readonly #closing = new AbortController();

  constructor(options: LeasesOptions) {
    const { env = realEnv, tenant = "default" } = options;
    const problem = tenantProblem(tenant);
    if (problem !== null) throw new RangeError(`tenant ${problem}, got ${JSON.stringify(tenant)}`);
    this.tenant = tenant;
    const isServer = options.executor.features.has("queue");
    const executor = isServer ? options.executor : withWaitQueue({ env })(options.executor);
    this.executor = executor;
    this.#env = env;
    this.holder = options.holder ?? `holder-${randomId(env)}`;
    // Every acquire that waits listens to it.
    builtin("node:events")?.setMaxListeners(0, this.#closing.signal);
    this.#context = leaseContext(executor, env, options.worker);
    this.#acquirer = new Acquirer({
      ...{ context: this.#context, holder: this.holder, closing: this.#closing.signal },
      tokensBy: isServer ? "client" : "executor",
    });
  }

  /** One attempt. Somebody else having it is a value; a store that does not answer is an error. */
  async tryAcquire(name: string, options: TryAcquireOptions = {}): Promise<AcquireAttempt> {
    checkOptions("tryAcquire", options, TRY_ACQUIRE_OPTIONS);
    const key = this.#key(name);
    try {
      const lease = await this.#acquire(key, options, 0);
      return { ok: true, lease, [Symbol.asyncDispose]: () => lease[Symbol.asyncDispose]() };
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
    return await this.#acquire(key, options, waitMs);
  }

  /**
   * All of the names, or none: what was granted is released again before this throws. Waits for them in the order of their
   * names, whatever the order here, so that callers who want the same names never wait for each other. Throws as `acquire`.
   */
  async acquireAll(names: readonly string[], options: AcquireAllOptions = {}): Promise<LeaseSet> {
    checkOptions("acquireAll", options, ACQUIRE_ALL_OPTIONS);
    return await acquireAll({
      ...{ env: this.#env, names, options, waitMs: waitOf(options.wait) },
      tryAcquire: (name, rest) => this.tryAcquire(name, rest),
      acquire: (name, rest) => this.acquire(name, rest),
    });
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
    options: Omit<TryAcquireOptions, "ttl" | "holder" | "purpose" | "slots"> = {},
  ): Promise<Lease> {
    checkOptions("adopt", options, TRY_ACQUIRE_OPTIONS);
    const { key, holder, token, ttlMs } = readTransfer(secret);
    this.#acquirer.assertOpen(key);
    return await observed(this.#env, { key, holder, waitMs: null }, async () => {
      const outcome = await this.executor.execute({ op: "renew", key, holder, token, ttlMs });
      if (outcome.kind === "applied") return this.#acquirer.leaseFrom(outcome, { ...options, ttl: ttlMs });
      throw failureOf(key, outcome);
    });
  }

  /** What the store knows; null when nothing was ever granted. */
  async inspect(name: string): Promise<LeaseView | null> {
    return await this.executor.read(this.#key(name));
  }

  /** All leases whose names begin with `prefix`, in the order of names, read page by page. */
  async *list(
    filter: { readonly prefix?: string; readonly holder?: string; readonly state?: LeaseState } = {},
  ): AsyncGenerator<LeaseView> {
    checkOptions("list", filter, LIST_OPTIONS);
    const { prefix = "", ...rest } = filter;
    const query = { tenant: this.tenant, prefix, limit: 500, ...rest };
    for await (const page of pagesOf((each) => this.executor.list(each), query)) yield* page.leases;
  }

  /**
   * Changes of the leases whose names begin with `prefix`, beginning with those that are held: granted, renewed, released,
   * expired, ... until the signal aborts or this object is closed. Where the store cannot announce changes it is polled.
   */
  async *watch(prefix = "", options: WatchOptions = {}): AsyncGenerator<LeaseChange, void, void> {
    if (typeof prefix !== "string")
      throw new TypeError(`watch(prefix, options): prefix must be a string, got ${typeof prefix}`);
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
    checkOptions("observe", options, WATCH_OPTIONS);
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
    checkOptions("revoke", options, REVOKE_OPTIONS);
    await this.#operate(this.#key(name), options.fence, (target) => ({ op: "revoke", ...target }));
  }

  /** Asks for a lease: no renewal reaches past `period` from now. With `fence`, only that grant. */
  async break(name: string, options: { readonly period: Duration; readonly fence?: bigint }): Promise<void> {
    checkOptions("break", options, BREAK_OPTIONS);
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
    await this.#acquirer.settled();
  }

  /**
   * Ends waits, elections and handles at once, and closes the connection to the store. Leases that are still held end by
   * their ttl, unless `release` is true.
   */
  async close(options: { readonly release?: boolean } = {}): Promise<void> {
    checkOptions("close", options, CLOSE_OPTIONS);
    if (options.release === true) await this.drain();
    this.#closing.abort();
    for (const lease of this.#context.held) lease.endByClose();
    this.#context.schedule.close();
    this.#context.suspendWatch.close();
    await this.#acquirer.settled();
    await this.#context.worker?.close();
    await this.executor.close();
  }

  #acquire(key: LeaseKey, options: AcquireOptions, waitMs: number): Promise<Lease> {
    const { holder = this.holder } = options;
    return observed(this.#env, { key, holder, waitMs }, (onWaiting) =>
      this.#acquirer.acquire(key, options, waitMs, onWaiting),
    );
  }

  async #campaign(name: string, options: Omit<AcquireOptions, "wait">): Promise<Lease | null> {
    try {
      return await this.acquire(name, { keepAlive: true, ...options, wait: "forever" });
    } catch (error) {
      if (options.signal?.aborted === true || error instanceof LeasesClosedError) return null;
      throw error;
    }
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

  #key(name: string): LeaseKey {
    const problem = keyNameProblem(name);
    if (problem !== null) throw new RangeError(`the lease name ${problem}, got ${JSON.stringify(name)}`);
    return { tenant: this.tenant, name };
  }
}

function waitOf(wait: Duration | "forever" | undefined): number {
  if (wait === undefined) return DEFAULT_WAIT_MS;
  return wait === "forever" ? Number.POSITIVE_INFINITY : durationMs("wait", wait, 0);
}
