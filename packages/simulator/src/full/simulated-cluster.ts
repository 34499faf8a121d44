/**
 * Machines, network, store and processes of one run, and what the oracles see of them.
 */

import type { Lease, LeaseExecutor } from "solehold/internal";
import { createPolicy, keyId, type LeaseKey } from "solehold/internal";
import { type Trails, trailsOf } from "../audit/trails.ts";
import { drawConfig, type Expectations, expectationsOf, type SimConfig } from "../config.ts";
import type { Holding, Mutations } from "../mutations.ts";
import { simulatedSdk } from "../net/sdk.ts";
import { type AuditedTrail, audit } from "../oracles/audit.ts";
import {
  type Believer,
  type CallRecord,
  isGrant,
  type LostEffect,
  type OracleContext,
  type Situation,
} from "../oracles/oracle.ts";
import { type QuorumOracle, quorum } from "../oracles/quorum.ts";
import { OracleSet } from "../oracles/set.ts";
import { slots } from "../oracles/slots.ts";
import type { RunOptions, Violation } from "../result.ts";
import { SimulatedStore } from "../store/client.ts";
import { StoreEngine } from "../store/engine.ts";
import { describeWrite } from "../timeline.ts";
import { Tracer } from "../trace/tracer.ts";
import type { ClockStart } from "../world/clock.ts";
import { drawClock, drawStoreClock } from "../world/draw-clock.ts";
import type { SimulatedEnv } from "../world/env.ts";
import { Machine } from "../world/machine.ts";
import { Network } from "../world/network.ts";
import { Choices } from "../world/random.ts";
import { World } from "../world/world.ts";
import { DANGEROUS } from "./approval-workload.ts";
import { auditedTrails, type ServiceLife } from "./audited.ts";
import { Backend, type BackendOptions } from "./backend.ts";
import { LeaseBeliever } from "./believer.ts";
import { EffectLog } from "./effects.ts";
import { Lives } from "./lives.ts";
import { Process, TENANT } from "./process.ts";
import type { CallLog } from "./recorder.ts";
import { GuardedResources } from "./resources.ts";
import { ServerQueues } from "./server-queues.ts";
import { Servers } from "./servers.ts";
import { onLoss, situations } from "./situations.ts";
import { POOL } from "./slot-workload.ts";

/** What leases protect, as a time-line names it. */
export const RESOURCE = "resource";

export class SimulatedCluster {
  readonly config: SimConfig;
  /** Null: as many as a drawn world allows. */
  readonly mostTurns: number | null;
  readonly world: World;
  readonly network: Network;
  readonly engine: StoreEngine;
  readonly machines: readonly Machine[];
  readonly keys: readonly LeaseKey[];
  readonly oracles: OracleSet;
  readonly quorum: QuorumOracle;
  readonly log: CallLog;
  readonly sometimesCounts = new Map<Situation, number>();
  /** Null when every process decides by itself. */
  readonly servers: Servers | null;
  readonly queues = new ServerQueues();
  readonly #mutations: Mutations;
  readonly #context: OracleContext;
  readonly #believers = new Map<string, Believer[]>();
  readonly #resources: GuardedResources;
  readonly #effects: EffectLog;
  #lostEffects: readonly LostEffect[] = [];
  /** Null where the audit is in memory. */
  readonly trails: Trails | null;
  #audited: readonly AuditedTrail[] = [];
  readonly #lives: Lives<Process>;
  /** Where guarded writes arrive: the store's machine, or one of its own in a world that was written by hand. */
  readonly resourceMachine: Machine;
  /** Null unless the run is recorded. */
  readonly tracer: Tracer | null;
  violation: Violation | null = null;
  healed = false;

