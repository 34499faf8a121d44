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
  type WriteResult,
} from "../stores/index.ts";
import type { StoreClock, TimeSample } from "./store-clock.ts";

/** An answer, with the own monotonic instants between which the store gave it. */
export interface Answered<Value> {
  readonly value: Value;
  /** Calls are numbered as they are sent: what was learned before this number was sent is older. */
  readonly callNumber: number;
  readonly sentMs: number;
  readonly receivedMs: number;
}

interface Job<Input, Value> {
  readonly id: string;
  readonly input: Input;
  readonly patienceMs: number;
  readonly resolve: (answer: Answered<Value>) => void;
  readonly reject: (error: unknown) => void;
}

interface StoreReply<Value> {
  readonly storeTimeMs: number | null;
  readonly values: readonly Value[];
}

interface LaneOptions<Input, Value> {
  readonly env: Env;
  readonly maxBatch: number;
  readonly maxConcurrentCalls: number;
  readonly callTimeoutMs: number;
  readonly call: (inputs: readonly Input[]) => Promise<StoreReply<Value>>;
  readonly nextCallNumber: () => number;
  readonly onTime: (sample: TimeSample) => void;
}

/** One queue of like operations. */
class Lane<Input, Value> {
  readonly #options: LaneOptions<Input, Value>;
  #queue: Job<Input, Value>[] = [];
  #inFlight = 0;
  #flushPlanned = false;

  constructor(options: LaneOptions<Input, Value>) {
    this.#options = options;
  }

  submit(id: string, input: Input, patienceMs: number): Promise<Answered<Value>> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ id, input, patienceMs, resolve, reject });
      this.#planFlush();
    });
  }

  #planFlush(): void {
    if (this.#flushPlanned || this.#queue.length === 0) return;
    if (this.#inFlight >= this.#options.maxConcurrentCalls) return;
    this.#flushPlanned = true;
    this.#options.env.defer(() => {
      this.#flushPlanned = false;
      while (this.#queue.length > 0 && this.#inFlight < this.#options.maxConcurrentCalls)
        this.#send(this.#take());
    });
  }

  /** As many as fit, in order; a key that is already in the batch waits for the next one. */
  #take(): Job<Input, Value>[] {
    const taken = new Map<string, Job<Input, Value>>();
    const left: Job<Input, Value>[] = [];
    for (const job of this.#queue) {
      if (taken.size < this.#options.maxBatch && !taken.has(job.id)) taken.set(job.id, job);
      else left.push(job);
    }
    this.#queue = left;
    return [...taken.values()];
  }

  #send(batch: readonly Job<Input, Value>[]): void {
    const { env, call, onTime } = this.#options;
    // The least patient sets the limit: a lease about to end must not wait behind a frozen call.
    const callTimeoutMs = batch.reduce(
      (least, job) => Math.min(least, job.patienceMs),
      this.#options.callTimeoutMs,
    );
    const callNumber = this.#options.nextCallNumber();
    const sent = readClocks(env);
    const sentMs = sent.monotonicMs;
    let settled = false;
    const finish = (deliver: () => void): void => {
      if (settled) return;
      settled = true;
      timeout.cancel();
      this.#inFlight -= 1;
      deliver();
      this.#planFlush();
    };
    const fail = (error: unknown): void => finish(() => rejectAll(batch, error));
    const timeout = env.timer(callTimeoutMs, () => fail(noAnswer(callTimeoutMs)), { keepAlive: "yes" });
    this.#inFlight += 1;
    invoke(call, batch).then((reply) => {
      finish(() => {
        const received = readClocks(env);
        const receivedMs = received.monotonicMs;
        if (reply.storeTimeMs !== null) onTime({ sent, received, storeTimeMs: reply.storeTimeMs });
        batch.forEach((job, index) => {
          const value = reply.values[index];
          if (value === undefined) job.reject(missingAnswer());
          else job.resolve({ value, callNumber, sentMs, receivedMs });
        });
      });
    }, fail);
  }
}

