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
  type Purpose,
  parseFence,
  renewalTimingProblem,
  tenantProblem,
} from "../core/index.ts";
import { delay, type Env, randomId, realEnv } from "../env/index.ts";
import type {
  AppliedOutcome,
  CommandOutcome,
  LeaseManager,
  LeaseView,
  WaitInLine,
} from "../manager/index.ts";
import {
  type HeldDetails,
  LeaseDeniedError,
  LeaseHeldError,
  LeaseRefusedError,
  LeaseTimeoutError,
  LeaseUnavailableError,
} from "./errors.ts";
import { Lease, type LeaseContext, type LivenessProbe } from "./lease.ts";
import { RenewalSchedule } from "./renewal-schedule.ts";
import { SuspendWatch } from "./suspend-watch.ts";
import { type Place, WaitingRooms } from "./waiting-room.ts";

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
  readonly manager: LeaseManager;
  readonly env?: Env;
  readonly tenant?: string;
  readonly holder?: string;
}

const DEFAULT_WAIT_MS = 10_000;
const RETRY_UNAVAILABLE_MS = 200;
const RENEW_PART = 1 / 3;
const RETRY_PART = 1 / 10;

export class Leases {
  readonly tenant: string;
  readonly holder: string;
  readonly manager: LeaseManager;
  readonly #env: Env;
  readonly #context: LeaseContext;
  readonly #rooms: WaitingRooms;

