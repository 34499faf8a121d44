/**
 * The wait queue: a layer that lets acquires wait for their turn, per key (precedence.ts: whose it is). The library uses it
 * over a store, the server over its service. It never decides: every answer to a waiter is the outcome of a real attempt,
 * but for a wait that ended before it could make one (wait-ended-error.ts).
 */
import { askedKey, decide, exactly, keyId, type LeaseKey, recordFence } from "../core/index.ts";
import { type Env, RandomIds, type Timer } from "../env/index.ts";
import {
  type AcquireRequest,
  type CallContext,
  type CommandOutcome,
  commandOf,
  ExecutorLayer,
  invalidRequest,
  type LeaseExecutor,
  type LeaseRequest,
  type QueueLength,
  type Recipient,
  requestProblem,
  type WaitOptions,
  withFeature,
} from "../executor/index.ts";
import { KeyQueue, type KeyQueueOptions } from "./key-queue.ts";
import { OwnGrants } from "./own-grants.ts";
import { EMPTY_QUEUE, type QueueView, queueView } from "./queue-view.ts";
import { releaseOfUnclaimed } from "./release-unclaimed.ts";
import { TicketLooks } from "./ticket-looks.ts";
import { waitEnded } from "./wait-ended-error.ts";
import { type GrantRecipient, Waiter, type WaitRequest } from "./waiter.ts";

export interface WaitQueueOptions {
  readonly env: Env;
  /** How many acquires may wait in all. Default: any number. */
  readonly maxWaiters?: number;
  /** The longest wait that is accepted. Default: any. */
  readonly maxWaitMs?: number;
}

/** Queues that nobody waits in are kept for so long, and at most so many of them. */
const REST_MS = 2_000;
const MAX_RESTING = 64;
const AT_ONCE: WaitOptions = { waitMs: 0 };

/** The layer. Its executor can also be drained and looked at. */
export function withWaitQueue(options: WaitQueueOptions): (next: LeaseExecutor) => WaitQueue {
  return (next) => new WaitQueue(next, options);
}

export class WaitQueue extends ExecutorLayer {
  readonly #options: WaitQueueOptions;
  readonly #ids: RandomIds;
  readonly #queues = new Map<string, KeyQueue>();
  readonly #queueOptions: KeyQueueOptions;
  /** Queues that nobody waits in, the oldest first, and when each of them is closed. */
  readonly #resting = new Map<KeyQueue, Timer>();
  readonly #background = new Set<Promise<unknown>>();
  readonly #lengthListeners = new Set<(length: QueueLength) => void>();
  readonly #grants = new OwnGrants();
  readonly #looks: TicketLooks;
  #size = 0;
  #isDraining = false;

  constructor(next: LeaseExecutor, options: WaitQueueOptions) {
    super(next, withFeature(next, "queue"));
    const { env } = options;
    this.#options = options;
    this.#ids = new RandomIds(env);
    this.#looks = new TicketLooks(env);
    this.#queueOptions = {
      env,
      next,
      isDraining: () => this.#isDraining,
      onSize: (change, { key, waiters }) => {
        this.#size += change;
        for (const listener of this.#lengthListeners) listener({ key, waiting: waiters.length });
      },
      onEmpty: (queue) => this.#rest(queue),
      inBackground: (work) => this.#inBackground(work),
    };
  }

  /** How many acquires wait. */
  get size(): number {
    return this.#size;
  }

  override execute(request: LeaseRequest, context: CallContext = {}): Promise<CommandOutcome> {
    if (request.op === "acquire") return this.#acquire(request, context);
    const queue = this.#queues.size === 0 ? undefined : this.#queues.get(queueId(request.key));
    if (queue === undefined) {
      if (request.op === "release" && this.tickets !== undefined) this.#onRelease(request.key);
      return this.next.execute(request, context);
    }
    if (request.op === "release") return queue.release(request, context);
    return this.next.execute(request, context).then((outcome) => {
      queue.onDecided(outcome);
      return outcome;
    });
  }

