/**
 * Renews leases in a thread of its own (`renewIn: "worker"`), so that a busy main thread does not lose them. The thread has
 * its own connection to the store and sends ordinary renewals; this side settles their answers as if it had sent them
 * itself, so a belief counts from before the renewal left, and never from its answer. Both threads read one clock.
 *
 * Promised: the thread renews only while the main thread has shown a sign of life within the bound. A process that hangs
 * loses its leases no later than the bound and a ttl after that.
 */
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from "node:worker_threads";
import type { Env, Timer } from "../env/index.ts";
import type { AppliedOutcome, RefusedOutcome } from "../executor/index.ts";
import { StoreError, type StoreErrorKind } from "../store/index.ts";
import type { ConnectOptions } from "./connect.ts";

/** How a renewal ended. Of a failure only the kind crosses the threads. */
export interface RenewalReport {
  readonly outcome:
    | AppliedOutcome
    | RefusedOutcome
    | { readonly kind: "unsettled"; readonly cause: { readonly kind: StoreErrorKind } };
  readonly durationMs: number;
}

export type OnReport = (report: RenewalReport) => void;

/** One lease that the thread renews. */
export interface ThreadRenewal {
  /** Hands over the reports that came and that the event loop had no turn for yet. */
  drain(): void;
  stop(): void;
}

/** What the thread is started with. */
export interface ThreadData {
  readonly url: string;
  readonly options: ConnectOptions;
  readonly boundMs: number;
  /** The last sign of life of the main thread: milliseconds on the monotonic clock. */
  readonly heartbeat: BigInt64Array;
}

/** What the thread is asked for. */
export interface KeptLease {
  readonly grant: AppliedOutcome;
  readonly ttlMs: number;
  /** Closed when the lease is not to be renewed any more. */
  readonly port: MessagePort;
}

/** So many signs of life within the bound: one that is late is not the end. */
const BEATS = 5;

export class RenewalWorker {
  readonly #worker: Worker;
  readonly #env: Env;
  readonly #boundMs: number;
  readonly #heartbeat: BigInt64Array;
  readonly #kept = new Set<OnReport>();
  #timer: Timer | null = null;
  #loss: StoreError | null = null;

  private constructor(env: Env, { url, options, boundMs }: Omit<ThreadData, "heartbeat">) {
    this.#env = env;
    this.#boundMs = boundMs;
    this.#heartbeat = new BigInt64Array(new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT));
    this.#beat();
    const workerData: ThreadData = { url, options, boundMs, heartbeat: this.#heartbeat };
    this.#worker = new Worker(new URL("./renewal-thread.js", import.meta.url), {
      workerData,
      execArgv: ["--no-warnings"],
    });
    this.#worker.on("error", (error) => this.#onLoss(error.message));
    this.#worker.on("exit", () => this.#onLoss("it ended"));
  }

  /** Rejects with a StoreError if the thread cannot open the store. */
  static async open(env: Env, data: Omit<ThreadData, "heartbeat">): Promise<RenewalWorker> {
    const renewals = new RenewalWorker(env, data);
    const worker = renewals.#worker;
    await new Promise<void>((resolve, reject) => {
      worker.once("message", () => resolve());
      worker.once("error", (error) => reject(threadLost(error.message)));
    });
    worker.unref();
    return renewals;
  }

  /** The thread renews the lease of this grant from now on. */
  keep(grant: AppliedOutcome, ttlMs: number, onReport: OnReport): ThreadRenewal {
    const { port1: here, port2: there } = new MessageChannel();
    this.#worker.postMessage({ grant, ttlMs, port: there } satisfies KeptLease, [there]);
    here.on("message", onReport);
    here.unref();
    this.#kept.add(onReport);
    return {
      drain: () => {
        for (let got = receiveMessageOnPort(here); got !== undefined; got = receiveMessageOnPort(here))
          onReport(got.message as RenewalReport);
      },
      stop: () => {
        this.#kept.delete(onReport);
        here.close();
      },
    };
  }

  /** Throws a StoreError when the thread is gone: what is granted now would not be renewed. */
  assertAlive(): void {
    if (this.#loss !== null) throw this.#loss;
  }

  async close(): Promise<void> {
    this.#timer?.cancel();
    this.#kept.clear();
    await this.#worker.terminate();
  }

  #beat(): void {
    Atomics.store(this.#heartbeat, 0, BigInt(Math.floor(this.#env.monotonicMs())));
    this.#timer = this.#env.timer(this.#boundMs / BEATS, () => this.#beat());
  }

  /** Leases in hand are in jeopardy, and end by their ttl. */
  #onLoss(why: string): void {
    this.#loss ??= threadLost(why);
    const outcome = { kind: "unsettled", cause: { kind: "internal" } } as const;
    for (const onReport of this.#kept) onReport({ outcome, durationMs: 0 });
  }
}

function threadLost(why: string): StoreError {
  const message = `the thread that renews leases was lost (${why}): connect again`;
  return new StoreError("internal", message, { outcome: "not-applied" });
}
