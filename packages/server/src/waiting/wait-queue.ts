/**
 * Waiting for a lease: first come, first served per key, within this process. Only the first in line asks;
 * it asks when the lease may be free (a decision of this process, news from the store, the end of the
 * current lease) and, in case news got lost, now and then.
 *
 * A waiter that disconnects or runs out of time leaves at once and never holds up those behind it; what was
 * granted to it in that very moment is given back before the next one asks (see give-back.ts).
 *
 * Not promised: an order between waiters of different server processes.
 */
import {
  type CommandOutcome,
  decide,
  type Env,
  exactly,
  keyId,
  type LeaseKey,
  type LeaseRecord,
  type LeaseView,
  type ReleaseRequest,
} from "solehold";
import {
  type CallContext,
  commandOf,
  type LeaseService,
  type RecordEvent,
  requestProblem,
} from "solehold/internal";
import { clientGone, draining, ProblemError, refusal, tooMany } from "../protocol/problem.ts";
import { recordIn } from "../watch/watch-hub.ts";
import { Line, type Waiter, type WaitOptions, type WaitRequest } from "./line.ts";
import { type QueueView, queueView } from "./queue-view.ts";
import { releaseUnclaimed } from "./release-unclaimed.ts";

export interface WaitQueueOptions {
  readonly env: Env;
  readonly service: LeaseService;
  readonly waiterLimit: number;
  readonly waitLimitMs: number;
}

/** A store that cannot be reached is worth another try within the wait. */
const RETRY_UNAVAILABLE_MS = 200;
const LOOK_WITH_NEWS_MS = 5_000;
const FIRST_LOOK_WITHOUT_NEWS_MS = 50;
const SLOWEST_LOOK_MS = 1_000;
/** Several servers may see a lease end at the same instant; only one can have it. */
const SPREAD_AT_EXPIRY_MS = 5;
/** However little of the wait is left, an attempt gets this much time. */
const SHORTEST_ATTEMPT_MS = 1_000;

export class WaitQueue {
  readonly #options: WaitQueueOptions;
  readonly #lines = new Map<string, Line>();
  #size = 0;
  #draining = false;

  constructor(options: WaitQueueOptions) {
    this.#options = options;
  }

  /** How many requests wait. */
  get size(): number {
    return this.#size;
  }