  constructor(options: LeasesOptions) {
    const { manager, env = realEnv, tenant = "default" } = options;
    const problem = tenantProblem(tenant);
    if (problem !== null) throw new RangeError(`tenant ${problem}, got ${JSON.stringify(tenant)}`);
    this.tenant = tenant;
    this.manager = manager;
    this.holder = options.holder ?? `holder-${randomId(env)}`;
    this.#env = env;
    const drift: DriftBound = manager.drift;
    this.#context = {
      manager,
      env,
      drift,
      schedule: new RenewalSchedule(env),
      suspendWatch: new SuspendWatch(env),
    };
    this.#rooms = new WaitingRooms({ env, manager });
  }

  /** One attempt. Somebody else having it is a value; a store that does not answer is an error. */
  async tryAcquire(name: string, options: TryAcquireOptions = {}): Promise<AcquireAttempt> {
    const outcome = await this.#attempt(this.#key(name), options);
    if (outcome.kind === "applied") {
      const lease = this.#leaseFrom(outcome, options);
      return { ok: true, lease, [Symbol.asyncDispose]: () => lease[Symbol.asyncDispose]() };
    }
    return {
      ok: false,
      ...this.#heldOrThrow(this.#key(name), outcome),
      [Symbol.asyncDispose]: async () => undefined,
    };
  }

  /** Waits for it. Throws LeaseHeldError, LeaseTimeoutError, LeaseUnavailableError, or the signal's reason. */
  async acquire(name: string, options: AcquireOptions = {}): Promise<Lease> {
    const key = this.#key(name);
    const waitMs = waitOf(options.wait);
    options.signal?.throwIfAborted();
    if (waitMs === 0) return await this.#acquireAtOnce(key, options);
    if (this.manager.line === "server") return await this.#acquireInServersLine(key, waitMs, options);
    const place = this.#rooms.enter(key);
    try {
      return await this.#acquireInTurn(key, place, waitMs, options);
    } finally {
      this.#rooms.leave(key, place);
    }
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
    const outcome = await this.manager.renew({ key, holder, token, ttlMs });
    if (outcome.kind === "applied") return this.#leaseFrom(outcome, { ...options, ttl: ttlMs });
    throw this.#failure(key, outcome);
  }

  /** What the store knows; null when nothing was ever granted. */
  async inspect(name: string): Promise<LeaseView | null> {
    return await this.manager.get(this.#key(name));
  }

  /** All leases whose names begin with `prefix`, page by page. */
  async *list(
    filter: { readonly prefix?: string; readonly holder?: string } = {},
  ): AsyncGenerator<LeaseView> {
    const { prefix = "", ...rest } = filter;
    let after: string | null = null;
    do {
      const cursor: { after?: string } = after === null ? {} : { after };
      const page = await this.manager.list({ tenant: this.tenant, prefix, limit: 500, ...rest, ...cursor });
      yield* page.leases;
      after = page.next;
    } while (after !== null);
  }

  /** Ends a lease now: its holder can neither use nor renew it. With `fence`, only that grant. */
  async revoke(name: string, options: { readonly fence?: bigint } = {}): Promise<void> {
    await this.#operate(this.#key(name), options.fence, (target) => this.manager.revoke(target));
  }

  /** Asks for a lease: no renewal reaches past `period` from now. With `fence`, only that grant. */
  async break(name: string, options: { readonly period: Duration; readonly fence?: bigint }): Promise<void> {
    const periodMs = durationMs("period", options.period, 0);
    await this.#operate(this.#key(name), options.fence, (target) =>
      this.manager.break({ ...target, periodMs }),
    );
  }

  async close(): Promise<void> {
    await this.manager.close();
  }

  async #acquireAtOnce(key: LeaseKey, options: AcquireOptions): Promise<Lease> {
    const outcome = await this.#attempt(key, options);
    if (outcome.kind === "applied") return this.#leaseFrom(outcome, options);
    throw this.#failure(key, outcome);
  }

  /** The server keeps the line for all its clients; a connection that breaks has to queue again. */
  async #acquireInServersLine(key: LeaseKey, waitMs: number, options: AcquireOptions): Promise<Lease> {
    const { signal } = options;
    const startedMs = this.#env.monotonicMs();
    for (;;) {
      const leftMs = Math.max(0, waitMs - (this.#env.monotonicMs() - startedMs));
      const wait: WaitInLine = { waitMs: leftMs, ...(signal === undefined ? {} : { signal }) };
      const outcome = await this.#attempt(key, options, wait);
      if (outcome.kind === "applied") return await this.#unlessAborted(outcome, options);
      signal?.throwIfAborted();
      this.#throwUnlessWorthWaiting(key, outcome);
      if (this.#env.monotonicMs() - startedMs >= waitMs) throw this.#gaveUp(key, outcome, waitMs);
      if (outcome.kind === "unsettled") await delay(this.#env, RETRY_UNAVAILABLE_MS, signal);
    }
  }

  async #acquireInTurn(key: LeaseKey, place: Place, waitMs: number, options: AcquireOptions): Promise<Lease> {
    const { signal } = options;
    const startedMs = this.#env.monotonicMs();
    const leftMs = (): number => waitMs - (this.#env.monotonicMs() - startedMs);
    let last: CommandOutcome | null = null;
    for (let looks = 0; ; looks += 1) {
      if (this.#rooms.isHead(key, place)) {
        last = await this.#attempt(key, options);
        if (last.kind === "applied") return await this.#unlessAborted(last, options);
        this.#throwUnlessWorthWaiting(key, last);
      }
      signal?.throwIfAborted();
      if (leftMs() <= 0) throw this.#gaveUp(key, last, waitMs);
      const pauseMs = await this.#pauseMs(key, place, last, looks);
      await place.wait(this.#env, Math.min(pauseMs, Math.max(0, leftMs())), signal);
      signal?.throwIfAborted();
    }
  }

  /** Granted just when the caller gave up: the grant goes back, so that nobody waits for a ghost. */
  async #unlessAborted(outcome: AppliedOutcome, options: AcquireOptions): Promise<Lease> {
    const lease = this.#leaseFrom(outcome, options);
    if (options.signal?.aborted !== true) return lease;
    await lease.release();
    throw options.signal.reason;
  }

  async #pauseMs(key: LeaseKey, place: Place, last: CommandOutcome | null, looks: number): Promise<number> {
    // Only the head looks; the others are woken when it leaves.
    if (!this.#rooms.isHead(key, place)) return Number.MAX_SAFE_INTEGER;
    if (last?.kind === "unsettled") return RETRY_UNAVAILABLE_MS;
    const news = (await this.#rooms.hasNews(key)) ? "yes" : "no";
    return this.#rooms.lookAgainMs(last === null ? null : heldForMs(last), looks, news);
  }

  /** A store that cannot be reached is worth another try within the wait; a wrong request is not. */
  #throwUnlessWorthWaiting(key: LeaseKey, outcome: Exclude<CommandOutcome, AppliedOutcome>): void {
    if (outcome.kind === "unsettled") return;
    if (outcome.decision.kind === "refused" || !WORTH_WAITING.has(outcome.decision.reason)) {
      throw this.#failure(key, outcome);
    }
  }

  #gaveUp(key: LeaseKey, last: CommandOutcome | null, waitedMs: number): Error {
    if (last === null) {
      const details: HeldDetails = { key, reason: "LEASE_HELD_BY_OTHER", holder: null, retryAfterMs: null };
      return new LeaseTimeoutError(details, waitedMs);
    }
    if (last.kind !== "refused" || last.decision.kind !== "denied") return this.#failure(key, last);
    return new LeaseTimeoutError(heldDetails(key, last), waitedMs);
  }

  async #campaign(name: string, options: Omit<AcquireOptions, "wait">): Promise<Lease | null> {
    try {
      return await this.acquire(name, { keepAlive: "yes", ...options, wait: "forever" });
    } catch (error) {
      if (options.signal?.aborted === true) return null;
      throw error;
    }
  }

  async #attempt(key: LeaseKey, options: TryAcquireOptions, wait?: WaitInLine): Promise<CommandOutcome> {
    const { purpose = DEFAULT_PURPOSE, holder = this.holder, term, note, idempotencyKey } = options;
    const optional = {
      ...(term === undefined ? {} : { term }),
      ...(note === undefined ? {} : { note }),
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    };
    return await this.manager.acquire(
      { key, holder, ttlMs: this.#ttlMs(options.ttl), purpose, ...optional },
      wait,
    );
  }

  #leaseFrom(outcome: AppliedOutcome, options: TryAcquireOptions): Lease {
    const { autoRenew = "yes", keepAlive = "no", probe } = options;
    const ttlMs = this.#ttlMs(options.ttl);
    return new Lease(this.#context, outcome, {
      ttlMs,
      autoRenew,
      keepAlive,
      ...(probe === undefined ? {} : { probe }),
    });
  }

  #heldOrThrow(key: LeaseKey, outcome: Exclude<CommandOutcome, AppliedOutcome>): HeldDetails {
    const failure = this.#failure(key, outcome);
    if (!(failure instanceof LeaseHeldError)) throw failure;
    const { reason, holder, retryAfterMs } = failure;
    return { key, reason, holder, retryAfterMs };
  }

  #failure(key: LeaseKey, outcome: CommandOutcome): Error {
    if (outcome.kind === "unsettled") return new LeaseUnavailableError(key, outcome.outcome, outcome.cause);
    if (outcome.kind === "applied") return new Error("an applied command is not a failure");
    const { decision } = outcome;
    if (decision.kind === "refused") {
      return new LeaseRefusedError(key, decision.reason, decision.field, decision.message);
    }
    if (WORTH_WAITING.has(decision.reason)) return new LeaseHeldError(heldDetails(key, outcome));
    return new LeaseDeniedError(key, decision.reason);
  }

  async #operate(
    key: LeaseKey,
    fence: bigint | undefined,
    command: (target: { key: LeaseKey; generation?: bigint }) => Promise<CommandOutcome>,
  ): Promise<void> {
    const generation = fence === undefined ? {} : { generation: fence & (2n ** 64n - 1n) };
    const outcome = await command({ key, ...generation });
    if (outcome.kind !== "applied") throw this.#failure(key, outcome);
  }

  #ttlMs(ttl: Duration | undefined): number {
    const ttlMs = ttl === undefined ? this.manager.policy.defaultTtlMs : durationMs("ttl", ttl, 1);
    const timing = { ttlMs, renewEveryMs: ttlMs * RENEW_PART, retryEveryMs: ttlMs * RETRY_PART };
    const problem = renewalTimingProblem(timing, this.#context.drift);
    if (problem !== null) throw new RangeError(problem);
    return ttlMs;
  }

  #key(name: string): LeaseKey {
    const problem = keyNameProblem(name);
    if (problem !== null) throw new RangeError(`the lease name ${problem}, got ${JSON.stringify(name)}`);
    return { tenant: this.tenant, name };
  }
}

