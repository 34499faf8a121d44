/**
 * Operations of one event-loop turn travel as one store call; a lone one is sent at once. While as many
 * calls as the store wants are in flight, new operations gather for the next.
 *
 * A call that the store never answers counts as unknown after `callTimeoutMs`, so that a frozen store
 * cannot hold the queue. Nothing here retries: a blind retry would turn an unknown outcome into a wrong one.
 */
import type { LeaseKey } from "../core/index.ts";
import { type Env, readClocks, type Timer } from "../env/index.ts";
import {
  type ConditionalWrite,
  type LeaseStore,
  type StoredRecord,
  StoreError,
  type StoreReply,
  type WriteResult,
} from "../store/index.ts";
import { invariant } from "../support/invariant.ts";
import { cacheKey } from "./cache-key.ts";
import type { StoreClock, TimeSample } from "./store-time.ts";

/** A call that was answered, with the own monotonic instants between which the store did so. */
export interface AnsweredCall {
  /** Calls are numbered as they are sent: what was learned before this number was sent is older. */
  readonly callNumber: number;
  readonly sentMs: number;
  readonly receivedMs: number;
}

/** An operation on its way. */
interface StoreJob<Value> {
  /** Operations of one call have distinct ids. */
  readonly id: string;
  readonly timeoutMs: number;
  /** Exactly one of these two is called, once; neither may throw. */
  answered(value: Value, call: AnsweredCall): void;
  failed(error: unknown): void;
}

/** It is what the store is given, and must not change: a store may still look at it after the time limit. */
export interface WriteJob extends StoreJob<WriteResult>, ConditionalWrite {}

interface ReadJob extends StoreJob<ReadRecord> {
  readonly key: LeaseKey;
}

/** What a read shows of one key. */
export interface ReadRecord {
  readonly stored: StoredRecord;
  /** The store's revision, where it has one; otherwise 0. */
  readonly revision: bigint;
}

interface BatchReply<Value> extends StoreReply {
  readonly results: readonly Value[];
}

interface BatcherOptions<Job, Value> {
  readonly env: Env;
  readonly maxBatch: number;
  readonly minBatch: number;
  readonly maxConcurrentCalls: number;
  readonly callTimeoutMs: number;
  readonly call: (jobs: readonly Job[]) => Promise<BatchReply<Value>>;
  readonly nextCallNumber: () => number;
  readonly onTime: (sample: TimeSample) => void;
  /** The store says that it lost data. */
  readonly onDataLoss: () => void;
}

/** A call that was not answered yet. */
interface PendingCall {
  readonly deadlineMs: number;
  expire(): void;
}

/** One queue of like operations. */
class Batcher<Job extends StoreJob<Value>, Value> {
  readonly #options: BatcherOptions<Job, Value>;
  #queue: Job[] = [];
  readonly #pending: PendingCall[] = [];
  #flushPlanned = false;
  /** One for all calls, and it stays when they are answered: a timer for each would cost more than all else here. */
  #timer: Timer | null = null;
  #timerDueMs = Number.POSITIVE_INFINITY;

  constructor(options: BatcherOptions<Job, Value>) {
    this.#options = options;
  }

  submit(job: Job): void {
    this.#queue.push(job);
    if (!this.#flushPlanned) this.#planFlush();
  }

  close(): void {
    this.#timer?.cancel();
  }

  #planFlush(): void {
    if (this.#flushPlanned || this.#queue.length === 0 || !this.#mayCall()) return;
    this.#flushPlanned = true;
    this.#options.env.defer(() => {
      this.#flushPlanned = false;
      const share = this.#share();
      while (this.#queue.length > 0 && this.#mayCall()) this.#send(this.#take(share));
    });
  }

