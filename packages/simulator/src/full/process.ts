/**
 * One life of one process: the real client, over an executor and service of its own or over the SDK's way to a
 * server, put together as a program would. When it dies nothing of it runs again; a restart is a new Process.
 */
import { type LeaseExecutor, Leases } from "solehold/internal";
import { withMembers } from "../bugs/wrap.ts";
import type { SimConfig } from "../config.ts";
import type { Holding, Mutations } from "../mutations.ts";
import type { SimulatedEnv } from "../world/env.ts";
import type { Machine } from "../world/machine.ts";
import type { World } from "../world/world.ts";
import { Attempts } from "./attempts.ts";
import type { Backend } from "./backend.ts";
import { type CallLog, recorded } from "./recorder.ts";

export const TENANT = "default";

export interface ProcessOptions {
  readonly world: World;
  readonly config: SimConfig;
  readonly mutations: Mutations;
  readonly log: CallLog;
  readonly name: string;
  readonly env: SimulatedEnv;
  /** What decides in this process, or its way to a server that does. */
  readonly decides: Backend | LeaseExecutor;
}

export class Process {
  readonly name: string;
  readonly machine: Machine;
  readonly env: SimulatedEnv;
  readonly leases: Leases;
  /** Null when a server decides. */
  readonly backend: Backend | null;
  /** As the client sees it: with the recorder, and with what was planted. */
  readonly clientExecutor: LeaseExecutor;
  /** What the service in this process was asked; null where commands do not go through one. */
  readonly attempts: Attempts | null;
  readonly holdings: Holding[] = [];

  constructor({ world, config, mutations, log, name, env, decides }: ProcessOptions) {
    this.machine = env.machine;
    this.name = name;
    this.env = env;
    this.backend = "service" in decides ? decides : null;
    this.attempts = this.backend !== null && config.route === "service" ? new Attempts() : null;
    const own = "service" in decides ? decides.executor : decides;
    const service = this.backend && this.attempts?.traced(name)(this.backend.service);
    const calls = recorded(name, env, world, log)(service ?? own);
    const mutated = mutations.executor?.(calls, env) ?? calls;
    const drift = mutations.clientDrift?.(mutated.drift);
    this.clientExecutor = drift === undefined ? mutated : withMembers(mutated, { drift });
    const clientEnv = mutations.clientEnv?.(env) ?? env;
    const holder = config.sharedHolder ? "team" : env.machine.name;
    const leases = (): Leases =>
      new Leases({ executor: this.clientExecutor, env: clientEnv, tenant: TENANT, holder });
    this.leases = mutations.leases?.(leases) ?? leases();
  }

  get alive(): boolean {
    return !this.env.dead;
  }

  /** Lets go of everything, as a program does at its end. */
  async shutDown(): Promise<void> {
    await Promise.all(this.holdings.map(({ lease }) => lease.release()));
    await this.leases.close();
    if (this.attempts !== null) await this.backend?.executor.close();
  }
}