/** Denials that time can change. */
const WORTH_WAITING: ReadonlySet<string> = new Set([
  "LEASE_HELD_BY_OTHER",
  "LEASE_HELD_BY_SELF",
  "LEASE_HANDOFF_PENDING",
  "LEASE_REVOKED",
]);

function heldForMs(outcome: CommandOutcome): number | null {
  if (outcome.kind !== "refused" || outcome.decision.kind !== "denied") return null;
  const { heldUntilMs } = outcome.decision;
  return heldUntilMs === null ? null : Math.max(0, heldUntilMs - outcome.storeTimeMs);
}

function heldDetails(key: LeaseKey, outcome: Extract<CommandOutcome, { kind: "refused" }>): HeldDetails {
  const { decision } = outcome;
  const holder = decision.kind === "denied" ? decision.heldBy : null;
  return { key, reason: decision.reason, holder, retryAfterMs: heldForMs(outcome) };
}

function waitOf(wait: Duration | "forever" | undefined): number {
  if (wait === "forever") return Number.POSITIVE_INFINITY;
  return wait === undefined ? DEFAULT_WAIT_MS : durationMs("wait", wait, 0);
}

/** A lease on its way from one process to another. */
export interface Transfer {
  readonly key: LeaseKey;
  readonly holder: string;
  readonly token: string;
  readonly ttlMs: number;
}

/** What a transfer secret says. Throws RangeError when `lease.transfer()` did not make it. */
export function readTransfer(secret: string): Transfer {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(secret, "base64url").toString("utf8"));
    const { v, tenant, name, holder, token, ttlMs, fence } = parsed as Record<string, unknown>;
    const complete =
      v === 1 &&
      [tenant, name, holder, token].every((field) => typeof field === "string" && field.length > 0);
    if (complete && typeof ttlMs === "number" && typeof fence === "string" && parseFence(fence) !== null) {
      const key = { tenant: tenant as string, name: name as string };
      return { key, holder: holder as string, token: token as string, ttlMs };
    }
  } catch {
    // Falls through to the one message that helps.
  }
  throw new RangeError(
    "the secret to adopt is not one that lease.transfer() made: pass that string unchanged",
  );
}
