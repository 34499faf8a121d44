/**
 * node-cron's run coordinator over leases: node-cron asks it before each run, with a key that names the task and the time at
 * which it is due, and one replica runs it. The lease is renewed for as long as the run takes.
 *
 * A coordinator cannot stop a run: for work that must stop with its lease use `leases.runOncePer` in the task, whose lease
 * has a signal.
 */
import type { Lease, Leases, TryAcquireOptions } from "../client/index.ts";
import type { Duration } from "../core/index.ts";

/** As node-cron declares it. */
export interface RunCoordinatorLike {
  shouldRun(key: string): Promise<boolean>;
  onComplete(key: string): Promise<void>;
}

export interface RunCoordinatorOptions extends TryAcquireOptions {
  /** Longer than the clocks of any two replicas are apart. Default 10 minutes. */
  readonly holdAtLeast?: Duration;
}

/** `schedule("0 3 * * *", task, { name: "reports/nightly", distributed: true, runCoordinator: runCoordinator(leases) })`. */
export function runCoordinator(leases: Leases, options: RunCoordinatorOptions = {}): RunCoordinatorLike {
  if (typeof (leases as Partial<Leases> | null)?.tryAcquire !== "function")
    throw new TypeError("runCoordinator: the first argument must be Leases: await connect(url)");
  const held = new Map<string, Lease>();
  return {
    shouldRun: async (key) => {
      const attempt = await leases.tryAcquire(key, { keepAlive: true, holdAtLeast: "10m", ...options });
      if (attempt.ok) held.set(key, attempt.lease);
      return attempt.ok;
    },
    onComplete: async (key) => {
      const lease = held.get(key);
      held.delete(key);
      await lease?.release();
    },
  };
}
