/** Runs a script: the shipped code, or with a planted bug, in a world that was written by hand. */
import { keyId, type Lease, LeaseError, StoreError } from "solehold/internal";
import type { Process } from "../full/process.ts";
import { recovery } from "../full/run.ts";
import { SimulatedCluster } from "../full/simulated-cluster.ts";
import type { Holding, Mutations } from "../mutations.ts";
import type { Trace } from "../trace/trace.ts";
import { traceOf } from "../trace/trace-of.ts";
import type { Machine } from "../world/machine.ts";
import { withoutRealWorld } from "../world/trap.ts";
import {
  givenWorld,
  SCRIPT_KEY,
  type Script,
  type ScriptFault,
  type ScriptStep,
  scriptProblem,
} from "./script.ts";

export interface ScriptRun {
  readonly title: string;
  /** A mistake to plant; none for the shipped code. */
  readonly mutations?: Mutations;
}

export async function runScript(script: Script, { title, mutations = {} }: ScriptRun): Promise<Trace> {
  const problem = scriptProblem(script);
  if (problem !== null) throw new RangeError(problem);
  return await withoutRealWorld(async () => {
    const cluster = new SimulatedCluster({ seed: 1, record: "yes", mutations, given: givenWorld(script) });
    const scripted = new ScriptedCluster(cluster, script);
    scripted.plan();
    await cluster.world.run(script.endMs, () => {
      cluster.afterEvent();
      return "go on";
    });
    const shown = traceOf(cluster, title, script.endMs);
    if (cluster.violation !== null) return shown;
    // Some promises are about the end: everybody is served again, and all answers fit one order.
    await recovery(cluster, scripted);
    if (cluster.violation === null) await cluster.judgeEnd();
    return { ...shown, violation: cluster.violation };
  });
}

class ScriptedCluster {
  readonly #cluster: SimulatedCluster;
  readonly #script: Script;
  underWay = 0;

  constructor(cluster: SimulatedCluster, script: Script) {
    this.#cluster = cluster;
    this.#script = script;
  }

  plan(): void {
    const { world } = this.#cluster;
    for (const step of this.#script.steps)
      world.schedule(step.atMs, this.#machine(step.node), step.do, () => this.#step(step));
    for (const fault of this.#script.faults)
      world.schedule(fault.atMs, null, fault.kind, () => this.#strike(fault));
  }

  #machine(name: string): Machine {
    const { machines, engine } = this.#cluster;
    const machine = name === "store" ? engine.machine : machines.find((each) => each.name === name);
    if (machine === undefined) throw new RangeError(`no machine is called '${name}'`);
    return machine;
  }

  #step(step: ScriptStep): void {
    const process = this.#cluster.processOn(this.#machine(step.node));
    if (process === null) return;
    this.underWay += 1;
    const ended = (): void => {
      this.underWay -= 1;
    };
    this.#perform(step, process).then(ended, (error: unknown) => {
      ended();
      if (error instanceof LeaseError || error instanceof StoreError)
        this.#cluster.world.note(process.name, "fails", () => `${step.do}: ${error.message}`);
      else this.#cluster.surprise(process.name, error);
    });
  }

  async #perform(step: ScriptStep, process: Process): Promise<void> {
    const holding = process.holdings.findLast(({ lease }) => !lease.signal.aborted);
    switch (step.do) {
      case "acquire":
        return await this.#acquire(step, process);
      case "release":
        await holding?.lease.release();
        return;
      case "renew":
        await holding?.lease.renew();
        return;
      case "write":
        this.#write(process, process.holdings.at(-1));
        return;
      case "revoke":
        return await process.leases.revoke(SCRIPT_KEY);
      case "hand-off":
        if (holding?.isHeld() === true) await holding.handOff(step.to ?? "", this.#script.ttlMs);
        return;
    }
  }

  async #acquire(step: ScriptStep, process: Process): Promise<void> {
    const { ttlMs, endMs } = this.#script;
    const lease = await process.leases.acquire(SCRIPT_KEY, {
      ttl: ttlMs,
      wait: Math.ceil(step.waitMs ?? endMs),
      autoRenew: step.renew !== "no",
    });
    const holding = this.#cluster.hold(process, lease);
    const { releaseAfterMs, writeEveryMs } = step;
    if (releaseAfterMs !== undefined) process.env.timer(releaseAfterMs, () => void lease.release());
    if (writeEveryMs !== undefined) this.#work(process, holding, writeEveryMs);
  }

  /** A program that looks whether it holds the lease before each write. */
  #work(process: Process, holding: Holding, everyMs: number): void {
    process.env.timer(everyMs, () => {
      if (!holding.isHeld() || this.#cluster.healed) return;
      this.#write(process, holding);
      this.#work(process, holding, everyMs);
    });
  }

  #write(process: Process, holding: Holding | undefined): void {
    if (holding === undefined) return;
    const { lease }: { readonly lease: Lease } = holding;
    this.#cluster.world.note(process.name, "writes", () => `${keyId(lease.key)} with fence ${lease.fence}`);
    this.#cluster.guardedWrite(process, lease);
  }

  #strike({ kind, on, forMs, way = "both", amount = 0 }: ScriptFault): void {
    const { world, network, engine, resourceMachine } = this.#cluster;
    const machine = this.#machine(on);
    const store = engine.machine;
    const legs: readonly (readonly [Machine, Machine])[] = {
      requests: [[machine, store] as const],
      replies: [[store, machine] as const],
      both: [[machine, store] as const, [store, machine] as const],
      writes: [[machine, resourceMachine] as const],
    }[way];
    switch (kind) {
      case "pause":
        machine.pause(forMs);
        return;
      case "suspend":
        machine.suspend(forMs);
        return;
      case "slow":
        for (const [from, to] of legs) network.clog(from, to, forMs);
        return;
      case "cut":
        for (const [from, to] of legs) network.cut(from, to);
        world.schedule(world.nowMs + forMs, null, "restore", () => {
          for (const [from, to] of legs) network.restore(from, to);
        });
        return;
      case "clock-rate":
        this.#drift(machine, amount, forMs);
        return;
      case "wall-step":
        machine.stepWall(amount);
        return;
      case "crash":
        if (on === "store") this.#cluster.crashStore(forMs);
        else this.#cluster.crashFor(machine, forMs);
        return;
      case "clock-jump":
        this.#cluster.jumpStoreClock(amount);
        return;
      case "lost-writes":
        this.#cluster.loseWrites(amount, forMs);
        return;
    }
  }

  #drift(machine: Machine, rate: number, forMs: number): void {
    const { world } = this.#cluster;
    const usual = machine.clock.rate;
    world.note(machine.name, "clock rate", () => `${rate} for ${Math.round(forMs)} ms`, forMs);
    machine.setRate(rate);
    world.schedule(world.nowMs + forMs, null, "clock rate again", () => machine.setRate(usual));
  }
}