  #mayCall(): boolean {
    return this.#pending.length < this.#options.maxConcurrentCalls;
  }

  /** How many operations the next call takes: all that fit, or the store's share of them. */
  #share(): number {
    const { maxBatch, minBatch, maxConcurrentCalls } = this.#options;
    const evenly = Math.ceil(this.#queue.length / (maxConcurrentCalls - this.#pending.length));
    return Math.min(maxBatch, Math.max(minBatch, evenly));
  }

  /** As many as fit, in order; one whose id is already in the batch waits for the next. */
  #take(share: number): readonly Job[] {
    const queue = this.#queue;
    if (queue.length === 1) {
      this.#queue = [];
      return queue;
    }
    const ids = new Set<string>();
    const taken: Job[] = [];
    const repeated: Job[] = [];
    let seen = 0;
    for (const job of queue) {
      if (taken.length === share) break;
      seen += 1;
      const before = ids.size;
      ids.add(job.id);
      if (ids.size > before) taken.push(job);
      else repeated.push(job);
    }
    this.#queue = seen === queue.length ? repeated : [...repeated, ...queue.slice(seen)];
    return taken;
  }

  #send(batch: readonly Job[]): void {
    const { env, call, maxBatch, onTime, onDataLoss } = this.#options;
    invariant(batch.length > 0 && batch.length <= maxBatch, `a call has 1 to ${maxBatch} operations`);
    invariant(this.#mayCall(), "a call is sent only while the store wants one more");
    // The shortest timeout sets the limit: a lease about to end must not wait behind a frozen call.
    let { callTimeoutMs } = this.#options;
    for (const { timeoutMs } of batch) if (timeoutMs < callTimeoutMs) callTimeoutMs = timeoutMs;
    const callNumber = this.#options.nextCallNumber();
    const sent = readClocks(env);
    const settle = (deliver: () => void): void => {
      const index = this.#pending.indexOf(pending);
      // An answer that comes after the time limit counts for nothing.
      if (index < 0) return;
      this.#pending.splice(index, 1);
      deliver();
      this.#planFlush();
    };
    const fail = (error: unknown): void =>
      settle(() => {
        if (error instanceof StoreError && error.kind === "data-loss") onDataLoss();
        for (const job of batch) job.failed(error);
      });
    // A store that breaks its contract may answer anything: every job must be settled all the same.
    const receive = (reply: Partial<BatchReply<Value>> | undefined): void =>
      settle(() => {
        const received = readClocks(env);
        const storeTimeMs = reply?.storeTimeMs ?? null;
        const serverChangedAtMs = reply?.serverChangedAtMs ?? null;
        if (storeTimeMs !== null) onTime({ sent, received, storeTimeMs, serverChangedAtMs });
        const answered = { callNumber, sentMs: sent.monotonicMs, receivedMs: received.monotonicMs };
        batch.forEach((job, index) => {
          const value = reply?.results?.[index];
          if (value === undefined) job.failed(missingAnswer());
          else job.answered(value, answered);
        });
      });
    const pending: PendingCall = {
      deadlineMs: sent.monotonicMs + callTimeoutMs,
      expire: () => fail(noAnswer(callTimeoutMs)),
    };
    this.#pending.push(pending);
    invoke(call, batch).then(receive, fail);
    this.#wakeAt(pending.deadlineMs);
  }

  /** This need not keep the process from ending: what a store waits for does. */
  #wakeAt(dueMs: number): void {
    if (dueMs >= this.#timerDueMs) return;
    const { env } = this.#options;
    this.#timer?.cancel();
    this.#timerDueMs = dueMs;
    this.#timer = env.timer(Math.max(0, dueMs - env.monotonicMs()), () => {
      this.#timerDueMs = Number.POSITIVE_INFINITY;
      const nowMs = env.monotonicMs();
      for (const { deadlineMs, expire } of [...this.#pending]) {
        if (deadlineMs <= nowMs) expire();
        else this.#wakeAt(deadlineMs);
      }
    });
  }
}

