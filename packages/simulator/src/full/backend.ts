/**
 * What decides, in one process: the real executor and service over the simulated store, with what was planted
 * around them. A library process has one for itself, a server process for all its clients.
 */

import type { Env, LeaseStore } from "solehold/internal";
import { type AuditTrail, decide, LeaseService, MemoryAuditTrail, StoreExecutor } from "solehold/internal";
import { MOST_ENTRIES, type Trails } from "../audit/trails.ts";
import type { SimConfig } from "../config.ts";
import type { Mutations } from "../mutations.ts";
import type { StoreEngine } from "../store/engine.ts";
import type { SimulatedEnv } from "../world/env.ts";
import { dangerousPolicy } from "./approval-workload.ts";

export interface BackendOptions {
  readonly name: string;
  readonly env: SimulatedEnv;
  readonly config: SimConfig;
  readonly mutations: Mutations;
  readonly openStore: (env: SimulatedEnv, process: string) => LeaseStore;
  readonly engine: StoreEngine;
  /** Null where the audit is in memory. */
  readonly trails: Trails | null;
  readonly onSurprise: (process: string, error: unknown) => void;
}

export class Backend {
  readonly name: string;
  readonly env: SimulatedEnv;
  readonly executor: StoreExecutor;
  readonly audit: AuditTrail;
  readonly service: LeaseService;

  private constructor(
    { name, env, config, mutations }: BackendOptions,
    store: LeaseStore,
    trail: AuditTrail,
  ) {
    this.name = name;
    this.env = env;
    const executorEnv: Env = mutations.executorEnv?.(env) ?? env;
    this.executor = new StoreExecutor({
      store,
      env: executorEnv,
      policy: { ...config.policy, ...mutations.policy },
      drift: { driftRatio: config.driftRatio, tickMs: config.tickMs },
      callTimeoutMs: config.callTimeoutMs,
      commandTimeoutMs: config.commandTimeoutMs,
      retentionMs: config.retentionMs,
      decide: mutations.decide?.(decide) ?? decide,
    });
    this.audit = mutations.audit?.(trail) ?? trail;
    const open = { executor: this.executor, audit: this.audit, env: executorEnv };
    const service = new LeaseService(
      config.approvals === "yes" ? { ...open, approvalPolicy: dangerousPolicy() } : open,
    );
    this.service = mutations.service?.(service, () => new LeaseService(open)) ?? service;
  }

  /** As a program does, it opens its trail first. Calls back at once where that is in memory, and never if it dies before. */
  static open(options: BackendOptions, ready: (backend: Backend) => void): void {
    const { name, env, mutations, openStore, engine, trails, onSurprise } = options;
    const plainStore = openStore(env, name);
    const store = mutations.store?.(plainStore, env, engine) ?? plainStore;
    if (trails === null) {
      ready(new Backend(options, store, new MemoryAuditTrail({ capacity: MOST_ENTRIES })));
      return;
    }
    trails.open(env).then(
      (trail) => {
        if (!env.dead) ready(new Backend(options, store, trail));
      },
      (error: unknown) => onSurprise(name, error),
    );
  }

  get alive(): boolean {
    return !this.env.dead;
  }
}