  /** Who waits for a key in this process. */
  view(key: LeaseKey): QueueView {
    const queue = this.#queues.get(queueId(key));
    if (queue === undefined) return EMPTY_QUEUE;
    return queueView(queue.waiters, queue.status, this.#options.env.monotonicMs(), this.policy);
  }

  /** The queues that somebody waits in. */
  lengths(): readonly QueueLength[] {
    const all = [...this.#queues.values()].map(({ key, waiters }) => ({ key, waiting: waiters.length }));
    return all.filter(({ waiting }) => waiting > 0);
  }

  /** Calls the listener when a waiter comes or leaves. Returns how to stop. */
  onLength(listener: (length: QueueLength) => void): () => void {
    this.#lengthListeners.add(listener);
    return () => void this.#lengthListeners.delete(listener);
  }

  /** Nobody waits here any more: all are sent elsewhere. Attempts under way still finish. */
  drain(): void {
    this.#isDraining = true;
    for (const queue of this.#queues.values()) queue.drain();
    for (const queue of [...this.#resting.keys()]) this.#close(queue);
  }

  override async close(): Promise<void> {
    this.drain();
    await Promise.all(this.#background);
    await this.next.close();
  }

  #acquire(request: AcquireRequest, context: CallContext): Promise<CommandOutcome> {
    const { wait = AT_ONCE, recipient } = context;
    const asked = wait.waitMs > 0 ? this.#queued(request, context, wait) : this.#atOnce(request, context);
    if (asked.grant === null) return asked.answer;
    return asked.answer.then((outcome) => {
      if (outcome.kind === "applied")
        this.#grants.granted(keyId(outcome.decision.lease.key), recordFence(outcome.decision.lease));
      // The recipient may go between the grant and its answer: without this nobody would ever release it.
      return recipient?.isGone() === true ? this.#unclaimed(asked, outcome) : outcome;
    });
  }

  /** An acquire that does not wait still lets the first waiter ask before it, if the key may be free. */
  #atOnce(request: AcquireRequest, context: CallContext): Asked {
    const queue = this.#queues.size === 0 ? undefined : this.#queues.get(keyId(request.key));
    if (queue === undefined && context.recipient === undefined)
      return { grant: null, answer: this.next.execute(request, context) };
    const grant = this.#grantOf(request, context);
    const execute = (): Promise<CommandOutcome> => this.next.execute(grant.request, grant.context);
    if (queue === undefined) return { grant, answer: execute() };
    const answer = queue.afterFirst().then(execute);
    return {
      grant,
      answer: answer.then((outcome) => {
        queue.onDecided(outcome);
        return outcome;
      }),
    };
  }

  #queued(request: AcquireRequest, context: CallContext, wait: WaitOptions): Asked {
    const {
      env,
      maxWaiters = Number.POSITIVE_INFINITY,
      maxWaitMs = Number.POSITIVE_INFINITY,
    } = this.#options;
    const { waitMs, onWaiting } = wait;
    const ended = (outcome: CommandOutcome): Asked => ({ grant: null, answer: Promise.resolve(outcome) });
    const id = keyId(request.key);
    const known = this.#queues.get(id);
    const grant = this.#grantOf(request, context);
    if (known !== undefined && this.#wouldBeRefused(grant.request)) return this.#atOnce(request, context);
    if (this.#isDraining) return ended(waitEnded("draining"));
    if (waitMs > maxWaitMs) {
      const message = `must be at most ${maxWaitMs}, got ${waitMs}: wait again instead`;
      return ended(invalidRequest({ field: "waitMs", message }));
    }
    if (this.#size >= maxWaiters) return ended(waitEnded("too-many-waiters"));
    if (grant.recipient.isGone()) return ended(waitEnded("cancelled"));
    const queue = known ?? this.#open(request.key);
    this.#wake(queue);
    const answer = new Promise<CommandOutcome>((resolve) => {
      queue.join(new Waiter({ ...grant, env, waitMs, onWaiting, resolve }));
    });
    return { grant, answer };
  }

  #open(key: LeaseKey): KeyQueue {
    const ownFenceOf = (slot: LeaseKey): bigint => this.#grants.fenceOf(keyId(slot));
    const queue = new KeyQueue(key, ownFenceOf, this.#queueOptions);
    this.#queues.set(keyId(key), queue);
    return queue;
  }

  /** Nobody waits here for what is released. If the key is taken again and again, others may wait elsewhere. */
  #onRelease(released: LeaseKey): void {
    const { tickets } = this;
    const nowMs = this.#options.env.monotonicMs();
    if (!this.#grants.released(keyId(released), nowMs) || this.#isDraining) return;
    const key = askedKey(released);
    const look = async (): Promise<void> => {
      if (tickets === undefined || !(await this.#looks.mayHave(tickets, key))) return;
      const waiting = await tickets.list(key);
      if (waiting.length === 0 || this.#isDraining) return;
      const queue = this.#queues.get(keyId(key)) ?? this.#open(key);
      queue.follow();
      if (queue.isIdle && !this.#resting.has(queue)) this.#rest(queue);
    };
    this.#inBackground(look());
  }

  #grantOf(request: AcquireRequest, { wait, recipient, ...context }: CallContext): GrantRecipient {
    const { token = this.#ids.next(), idempotencyKey } = request;
    const repeatable =
      idempotencyKey !== undefined ? "by key" : request.token !== undefined ? "by token" : "no";
    const reader = recipient ?? (wait?.signal === undefined ? PRESENT : recipientOf(wait.signal));
    return { request: { ...request, token }, context, recipient: reader, repeatable };
  }

  /** A request that can never be granted must not wait to hear it. Core is asked, not copied. */
  #wouldBeRefused(request: WaitRequest): boolean {
    const context = { approval: null };
    if (requestProblem(request, request.token, context) !== null) return true;
    const { policy } = this;
    const command = commandOf(request, { token: request.token, nonce: "nonce", policy, context });
    const now = exactly(Math.max(0, Math.floor(this.#options.env.wallMs())));
    return decide(command, { record: null, floor: 0n }, now, policy).decision.kind === "refused";
  }

  async #unclaimed({ grant }: Asked, outcome: CommandOutcome): Promise<CommandOutcome> {
    const releases = grant === null ? [] : releaseOfUnclaimed(grant, outcome);
    if (grant === null || releases.length === 0) return outcome;
    for (const release of releases) await this.execute(release, grant.context);
    return waitEnded("cancelled");
  }

  /** Nobody waits in it. With a watch it is kept for a moment: it knows the key when somebody comes back. */
  #rest(queue: KeyQueue): void {
    if (!queue.isFollowing || this.#isDraining) {
      this.#close(queue);
      return;
    }
    this.#resting.set(
      queue,
      this.#options.env.timer(REST_MS, () => this.#close(queue)),
    );
    const [oldest] = this.#resting.keys();
    if (this.#resting.size > MAX_RESTING && oldest !== undefined) this.#close(oldest);
  }

  #wake(queue: KeyQueue): void {
    this.#resting.get(queue)?.cancel();
    this.#resting.delete(queue);
  }

  #close(queue: KeyQueue): void {
    this.#wake(queue);
    queue.close();
    this.#queues.delete(keyId(queue.key));
  }

  #inBackground(work: Promise<unknown>): void {
    const tracked: Promise<unknown> = work
      .catch(() => undefined)
      .finally(() => this.#background.delete(tracked));
    this.#background.add(tracked);
  }
}

/** All slots of a name have one queue. */
function queueId(key: LeaseKey): string {
  return keyId(askedKey(key));
}

/** An acquire on its way; `grant` is null where nothing can be granted that its caller would not hear of. */
interface Asked {
  readonly grant: GrantRecipient | null;
  readonly answer: Promise<CommandOutcome>;
}

const PRESENT: Recipient = {
  isGone: () => false,
  isCancelled: () => false,
  onGone: () => () => undefined,
};

/** A caller of the library goes by aborting its signal. */
function recipientOf(signal: AbortSignal): Recipient {
  return {
    isGone: () => signal.aborted,
    isCancelled: () => signal.aborted,
    onGone: (listener) => {
      signal.addEventListener("abort", listener, { once: true });
      return () => signal.removeEventListener("abort", listener);
    },
  };
}
