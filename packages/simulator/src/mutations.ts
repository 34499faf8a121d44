/**
 * Where a mistake can be planted in a simulated world, without a line of it in the code under test: around
 * the store, the decision, the executor, the clocks, the handle, the guard, the trail.
 */

import type { FencedResource } from "solehold/guards";
import type {
  AuditDisk,
  AuditTrail,
  DriftBound,
  decide,
  Env,
  Lease,
  LeaseExecutor,
  LeaseKey,
  LeasePolicy,
  LeaseService,
  LeaseStore,
  Leases,
  RemoteTransport,
} from "solehold/internal";
import type { Endpoint } from "./net/gateway.ts";
import type { StoreEngine } from "./store/engine.ts";

/** A handle as the workload uses it. */
export interface Holding {
  readonly lease: Lease;
  isHeld(): boolean;
  /** For how long `isHeld` would say yes, without a change to the handle: what a trace shows. */
  remaining(): number;
  /** Hands the lease on; resolves when that is done. */
  handOff(successor: string, withinMs: number): Promise<void>;
}

/** "raise": a new holder shows its fence before it reads. */
export interface GuardedStep {
  readonly kind: "raise" | "write";
  readonly key: LeaseKey;
  readonly fence: bigint;
}

export interface Mutations {
  readonly policy?: Partial<LeasePolicy>;
  readonly engineWrites?: "blind";
  readonly decide?: (real: typeof decide) => typeof decide;
  readonly store?: (store: LeaseStore, env: Env, engine: StoreEngine) => LeaseStore;
  /** The clocks and randomness of the executor, and of the client's handles. */
  readonly executorEnv?: (env: Env) => Env;
  readonly clientEnv?: (env: Env) => Env;
  /** What the handles believe about drift. */
  readonly clientDrift?: (drift: DriftBound) => DriftBound;
  readonly executor?: (executor: LeaseExecutor, env: Env) => LeaseExecutor;
  /** With a way to make a service that asks for no approvals. */
  readonly service?: (service: LeaseService, openUnguarded: () => LeaseService) => LeaseService;
  /** A server, as its handlers are reached. */
  readonly endpoint?: (endpoint: Endpoint) => Endpoint;
  /** Given how a program opens its leases. */
  readonly leases?: (open: () => Leases) => Leases;
  /** The SDK's way to servers. */
  readonly transport?: (transport: RemoteTransport, env: Env) => RemoteTransport;
  readonly holding?: (holding: Holding, executor: LeaseExecutor) => Holding;
  /** Whether the protected resource takes the step. */
  readonly guard?: (resource: FencedResource<number>, step: GuardedStep) => boolean;
  readonly audit?: (trail: AuditTrail) => AuditTrail;
  /** The disk under an audit in files. */
  readonly auditDisk?: (disk: AuditDisk) => AuditDisk;
}