  constructor(options: RunOptions) {
    const { gateway } = options;
    const entry = gateway === undefined ? "library" : (options.entry ?? "drawn");
    const { given } = options;
    this.config = given?.config ?? drawConfig(options.seed, { ...options, entry });
    this.mostTurns = options.mostTurns ?? null;
    this.#mutations = options.mutations ?? {};
    this.#resources = new GuardedResources(this.#mutations.guard);
    const { config } = this;
    this.#effects = new EffectLog(config);
    const choices = new Choices(options.seed, options.allowed ?? "all");
    this.world = new World(choices, { record: options.record ?? "no" });
    const { world } = this;
    const rate = (fault: "loss" | "duplicate" | "slow", value: number): number =>
      config.faults.has(fault) ? value : 0;
    this.network = new Network(world, {
      delayMs: config.delayMs,
      lossRate: rate("loss", 0.08),
      duplicateRate: rate("duplicate", 0.1),
      slowRate: rate("slow", 0.1),
      slowMs: config.ttlMs * 3,
    });
    const random = choices.stream("clocks");
    const clockOf = (name: string, drawn: () => ClockStart): ClockStart => given?.clocks.get(name) ?? drawn();
    const storeMachine = new Machine(
      world,
      "store",
      clockOf("store", () => drawStoreClock(config, random)),
    );
    this.resourceMachine =
      given === undefined
        ? storeMachine
        : new Machine(world, RESOURCE, { monotonicMs: 0, wallMs: 0, rate: 1 });
    this.engine = new StoreEngine({
      machine: storeMachine,
      granularityMs: config.granularityMs,
      writes: this.#mutations.engineWrites ?? "conditional",
      onWrite: (write) => {
        world.note("store", "applied", () => describeWrite(write));
        this.#effects.onApplied(write, world.nowMs);
        if (write.after !== null && isGrant(write)) this.queues.onGrant(write.after);
        this.oracles.onWrite(write);
      },
    });
    this.trails = trailsOf({
      world,
      config,
      sometimes: (situation) => this.sometimes(situation),
      ...(this.#mutations.auditDisk === undefined ? {} : { auditDisk: this.#mutations.auditDisk }),
    });
    this.machines = Array.from({ length: config.nodes }, (_, index) => {
      const name = given?.names[index] ?? `n${index + 1}`;
      return new Machine(
        world,
        name,
        clockOf(name, () => drawClock(config, random)),
      );
    });
    this.keys = Array.from({ length: config.keys }, (_, index) => ({
      tenant: TENANT,
      name: `key${index + 1}`,
    }));
    this.log = {
      calls: [],
      generationOfToken: new Map(),
      tokenOfGrant: new Map(),
      limits: new Map(),
      onEnd: (call: CallRecord) => this.oracles.onCallEnd(call),
    };
    this.#context = {
      config,
      keys: this.keys,
      expectations: expectationsOf(config),
      nowMs: () => world.nowMs,
      storeNowMs: () => this.engine.nowMs(),
      recordOf: (key) => this.engine.recordOf(key),
      machineOf: (process) => this.#lives.all.find(({ name }) => name === process)?.machine ?? null,
      believers: this.#believers,
      calls: this.log.calls,
      lostEffects: () => this.#lostEffects,
      fail: (oracle, message) => this.fail(oracle, message),
      sometimes: (situation) => this.sometimes(situation),
    };
    const policy = createPolicy({ ...config.policy, ...this.#mutations.policy });
    this.quorum = quorum(this.#context, DANGEROUS);
    this.oracles = new OracleSet(this.#context, this.keys, policy, [
      this.quorum,
      slots(this.#context, POOL),
      situations(this.#context),
      audit(this.#context, () => this.#audited),
    ]);
    this.servers =
      gateway === undefined || config.entry === "library"
        ? null
        : new Servers({
            world,
            gateway,
            queues: this.queues,
            ...this.#backendOptions(),
          });
    this.tracer = world.timeline === null ? null : new Tracer(world, this.engine, this.keys);
    this.#lives = new Lives({
      world,
      config,
      machines: this.machines,
      open: (name, env, onStarted) => this.#openProcess(name, env, onStarted),
    });
    for (const machine of this.machines) this.start(machine);
  }

  /** All machines but the store's. */
  get allMachines(): readonly Machine[] {
    return [...this.machines, ...(this.servers?.machines ?? [])];
  }

  /** Who talks with whom. */
  get links(): readonly (readonly [Machine, Machine])[] {
    const store = this.engine.machine;
    if (this.servers === null) return this.machines.map((machine) => [machine, store]);
    const { machines } = this.servers;
    return [
      ...this.machines.flatMap((client) => machines.map((server) => [client, server] as const)),
      ...machines.map((server) => [server, store] as const),
    ];
  }

  /** What decides at the moment, in processes or in servers. */
  get backends(): readonly Backend[] {
    return this.servers === null
      ? this.processes.flatMap(({ backend }) => backend ?? [])
      : this.servers.lives.running.map(({ backend }) => backend);
  }

  get expectations(): Expectations {
    return this.#context.expectations;
  }

  get processes(): readonly Process[] {
    return this.#lives.running;
  }

  processOn(machine: Machine): Process | null {
    return this.#lives.on(machine);
  }

  /** How many processes and servers have not got as far as running. */
  get starting(): number {
    return this.#lives.starting + (this.servers?.lives.starting ?? 0);
  }

  start(machine: Machine): void {
    this.servers?.lives.start(machine);
    this.#lives.start(machine);
  }

  #openProcess(name: string, env: SimulatedEnv, onStarted: (process: Process) => void): void {
    const { world, config, log, servers } = this;
    const run = (decides: Backend | LeaseExecutor): void =>
      onStarted(new Process({ world, config, mutations: this.#mutations, log, name, env, decides }));
    if (servers === null) Backend.open({ ...this.#backendOptions(), name, env }, run);
    else run(this.#connect(servers, env, name));
  }

  #backendOptions(): Omit<BackendOptions, "name" | "env"> {
    return {
      config: this.config,
      mutations: this.#mutations,
      engine: this.engine,
      trails: this.trails,
      openStore: (env, name) => this.#openStore(env, name),
      onSurprise: (name, error) => this.surprise(name, error),
    };
  }

  #openStore(env: SimulatedEnv, process: string): SimulatedStore {
    const { world, network, engine, config } = this;
    return new SimulatedStore({
      world,
      network,
      engine,
      env,
      process,
      config,
      healed: () => this.healed,
      sometimes: (situation) => this.sometimes(situation),
      onSent: (write) => this.#effects.onSent(write),
    });
  }

  #connect(servers: Servers, env: SimulatedEnv, process: string): LeaseExecutor {
    const { world, network, config } = this;
    return simulatedSdk({
      wire: { world, network, noticeMs: config.ttlMs * 0.2 },
      env,
      config,
      mutations: this.#mutations,
      servers: servers.addresses,
      onRequest: (request, event) => this.oracles.ownership.asked(process, request, event),
    });
  }

  /** Whatever runs on the machine dies, and starts again after so long. */
  crashFor(machine: Machine, downMs: number): void {
    const { world } = this;
    this.servers?.lives.crash(machine);
    this.#lives.crash(machine);
    world.schedule(world.nowMs + downMs, null, "restart", () => this.start(machine));
  }

  crashStore(downMs: number): void {
    const { engine, world } = this;
    world.note("store", "crashes", () => `for ${Math.round(downMs)} ms`, downMs);
    engine.crash();
    engine.down = true;
    const { life } = engine;
    world.schedule(world.nowMs + downMs, null, "store is back", () => {
      if (engine.life === life) engine.down = false;
    });
  }

  /** A failover that lost the tail, or a backup from before. */
  loseWrites(count: number, downMs: number): void {
    this.world.note("store", "forgets", () => `its last ${count} writes`);
    this.engine.forgetLastWrites(count);
    this.crashStore(downMs);
  }

  jumpStoreClock(byMs: number): void {
    this.world.note("store", "clock jump", () => `${byMs} ms`);
    this.engine.jumpClock(byMs);
  }

  fail(oracle: string, message: string): void {
    if (this.violation !== null) return;
    this.violation = { oracle, message, atMs: this.world.nowMs };
    this.world.note("!", "VIOLATION", () => `${oracle}: ${message}`);
  }

  /** Something failed that a program must not expect to fail. */
  surprise(process: string, error: unknown): void {
    this.fail("no-surprise", `${process} met ${String(error)}`);
  }

  sometimes(situation: Situation): void {
    this.sometimesCounts.set(situation, (this.sometimesCounts.get(situation) ?? 0) + 1);
  }

  /** A process has a lease in its hands: from now on its belief counts. */
  hold(process: Process, lease: Lease): Holding {
    const plain: Holding = {
      lease,
      isHeld: () => lease.isHeld(),
      remaining: () => lease.remaining(),
      handOff: async (successor, withinMs) => void (await lease.handOff(successor, { withinMs })),
    };
    const holding = this.#mutations.holding?.(plain, process.clientExecutor) ?? plain;
    process.holdings.push(holding);
    // Before it reads. At once, and without an event: the draws of a seed are the same with and without it.
    this.#guardedStep("raise", lease);
    const believer = new LeaseBeliever(this.world, process, holding, this.log.limits);
    const id = keyId(lease.key);
    this.tracer?.onBelief(process, holding);
    this.#believers.set(id, [...(this.#believers.get(id) ?? []), believer]);
    let aborts = 0;
    lease.signal.addEventListener("abort", () => {
      aborts += 1;
      if (aborts > 1)
        this.fail("abort-once", `${process.name} had two signals that fence ${lease.fence} is over`);
      this.world.note(process.name, "stops", () => `fence ${lease.fence}: ${String(lease.lossReason)}`);
      onLoss(this.#context, believer, lease.signal.reason);
    });
    return holding;
  }

  /** As `hold`. Once the world has healed nobody keeps a lease. */
  use(process: Process, lease: Lease): void {
    this.hold(process, lease);
    if (this.healed) void lease.release();
  }

  /** The write leaves now and arrives when it arrives: the resource can only look at its fence. */
  guardedWrite(process: Process, lease: Lease): void {
    const { key, fence } = lease;
    this.network.send(process.machine, this.resourceMachine, "guarded write", () => {
      const accepted = this.#guardedStep("write", lease);
      this.world.note(RESOURCE, accepted ? "accepts" : "refuses", () => `fence ${fence}`);
      this.tracer?.onGuardedWrite({ key, fence, accepted }, process.name);
    });
  }

  #guardedStep(kind: "raise" | "write", { key, fence }: Lease): boolean {
    const accepted = this.#resources.accepts({ kind, key, fence });
    this.oracles.onResourceStep({ kind, key, fence, accepted });
    return accepted;
  }

  afterEvent(): "go on" | "stop" {
    for (const [id, believers] of this.#believers) {
      if (believers.some((each) => each.ended()))
        this.#believers.set(
          id,
          believers.filter((each) => !each.ended()),
        );
    }
    if (this.violation === null) this.oracles.afterEvent();
    this.tracer?.afterEvent();
    return this.violation === null ? "go on" : "stop";
  }

  /** Everything is over: what can only be judged then is judged. */
  async judgeEnd(): Promise<void> {
    this.#lostEffects = this.#effects.lost(this.log.calls);
    const ofProcesses = this.#lives.all.flatMap(({ backend, attempts }): ServiceLife[] =>
      backend === null || attempts === null ? [] : [{ backend, attempts }],
    );
    try {
      this.#audited = await auditedTrails([...ofProcesses, ...(this.servers?.lives.all ?? [])], this.trails);
    } catch (error) {
      this.fail("audit", `the trails cannot be read: ${String(error)}`);
      return;
    }
    this.oracles.atEnd();
  }
}
