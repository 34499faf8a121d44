/**
 * One life of one process: the real client, over an executor and service of its own or over the SDK's way to a
 * server, put together as a program would. When it dies nothing of it runs again; a restart is a new Process.
 */

import type { DriftBound, LeaseExecutor } from "solehold/internal";
import { Leases } from "solehold/internal";
import type { SimConfig } from "../config.ts";
import type { Holding, Mutations } from "../mutations.ts";
import { SimulatedEnv } from "../world/env.ts";
import type { Machine } from "../world/machine.ts";
import type { World } from "../world/world.ts";
import { Attempts } from "./attempts.ts";
import type { Backend } from "./backend.ts";
import { type CallLog, RecordingExecutor } from "./recorder.ts";
import { withTraces } from "./traces.ts";

export const TENANT = "default";

export interface ProcessOptions {
  readonly world: World;
  readonly machine: Machine;
  readonly config: SimConfig;
  readonly mutations: Mutations;
  readonly log: CallLog;
  readonly name: string;
  readonly env: SimulatedEnv;
  readonly holder: string;
  /** What decides in this process; null when a server does. */
  readonly backend: Backend | null;
  /** Null when the process decides by itself. */
  readonly connect: ((env: SimulatedEnv, process: string) => LeaseExecutor) | null;
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

  constructor(options: ProcessOptions) {
    const { world, machine, config, mutations, log, name, env, holder, backend, connect } = options;
    this.machine = machine;
    this.name = name;
    this.env = env;
    this.backend = backend;
    this.attempts = backend !== null && config.route === "service" ? new Attempts() : null;
    const service =
      backend === null || this.attempts === null ? null : withTraces(this.attempts, name)(backend.service);
    const inner = connect?.(env, name) ?? service ?? backend?.executor;
    if (inner === undefined) throw new Error("a process decides by itself or through a server");
    const recorded = new RecordingExecutor({ inner, log, world, process: name, env });
    const mutated = mutations.executor?.(recorded, env) ?? recorded;
    const drift = mutations.clientDrift?.(mutated.drift);
    this.clientExecutor = drift === undefined ? mutated : withDrift(mutated, drift);
    const clientEnv = mutations.clientEnv?.(env) ?? env;
    const leases = (): Leases =>
      new Leases({ executor: this.clientExecutor, env: clientEnv, tenant: TENANT, holder });
    this.leases = mutations.leases?.(leases) ?? leases();
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
    if (this.attempts !== null) await this.backend?.executor.close();
  }
}

export function nameOf(machine: Machine, life: number): string {
  return life === 1 ? machine.name : `${machine.name}.${life}`;
}

export function envOf(
  { world, machine, config }: Pick<ProcessOptions, "world" | "machine" | "config">,
  name: string,
): SimulatedEnv {
  const random = world.choices.stream(`process ${name}`);
  return new SimulatedEnv({ world, machine, random, timerLatenessMs: config.timerLatenessMs });
}

function withDrift(executor: LeaseExecutor, drift: DriftBound): LeaseExecutor {
  return new Proxy(executor, {
    get: (target, field) => {
      if (field === "drift") return drift;
      const value: unknown = Reflect.get(target, field, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
