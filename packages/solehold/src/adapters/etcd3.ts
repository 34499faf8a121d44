/**
 * `solehold/adapters/etcd3`: etcd3's `Lock` over leases: `locks.lock(key).ttl(10).do(work)`. As there, a lock that somebody
 * has fails at once, and one that is held is renewed until it is released.
 *
 * What is new: the work gets the lock, whose signal aborts before another can have it, and whose fence a guard compares.
 * Not promised: `leaseId()`. There is no etcd lease to which a program could bind other keys.
 */
import { type Lease, LeaseHeldError, type Leases } from "../client/index.ts";

export class EtcdLockFailedError extends Error {
  override readonly name = "EtcdLockFailedError";
}

/** In the place of the client of etcd3. */
export class EtcdLocks {
  readonly #leases: Leases;

  constructor(leases: Leases) {
    this.#leases = leases;
  }

  lock(key: string): Lock {
    return new Lock(this.#leases, key);
  }
}

const DEFAULT_TTL_SECONDS = 30;

export class Lock {
  readonly #leases: Leases;
  readonly #key: string;
  #ttlMs = DEFAULT_TTL_SECONDS * 1_000;
  #lease: Lease | null = null;

  constructor(leases: Leases, key: string) {
    this.#leases = leases;
    this.#key = key;
  }

  /** In seconds, 30 by default. */
  ttl(seconds: number): this {
    if (this.#lease !== null) throw new Error("Cannot set a lock TTL after acquiring the lock");
    if (typeof seconds !== "number" || !(seconds > 0))
      throw new RangeError(`ttl must be a number of seconds above 0, got ${String(seconds)}`);
    this.#ttlMs = Math.round(seconds * 1_000);
    return this;
  }

  /** Rejects with EtcdLockFailedError when somebody has it, and with LeaseUnavailableError when the store does not answer. */
  async acquire(): Promise<this> {
    const attempt = await this.#leases.tryAcquire(this.#key, { ttl: this.#ttlMs });
    if (!attempt.ok) {
      const cause = new LeaseHeldError(attempt);
      throw new EtcdLockFailedError(`Failed to acquire a lock on ${this.#key}: ${cause.message}`, { cause });
    }
    this.#lease = attempt.lease;
    return this;
  }

  /** Never rejects once the lock was acquired: what had ended before needs no release. */
  async release(): Promise<void> {
    if (this.#lease === null) throw new Error("Attempted to release a lock which was not acquired");
    await this.#lease.release();
  }

  /** Runs the work under the lock. Its result or error is the result, whatever becomes of the lock: watch `signal`. */
  async do<Result>(work: (lock: this) => Result | Promise<Result>): Promise<Result> {
    await this.acquire();
    try {
      return await work(this);
    } finally {
      await this.release();
    }
  }

  /** Aborts when the lock is over. */
  get signal(): AbortSignal {
    return this.#held().signal;
  }

  /** Higher with every grant of the key: for a guard. */
  get fence(): bigint {
    return this.#held().fence;
  }

  #held(): Lease {
    if (this.#lease === null)
      throw new Error(`The lock on ${this.#key} was not acquired: call acquire() first`);
    return this.#lease;
  }
}