/** A store that throws instead of rejecting is treated alike. */
async function invoke<Input, Value>(
  call: (inputs: readonly Input[]) => Promise<StoreReply<Value>>,
  batch: readonly Job<Input, Value>[],
): Promise<StoreReply<Value>> {
  return await call(batch.map((job) => job.input));
}

function rejectAll(batch: readonly { readonly reject: (error: unknown) => void }[], error: unknown): void {
  for (const job of batch) job.reject(error);
}

function noAnswer(afterMs: number): StoreError {
  return new StoreError("timeout", `the store gave no answer within ${afterMs} ms`, { outcome: "unknown" });
}

function missingAnswer(): StoreError {
  return new StoreError("internal", "the store answered fewer operations than it was sent", {
    outcome: "unknown",
  });
}

export class StoreCalls {
  readonly #reads: Lane<readonly LeaseKey[], readonly StoredRecord[]>;
  readonly #writes: Lane<ConditionalWrite, WriteResult>;
  #readCount = 0;
  #callNumber = 0;

  constructor(options: {
    readonly store: LeaseStore;
    readonly env: Env;
    readonly clock: StoreClock;
    readonly callTimeoutMs: number;
  }) {
    const { store, env, clock, callTimeoutMs } = options;
    const { maxBatch, maxConcurrentCalls } = store.capabilities;
    const onTime = (sample: TimeSample): void => clock.learn(sample);
    // A read asks for at most two keys; halving keeps every call within what the store takes.
    const readBatch = Math.max(1, Math.floor(maxBatch / 2));
    const nextCallNumber = (): number => {
      this.#callNumber += 1;
      return this.#callNumber;
    };
    const common = { env, maxConcurrentCalls, callTimeoutMs, nextCallNumber, onTime };
    this.#reads = new Lane({ ...common, maxBatch: readBatch, call: (groups) => readGroups(store, groups) });
    this.#writes = new Lane({
      ...common,
      maxBatch,
      call: async (writes) => {
        const reply = await store.apply(writes);
        return { storeTimeMs: reply.storeTimeMs, values: reply.results };
      },
    });
  }

  /** The number of the newest call that was sent. */
  get lastCallNumber(): number {
    return this.#callNumber;
  }

  /** Reads the keys in this order, none earlier than the one before it. */
  read(
    keys: readonly LeaseKey[],
    patienceMs = Number.POSITIVE_INFINITY,
  ): Promise<Answered<readonly StoredRecord[]>> {
    this.#readCount += 1;
    return this.#reads.submit(String(this.#readCount), keys, patienceMs);
  }

  /** `id` is that of the key: writes of one call have distinct keys. */
  write(
    id: string,
    write: ConditionalWrite,
    patienceMs = Number.POSITIVE_INFINITY,
  ): Promise<Answered<WriteResult>> {
    return this.#writes.submit(id, write, patienceMs);
  }
}

/** Several requests may ask for the same key: it is read once, after every key that comes before it. */
async function readGroups(
  store: LeaseStore,
  groups: readonly (readonly LeaseKey[])[],
): Promise<StoreReply<readonly StoredRecord[]>> {
  const depth = Math.max(...groups.map((group) => group.length));
  const wanted = new Map<string, LeaseKey>();
  for (let level = 0; level < depth; level += 1) {
    for (const group of groups) {
      const key = group[level];
      if (key === undefined) continue;
      const id = keyId(key);
      wanted.delete(id);
      wanted.set(id, key);
    }
  }
  const reply = await store.read([...wanted.values()]);
  const byId = new Map([...wanted.keys()].map((id, index) => [id, reply.records[index]]));
  const values = groups.map((group) =>
    group.map((key) => {
      const record = byId.get(keyId(key));
      if (record === undefined) throw missingAnswer();
      return record;
    }),
  );
  return { storeTimeMs: reply.storeTimeMs, values };
}
