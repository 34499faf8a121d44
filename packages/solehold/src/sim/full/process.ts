/**
 * One life of one process: the real manager, service and client, put together as a program would, on the
 * simulated store and clocks. When it dies nothing of it runs again; a restart is a new Process.
 */
import { Leases } from "../../client/index.ts";
import type { DriftBound } from "../../core/index.ts";
import { decide } from "../../core/index.ts";
import type { Env } from "../../env/index.ts";
import { type LeaseManager, StoreLeaseManager } from "../../manager/index.ts";
import { type AuditTrail, LeaseService, MemoryAuditTrail } from "../../service/index.ts";
import type { LeaseStore } from "../../stores/index.ts";
import type { SimConfig } from "../config.ts";
import type { Holding, Mutations } from "../mutations.ts";
import type { StoreEngine } from "../store/engine.ts";
import { SimulatedEnv } from "../world/env.ts";
import type { Machine } from "../world/machine.ts";
import type { World } from "../world/world.ts";
import { type CallLog, RecordingManager } from "./recorder.ts";
import { ServiceRoute } from "./service-route.ts";

export const TENANT = "default";
const AUDIT_CAPACITY = 10_000;

export interface ProcessOptions {
  readonly world: World;
  readonly machine: Machine;
  readonly config: SimConfig;
  readonly mutations: Mutations;
  readonly log: CallLog;
  readonly life: number;
  readonly holder: string;
  readonly openStore: (env: SimulatedEnv, process: string) => LeaseStore;
  readonly engine: StoreEngine;
}

export class Process {
  readonly name: string;
  readonly machine: Machine;
  readonly env: SimulatedEnv;
  readonly leases: Leases;
  readonly manager: StoreLeaseManager;
  /** As the client sees it: with the recorder, and with what was planted. */
  readonly clientManager: LeaseManager;
  readonly route: ServiceRoute | null;
  readonly audit: AuditTrail;
  readonly holdings: Holding[] = [];

  constructor(options: ProcessOptions) {
    const { world, machine, config, mutations, log, life, holder, engine } = options;
    this.machine = machine;
    this.name = life === 1 ? machine.name : `${machine.name}.${life}`;
    this.env = new SimulatedEnv({
      world,
      machine,
      random: world.choices.stream(`process ${this.name}`),
      timerLatenessMs: config.timerLatenessMs,
    });
    const { env } = this;
    const plainStore = options.openStore(env, this.name);
    const managerEnv: Env = mutations.managerEnv?.(env) ?? env;
    this.manager = new StoreLeaseManager({
      store: mutations.store?.(plainStore, env, engine) ?? plainStore,
      env: managerEnv,
      policy: { ...config.policy, ...mutations.policy },
      drift: { driftRatio: config.driftRatio, tickMs: config.tickMs },
      callTimeoutMs: config.callTimeoutMs,
      commandTimeoutMs: config.commandTimeoutMs,
      retentionMs: config.retentionMs,
      decide: mutations.decide?.(decide) ?? decide,
    });
    const trail = new MemoryAuditTrail({ capacity: AUDIT_CAPACITY });
    this.audit = mutations.audit?.(trail) ?? trail;
    const service = new LeaseService({ manager: this.manager, audit: this.audit, env: managerEnv });
    this.route = config.route === "service" ? new ServiceRoute(service, this.name) : null;
    const inner = this.route ?? this.manager;
    const recorded = new RecordingManager({ inner, log, world, process: this.name, env });
    const mutated = mutations.manager?.(recorded, env) ?? recorded;
    const drift = mutations.clientDrift?.(mutated.drift);
    this.clientManager = drift === undefined ? mutated : withDrift(mutated, drift);
    const clientEnv = mutations.clientEnv?.(env) ?? env;
    this.leases = new Leases({ manager: this.clientManager, env: clientEnv, tenant: TENANT, holder });
  }

  get alive(): boolean {
    return !this.env.dead;
  }

  kill(): void {
    this.env.kill();
  }

  /** Lets go of everything, as a program does at its end. */
  async shutDown(): Promise<void> {
    await Promise.all(this.holdings.map(({ lease }) => lease.release()));
    await this.leases.close();
    await this.route?.service.close();
  }
}

function withDrift(manager: LeaseManager, drift: DriftBound): LeaseManager {
  return new Proxy(manager, {
    get: (target, field) => {
      if (field === "drift") return drift;
      const value: unknown = Reflect.get(target, field, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