  /** Grants, or denies when the wait is over. Rejects with ProblemError when it may not wait. */
  acquire(request: WaitRequest, context: CallContext, options: WaitOptions): Promise<CommandOutcome> {
    const { waitMs } = options;
    const { service } = this.#options;
    if (waitMs === 0 && this.#lines.size === 0) return service.execute(request, context);
    if (waitMs === 0 || this.#wouldBeRefused(request)) return this.#withoutWaiting(request, context);
    return new Promise((resolve, reject) => {
      this.#assertMayWait(waitMs);
      this.#join(this.#lineOf(request.key), { request, context, options, resolve, reject });
    });
  }

  /** Gives a lease back; whoever is next in line gets it with the same write. */
  release(request: ReleaseRequest, context: CallContext): Promise<CommandOutcome> {
    const line = this.#lines.size === 0 ? undefined : this.#lines.get(keyId(request.key));
    const waiter = line?.attempt === null ? line.next() : undefined;
    if (line === undefined || waiter === undefined || this.#draining)
      return this.#options.service.execute(request, context);
    return this.#handOver(line, waiter, request, context);
  }

  /** A decision of this process, or an event of the store, about a key that somebody may be waiting for. */
  notice(key: LeaseKey, record: LeaseRecord | null): void {
    if (this.#lines.size === 0) return;
    const line = this.#lines.get(keyId(key));
    if (line?.learn(record) === "worth a look") this.#advance(line);
  }

  /** A lease ran out, and nobody ended or prolonged it. */
  onExpired(record: LeaseRecord): void {
    const line = this.#lines.get(keyId(record.key));
    if (line?.isCurrent(record)) this.#advance(line);
  }

  onStoreEvent(event: RecordEvent): void {
    if (event.kind === "changed") this.notice(event.key, recordIn(event.stored));
    else for (const line of this.#lines.values()) this.#advance(line);
  }

  view(key: LeaseKey): QueueView {
    const { env, service } = this.#options;
    const { executor } = service;
    const clocks = { storeNowMs: executor.storeNowMs(), monotonicMs: env.monotonicMs() };
    return queueView(this.#lines.get(keyId(key)), clocks, executor.policy);
  }

  /** Nobody waits here any more: all are told to ask elsewhere. Attempts under way still finish. */
  drain(): void {
    this.#draining = true;
    for (const line of this.#lines.values()) {
      for (const waiter of [...line.waiters]) {
        if (waiter !== line.trying)
          this.#leave(line, waiter, () => waiter.reject(new ProblemError(draining())));
      }
    }
  }

  #assertMayWait(waitMs: number): void {
    const { waiterLimit, waitLimitMs } = this.#options;
    if (this.#draining) throw new ProblemError(draining());
    if (waitMs > waitLimitMs) {
      throw new ProblemError(
        refusal("waitMs", `must be at most ${waitLimitMs}, got ${waitMs}: wait again instead`),
      );
    }
    if (this.#size >= waiterLimit) {
      throw new ProblemError(tooMany(`${waiterLimit} requests already wait on this server`, 1_000));
    }
  }

  /** A request that can never be granted must not wait for its turn to hear it. Core is asked, not copied. */
  #wouldBeRefused(request: WaitRequest): boolean {
    const { executor } = this.#options.service;
    const context = { approval: null };
    if (requestProblem(request, request.token, context) !== null) return true;
    const parts = { token: request.token, nonce: "nonce", policy: executor.policy, context };
    const command = commandOf(request, parts);
    const free = { record: null, floor: 0n };
    return decide(command, free, exactly(executor.storeNowMs()), executor.policy).decision.kind === "refused";
  }

  /** Somebody who does not wait still lets the first in line ask first, if the lease may be free. */
  async #withoutWaiting(request: WaitRequest, context: CallContext): Promise<CommandOutcome> {
    const line = this.#lines.get(keyId(request.key));
    if (line !== undefined) {
      if (line.isDue(this.#options.service.executor.storeNowMs())) this.#advance(line);
      await line.attempt;
    }
    return await this.#options.service.execute(request, context);
  }

  #lineOf(key: LeaseKey): Line {
    const id = keyId(key);
    const line = this.#lines.get(id) ?? new Line(key);
    this.#lines.set(id, line);
    return line;
  }

  #join(line: Line, caller: Pick<Waiter, "request" | "context" | "options" | "resolve" | "reject">): void {
    const { env } = this.#options;
    const { waitMs, connection } = caller.options;
    const waiter: Waiter = {
      ...caller,
      sinceMs: env.monotonicMs(),
      untilMs: env.monotonicMs() + waitMs,
      present: true,
      answered: false,
      timedOut: false,
      last: null,
      stop: () => {
        timer.cancel();
        stopListening();
      },
    };
    const timer = env.timer(waitMs, () => this.#onTimeout(line, waiter), { keepAlive: true });
    const onGone = (): void => this.#leave(line, waiter, () => waiter.reject(new ProblemError(clientGone())));
    const stopListening = connection.onGone(onGone);
    line.waiters.push(waiter);
    this.#size += 1;
    if (connection.isGone()) onGone();
    else if (line.next() === waiter) this.#advance(line);
  }

  /** Takes a waiter out of the line, then answers it. */
  #leave(line: Line, waiter: Waiter, answer: () => void): void {
    if (!waiter.present) return;
    waiter.present = false;
    waiter.stop();
    line.waiters.splice(line.waiters.indexOf(waiter), 1);
    this.#size -= 1;
    answer();
    // Its attempt may have been carried out although nobody confirmed it.
    if (line.trying !== waiter && !waiter.answered)
      this.#releaseUnclaimed(line, waiter).catch(() => undefined);
    this.#closeIfEmpty(line);
  }

  #onTimeout(line: Line, waiter: Waiter): void {
    // The attempt that is under way may succeed: its answer is the better one, and it is near.
    if (line.trying === waiter) waiter.timedOut = true;
    else this.#leaveAtTheEnd(line, waiter);
  }

  /** The wait is over: what a last attempt is answered is the answer, and is in the audit like any other. */
  #leaveAtTheEnd(line: Line, waiter: Waiter): void {
    waiter.answered = true;
    this.#leave(line, waiter, () => {
      const request = { ...waiter.request, timeoutMs: SHORTEST_ATTEMPT_MS };
      this.#withoutWaiting(request, waiter.context).then(waiter.resolve, waiter.reject);
    });
  }

