/** The lock of redlock 5: leases on all of its resources, which are held, extended and released together. */
import type { Lease, LeaseSet } from "../client/index.ts";
import { formatFence } from "../core/index.ts";
import { realEnv } from "../env/index.ts";
import { ExecutionError, type ExecutionResult } from "./redlock-errors.ts";

export type RedlockAbortSignal = AbortSignal & { readonly error?: Error };

/** The part of the class Redlock that a lock uses. */
export interface LockOwner {
  release(lock: Lock): Promise<ExecutionResult>;
  extend(lock: Lock, duration: number): Promise<Lock>;
}

export class Lock {
  readonly redlock: LockOwner;
  readonly resources: string[];
  readonly attempts: ExecutionResult["attempts"];
  /** One for each resource, in the order of `resources`. */
  readonly leases: readonly Lease[];
  readonly #set: LeaseSet;

  constructor(redlock: LockOwner, resources: string[], set: LeaseSet, attempts: ExecutionResult["attempts"]) {
    this.redlock = redlock;
    this.resources = resources;
    this.attempts = attempts;
    this.leases = set.leases;
    this.#set = set;
  }

  /** Of the first resource. A resource that compares it refuses the write of a holder that was overtaken. */
  get fence(): bigint {
    return this.leases[0]?.fence ?? 0n;
  }

  /** The fence as text: unlike redlock's random value it is ordered, and it is no secret. */
  get value(): string {
    return formatFence(this.fence);
  }

  /** On this machine's wall clock, for logs; 0 when it is over. */
  get expiration(): number {
    const remainingMs = this.#set.remaining();
    return remainingMs === 0 ? 0 : realEnv.wallMs() + remainingMs;
  }

  /** Aborts when the lock is over; `error` then says why. */
  get signal(): RedlockAbortSignal {
    const { signal } = this.#set;
    const lost = (): ExecutionError | undefined =>
      signal.aborted ? new ExecutionError(String(signal.reason?.message), [], signal.reason) : undefined;
    return Object.defineProperty(signal, "error", { get: lost, configurable: true });
  }

  async release(): Promise<ExecutionResult> {
    return await this.redlock.release(this);
  }

  async extend(duration: number): Promise<Lock> {
    return await this.redlock.extend(this, duration);
  }
}