/** A store that throws instead of rejecting is treated alike. */
function invoke<Job, Value>(
  call: (jobs: readonly Job[]) => Promise<BatchReply<Value>>,
  batch: readonly Job[],
): Promise<BatchReply<Value>> {
  try {
    return call(batch);
  } catch (error) {
    return Promise.reject(error);
  }
}

function noAnswer(afterMs: number): StoreError {
  return new StoreError("timeout", `the store gave no answer within ${afterMs} ms`, { outcome: "unknown" });
}

function missingAnswer(): StoreError {
  return new StoreError("internal", "the store answered fewer operations than it was sent", {
    outcome: "unknown",
  });
}

/** An answer, with the call that brought it. */
export interface Answered<Value> extends AnsweredCall {
  readonly value: Value;
}

export class CallBatcher {
  readonly #reads: Batcher<ReadJob, ReadRecord>;
  readonly #writes: Batcher<WriteJob, WriteResult>;
  #readCount = 0;
  #callNumber = 0;

  constructor(options: {
    readonly store: LeaseStore;
    readonly env: Env;
    readonly clock: StoreClock;
    readonly callTimeoutMs: number;
    readonly onDataLoss: () => void;
  }) {
    const { store, env, clock, callTimeoutMs, onDataLoss } = options;
    const { maxBatch, maxConcurrentCalls, minBatch = maxBatch } = store.capabilities;
    const onTime = (sample: TimeSample): void => clock.learn(sample);
    const nextCallNumber = (): number => {
      this.#callNumber += 1;
      return this.#callNumber;
    };
    const common = { env, minBatch, maxConcurrentCalls, callTimeoutMs, nextCallNumber, onTime, onDataLoss };
    const batching = { ...common, maxBatch };
    this.#reads = new Batcher({ ...batching, call: (jobs) => readDistinct(store, jobs) });
    this.#writes = new Batcher({ ...batching, call: (writes) => store.apply(writes) });
  }

  /** The number of the newest call that was sent. */
  get lastCallNumber(): number {
    return this.#callNumber;
  }

  read(key: LeaseKey, timeoutMs = Number.POSITIVE_INFINITY): Promise<Answered<ReadRecord>> {
    this.#readCount += 1;
    const id = String(this.#readCount);
    return new Promise((resolve, failed) =>
      this.#reads.submit({ id, key, timeoutMs, answered: answering(resolve), failed }),
    );
  }

  write(write: ConditionalWrite): Promise<Answered<WriteResult>> {
    const id = cacheKey(write.key);
    const timeoutMs = Number.POSITIVE_INFINITY;
    return new Promise((resolve, failed) =>
      this.#writes.submit({ ...write, id, timeoutMs, answered: answering(resolve), failed }),
    );
  }

  /** Like `write`, for callers that implement WriteJob themselves. `job.id` must be the cache key of its key. */
  submit(job: WriteJob): void {
    this.#writes.submit(job);
  }

  /** What is still under way is settled by the store, whose end this is too. */
  close(): void {
    this.#reads.close();
    this.#writes.close();
  }
}

function answering<Value>(
  resolve: (answer: Answered<Value>) => void,
): (value: Value, call: AnsweredCall) => void {
  return (value, call) => resolve({ value, ...call });
}

/** Several requests may ask for the same key: it is read once. */
async function readDistinct(store: LeaseStore, jobs: readonly ReadJob[]): Promise<BatchReply<ReadRecord>> {
  const wanted = new Map(jobs.map(({ key }) => [cacheKey(key), key]));
  const { records, revision = 0n, ...reply } = await store.read([...wanted.values()]);
  const byId = new Map([...wanted.keys()].map((id, index) => [id, records[index]]));
  const results = jobs.map(({ key }): ReadRecord => {
    const stored = byId.get(cacheKey(key));
    if (stored === undefined) throw missingAnswer();
    return { stored, revision };
  });
  return { ...reply, results };
}