  /** Lets the first in line ask, or looks for it; once more afterwards if something happened meanwhile. */
  #advance(line: Line, how: "ask" | "look" = "ask"): void {
    if (line.attempt !== null) {
      line.again = true;
      return;
    }
    line.timer?.cancel();
    line.timer = null;
    line.again = false;
    this.#track(line, how === "ask" ? this.#ask(line) : this.#look(line));
  }

  /** Remembers what is under way for the line, and goes on when it is done. `step` never rejects. */
  #track(line: Line, step: Promise<void>): void {
    line.attempt = step.then(() => {
      line.attempt = null;
      if (line.waiters.length === 0) this.#closeIfEmpty(line);
      else if (line.again || line.timer === null) this.#advance(line);
    });
  }

  /** The attempt of the first in line travels with the release that it waited for. */
  #handOver(
    line: Line,
    waiter: Waiter,
    release: ReleaseRequest,
    context: CallContext,
  ): Promise<CommandOutcome> {
    const { env, service } = this.#options;
    line.timer?.cancel();
    line.timer = null;
    line.again = false;
    line.trying = waiter;
    const { request, context: waiterContext } = waiter;
    const both = service.execute({ ...release, next: { request, context: waiterContext } }, context);
    const concluded = both.then(
      (released) => this.#concludeHandOver(line, waiter, released),
      (error: unknown) => {
        line.trying = null;
        this.#leave(line, waiter, () => waiter.reject(error));
      },
    );
    this.#track(line, concluded);
    // Who waited is told first: it has work to do.
    return both.then((released) => new Promise((resolve) => env.defer(() => resolve(released))));
  }

  async #concludeHandOver(line: Line, waiter: Waiter, released: CommandOutcome): Promise<void> {
    line.trying = null;
    const granted = released.kind === "refused" ? undefined : released.next;
    if (granted !== undefined) {
      this.#conclude(line, waiter, granted);
      if (!waiter.present && !waiter.answered) await this.#releaseUnclaimed(line, waiter);
    } else if (released.kind === "applied") {
      line.learn(released.decision.lease);
      line.again = true;
    } else {
      // Nothing was released. Whose time ran out meanwhile was not told yet.
      if (waiter.timedOut) this.#leaveAtTheEnd(line, waiter);
      else if (this.#draining) this.#leave(line, waiter, () => waiter.reject(new ProblemError(draining())));
      this.#lookLater(line);
    }
  }

  /** Reading costs no entry in the audit; only a lease that may be free is asked for. */
  async #look(line: Line): Promise<void> {
    const view = await this.#options.service.read(line.key).catch(() => null);
    if (view === null || !view.live) return await this.#ask(line);
    line.see(view);
    if (this.#isStale(line, view)) return await this.#ask(line);
    this.#lookLater(line);
  }

  /**
   * A lease that was not renewed for a whole ttl may be dead whatever the clock says (the store has none, or
   * it was set back): only an attempt can find out, by having observed it.
   */
  #isStale(line: Line, { ttlMs }: LeaseView): boolean {
    return line.looks > 0 && this.#options.env.monotonicMs() - line.sameSinceMs > ttlMs;
  }

  async #ask(line: Line): Promise<void> {
    const waiter = line.next();
    if (waiter === undefined) return;
    line.trying = waiter;
    try {
      const outcome = await this.#options.service.execute(this.#timed(waiter), waiter.context);
      line.trying = null;
      this.#conclude(line, waiter, outcome);
      if (!waiter.present && !waiter.answered) await this.#releaseUnclaimed(line, waiter);
    } catch (error) {
      line.trying = null;
      this.#leave(line, waiter, () => waiter.reject(error));
    }
  }

  #timed({ request, untilMs }: Waiter): WaitRequest & { readonly timeoutMs: number } {
    const leftMs = untilMs - this.#options.env.monotonicMs();
    return { ...request, timeoutMs: Math.ceil(Math.max(SHORTEST_ATTEMPT_MS, Math.min(leftMs, 10_000))) };
  }

  #conclude(line: Line, waiter: Waiter, outcome: CommandOutcome): void {
    line.remember(outcome);
    const held =
      outcome.kind === "refused" &&
      outcome.decision.kind === "denied" &&
      outcome.decision.heldUntilMs !== null;
    const worthWaiting = outcome.kind === "unsettled" || held;
    // A request that was refused for its own sake says nothing about those behind it: they ask at once.
    if (worthWaiting || outcome.kind === "applied") this.#lookLater(line, outcome.kind);
    // The successor of a handoff may be further back in the line.
    if (held && waiter.present && line.next() !== waiter) line.again = true;
    waiter.last = outcome;
    if (!waiter.present) return;
    waiter.answered = !worthWaiting || waiter.timedOut;
    if (waiter.answered) this.#leave(line, waiter, () => waiter.resolve(outcome));
    else if (this.#draining) this.#leave(line, waiter, () => waiter.reject(new ProblemError(draining())));
  }

  /** Granted, or perhaps granted, to somebody who has gone: the next one asks after it was given back. */
  async #releaseUnclaimed(line: Line, waiter: Waiter): Promise<void> {
    const released = await releaseUnclaimed(this.#options.service, waiter, waiter.last);
    if (released === null) return;
    if (released.kind === "applied") line.learn(released.decision.lease);
    line.again = true;
  }

  #lookLater(line: Line, after: CommandOutcome["kind"] = "refused"): void {
    const { env } = this.#options;
    if (line.looks === 0) line.sameSinceMs = env.monotonicMs();
    line.looks += 1;
    const inMs = after === "unsettled" ? RETRY_UNAVAILABLE_MS : this.#lookAgainMs(line);
    line.timer?.cancel();
    line.timer = env.timer(inMs, () => this.#advance(line, "look"));
  }

  /** When the obstacle ends; if its end has passed, or news may be missing, after a while that grows. */
  #lookAgainMs(line: Line): number {
    const { env, service } = this.#options;
    const { store } = service.executor;
    const patience = FIRST_LOOK_WITHOUT_NEWS_MS * 2 ** Math.min(line.looks, 10);
    const slowest = store.capabilities.watch ? LOOK_WITH_NEWS_MS : Math.min(SLOWEST_LOOK_MS, patience);
    const leftMs = (line.obstacle?.heldUntilMs ?? Number.POSITIVE_INFINITY) - service.executor.storeNowMs();
    if (leftMs <= 0) return Math.min(SLOWEST_LOOK_MS, patience) * (0.5 + env.random() / 2);
    return Math.min(slowest * (0.7 + env.random() * 0.6), leftMs + env.random() * SPREAD_AT_EXPIRY_MS);
  }

  #closeIfEmpty(line: Line): void {
    if (line.waiters.length > 0 || line.attempt !== null) return;
    line.timer?.cancel();
    if (this.#lines.get(keyId(line.key)) === line) this.#lines.delete(keyId(line.key));
  }
}
