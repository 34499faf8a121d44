/** What a lease in somebody's hand is made with, and the states that it goes through. */
import type { DriftBound } from "../core/index.ts";
import type { Env } from "../env/index.ts";
import type { LeaseExecutor } from "../executor/index.ts";
import type { Lease } from "./lease.ts";
import type { AcquireOptions } from "./options.ts";
import { RenewalSchedule } from "./renewal-schedule.ts";
import type { RenewalWorker } from "./renewal-worker.ts";
import { RevocationWatch } from "./revocation-watch.ts";
import { SuspendWatch } from "./suspend-detector.ts";

export type LeaseHandleState = "held" | "jeopardy" | "lost" | "released";

export interface LeaseContext {
  readonly executor: LeaseExecutor;
  readonly env: Env;
  readonly drift: DriftBound;
  readonly schedule: RenewalSchedule;
  readonly suspendWatch: SuspendWatch;
  /** All handles that are not over, so that closing can end them. */
  readonly held: Set<Lease>;
  readonly revocations: RevocationWatch;
  /** Sends the renewals. */
  readonly renew: LeaseExecutor["execute"];
  /** The thread that renews instead; null without one. */
  readonly worker: RenewalWorker | null;
}

export function leaseContext(
  executor: LeaseExecutor,
  env: Env,
  worker: RenewalWorker | null = null,
): LeaseContext {
  return {
    ...{ executor, env, worker, drift: executor.drift, held: new Set() },
    renew: (request) => executor.execute(request),
    schedule: new RenewalSchedule(env),
    suspendWatch: new SuspendWatch(env),
    revocations: new RevocationWatch(executor),
  };
}

export interface LeaseOptions {
  readonly ttlMs: number;
  readonly autoRenew: boolean;
  readonly probe: AcquireOptions["probe"] | undefined;
  /** Keeps the process from ending while the lease is held. */
  readonly keepAlive: boolean;
}
