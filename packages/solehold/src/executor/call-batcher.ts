/**
 * Operations of one event-loop turn travel as one store call; a lone one is sent at once. While as many
 * calls as the store wants are in flight, new operations gather for the next.
 *
 * A call that the store never answers counts as unknown after `callTimeoutMs`, so that a frozen store
 * cannot hold the queue. Nothing here retries: a blind retry would turn an unknown outcome into a wrong one.
 */
import { keyId, type LeaseKey } from "../core/index.ts";
import { type Env, readClocks } from "../env/index.ts";
import {
  type ConditionalWrite,
  type LeaseStore,
  type StoredRecord,
  StoreError,
  type StoreReply,
  type WriteResult,
} from "../store/index.ts";
import { Alarm } from "../support/alarm.ts";
import { invariant } from "../support/invariant.ts";
import type { StoreClock, TimeSample } from "./store-time.ts";

/** An answer, and the call that brought it. */
export interface Answered<Value> {
  readonly value: Value;
  /** Calls are numbered as they are sent: what was learned before this number was sent is older. */
  readonly callNumber: number;
  /** On the monotonic clock. */
  readonly receivedMs: number;
}

/** An operation on its way. */
interface Job<Operation, Value> {
  readonly operation: Operation;
  /** Operations of one call have distinct ids. */
  readonly id: string;
  readonly timeoutMs: number;
  readonly resolve: (answer: Answered<Value>) => void;
  readonly reject: (error: unknown) => void;
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

interface BatcherOptions<Operation, Value> {
  readonly env: Env;
  readonly maxBatch: number;
  readonly minBatch: number;
  readonly maxConcurrentCalls: number;
  readonly callTimeoutMs: number;
  readonly call: (operations: readonly Operation[]) => Promise<BatchReply<Value>>;
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
class Batcher<Operation, Value> {
  readonly #options: BatcherOptions<Operation, Value>;
  #queue: Job<Operation, Value>[] = [];
  readonly #pending: PendingCall[] = [];
  #flushPlanned = false;
  /** It need not keep the process from ending: what a store waits for does. */
  readonly #alarm: Alarm;

  constructor(options: BatcherOptions<Operation, Value>) {
    this.#options = options;
    this.#alarm = new Alarm(options.env, () => this.#expireDue());
  }

  submit(operation: Operation, id: string, timeoutMs: number): Promise<Answered<Value>> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ operation, id, timeoutMs, resolve, reject });
      this.#planFlush();
    });
  }

  close(): void {
    this.#alarm.cancel();
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
  #take(share: number): readonly Job<Operation, Value>[] {
    const queue = this.#queue;
    if (queue.length === 1) {
      this.#queue = [];
      return queue;
    }
    const ids = new Set<string>();
    const taken: Job<Operation, Value>[] = [];
    const repeated: Job<Operation, Value>[] = [];
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

  #send(batch: readonly Job<Operation, Value>[]): void {
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
        for (const job of batch) job.reject(error);
      });
    // A store that breaks its contract may answer anything: every job must be settled all the same.
    const receive = (reply: Partial<BatchReply<Value>> | undefined): void =>
      settle(() => {
        const received = readClocks(env);
        const storeTimeMs = reply?.storeTimeMs ?? null;
        const serverChangedAtMs = reply?.serverChangedAtMs ?? null;
        if (storeTimeMs !== null) onTime({ sent, received, storeTimeMs, serverChangedAtMs });
        for (const [index, job] of batch.entries()) {
          const value = reply?.results?.[index];
          if (value === undefined) job.reject(missingAnswer());
          else job.resolve({ value, callNumber, receivedMs: received.monotonicMs });
        }
      });
    const pending: PendingCall = {
      deadlineMs: sent.monotonicMs + callTimeoutMs,
      expire: () => fail(noAnswer(callTimeoutMs)),
    };
    this.#pending.push(pending);
    // In a function of its own: a store that throws is treated as one that rejects.
    (async () => call(batch.map(({ operation }) => operation)))().then(receive, fail);
    this.#alarm.setBy(pending.deadlineMs);
  }

  #expireDue(): void {
    const nowMs = this.#options.env.monotonicMs();
    for (const { deadlineMs, expire } of [...this.#pending]) {
      if (deadlineMs <= nowMs) expire();
      else this.#alarm.setBy(deadlineMs);
    }
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

export class CallBatcher {
  readonly #reads: Batcher<LeaseKey, ReadRecord>;
  readonly #writes: Batcher<ConditionalWrite, WriteResult>;
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
    const common = {
      ...{ env, maxBatch, minBatch, maxConcurrentCalls, callTimeoutMs, onDataLoss },
      onTime: (sample: TimeSample): void => clock.learn(sample),
      nextCallNumber: (): number => {
        this.#callNumber += 1;
        return this.#callNumber;
      },
    };
    this.#reads = new Batcher({ ...common, call: (keys) => readDistinct(store, keys) });
    this.#writes = new Batcher({ ...common, call: (writes) => store.apply(writes) });
  }

  /** The number of the newest call that was sent. */
  get lastCallNumber(): number {
    return this.#callNumber;
  }

  read(key: LeaseKey, timeoutMs = Number.POSITIVE_INFINITY): Promise<Answered<ReadRecord>> {
    this.#readCount += 1;
    return this.#reads.submit(key, String(this.#readCount), timeoutMs);
  }

  /** The store may look at `write` after the time limit: it must not change. */
  write(write: ConditionalWrite, timeoutMs = Number.POSITIVE_INFINITY): Promise<Answered<WriteResult>> {
    return this.#writes.submit(write, keyId(write.key), timeoutMs);
  }

  /** What is still under way is settled by the store, whose end this is too. */
  close(): void {
    this.#reads.close();
    this.#writes.close();
  }
}

/** Several requests may ask for the same key: it is read once. */
async function readDistinct(store: LeaseStore, keys: readonly LeaseKey[]): Promise<BatchReply<ReadRecord>> {
  const distinct = new Map(keys.map((key) => [keyId(key), key]));
  const { records, revision = 0n, ...reply } = await store.read([...distinct.values()]);
  const byId = new Map([...distinct.keys()].map((id, index) => [id, records[index]]));
  const results = keys.map((key): ReadRecord => {
    const stored = byId.get(keyId(key));
    if (stored === undefined) throw missingAnswer();
    return { stored, revision };
  });
  return { ...reply, results };
}
