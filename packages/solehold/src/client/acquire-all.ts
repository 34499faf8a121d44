/**
 * Several leases for one caller: all of them or none, and no deadlock.
 *
 * All that are missing are tried at once, in one call where the store can. If one of them is taken, those that come after
 * it in the order of names are released, and it is waited for. So whoever waits holds only names before the one that it
 * waits for, and a circle of waiters cannot come about. Each wait leaves one name more behind it.
 */
import type { Env } from "../env/index.ts";
import { given } from "../support/given.ts";
import { LeaseError, LeaseHeldError } from "./errors.ts";
import type { Lease } from "./lease.ts";
import { LeaseSet } from "./lease-set.ts";
import type { AcquireAttempt } from "./leases.ts";
import type { AcquireAllOptions, AcquireOptions, TryAcquireOptions } from "./options.ts";

export interface AcquireAll {
  readonly env: Env;
  readonly names: readonly string[];
  readonly options: AcquireAllOptions;
  readonly waitMs: number;
  tryAcquire(name: string, options: TryAcquireOptions): Promise<AcquireAttempt>;
  acquire(name: string, options: AcquireOptions): Promise<Lease>;
}

export const MAX_LEASES_IN_SET = 100;

export async function acquireAll(asked: AcquireAll): Promise<LeaseSet> {
  const { env, names, waitMs } = asked;
  checkNames(names);
  const { wait: _wait, priority, signal, onWaiting, ...options } = asked.options;
  const waiting = given({ priority, signal, onWaiting });
  const startedMs = env.monotonicMs();
  const ordered = [...names].sort();
  const held = new Map<string, Lease>();
  const isMissing = (name: string): boolean => held.get(name)?.isHeld() !== true;
  try {
    for (;;) {
      signal?.throwIfAborted();
      const missing = ordered.filter(isMissing);
      const tries = await Promise.allSettled(missing.map((name) => asked.tryAcquire(name, options)));
      const failures = new Map<string, unknown>();
      for (const [index, tried] of tries.entries()) {
        const name = missing[index] ?? "";
        if (tried.status === "rejected") failures.set(name, tried.reason);
        else if (tried.value.ok) held.set(name, tried.value.lease);
        else failures.set(name, new LeaseHeldError(tried.value));
      }
      // A store that does not answer is worth waiting for, as is another holder. A wrong request is not.
      for (const failure of failures.values())
        if (!(failure instanceof LeaseError && failure.retryable)) throw failure;
      const first = ordered.find(isMissing);
      if (first === undefined) return new LeaseSet(names.flatMap((name) => held.get(name) ?? []));
      const leftMs = waitMs - (env.monotonicMs() - startedMs);
      if (leftMs <= 0) {
        // It was granted, and is over already.
        held.get(first)?.assertHeld();
        throw failures.get(first);
      }
      await releaseAll([...held].filter(([name]) => name > first));
      const wait = Number.isFinite(leftMs) ? Math.ceil(leftMs) : "forever";
      held.set(first, await asked.acquire(first, { ...options, ...waiting, wait }));
    }
  } catch (error) {
    await releaseAll([...held]);
    throw error;
  }

  async function releaseAll(leases: readonly (readonly [string, Lease])[]): Promise<void> {
    for (const [name] of leases) held.delete(name);
    await Promise.all(leases.map(([, lease]) => lease.release()));
  }
}

function checkNames(names: readonly string[]): void {
  if (!Array.isArray(names))
    throw new TypeError("acquireAll(names, options): names must be an array of names");
  if (names.length === 0 || names.length > MAX_LEASES_IN_SET)
    throw new RangeError(`acquireAll takes 1 to ${MAX_LEASES_IN_SET} names, got ${names.length}`);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined)
    throw new RangeError(`acquireAll was given ${JSON.stringify(twice)} twice: name each lease once`);
}
