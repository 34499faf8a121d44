/**
 * What the processes do: at drawn times each starts an operation of the kinds that its seed allows. An
 * operation may wait for long; others start meanwhile. Failures that a program must expect are expected
 * here; anything else is reported.
 */
import {
  keyId,
  type Lease,
  LeaseError,
  type LeaseKey,
  StoreError,
  type TryAcquireOptions,
} from "solehold/internal";
import { damagesRecords, type Operation } from "../config.ts";
import type { Holding } from "../mutations.ts";
import type { Machine } from "../world/machine.ts";
import { RandomStream } from "../world/random.ts";
import { askForDangerous } from "./approval-workload.ts";
import { type Process, TENANT } from "./process.ts";
import { askForSet } from "./set-workload.ts";
import type { SimulatedCluster } from "./simulated-cluster.ts";
import { askForSlot } from "./slot-workload.ts";
import { WaiterQueues } from "./waiters.ts";

/** What processes ask for besides, each from streams of its own. */
const BESIDE = { dangerous: askForDangerous, slot: askForSlot, set: askForSet };

class GaveUp extends Error {}

export class Workload {
  readonly #cluster: SimulatedCluster;
  readonly #counts = new Map<string, number>();
  readonly #underWay = new Map<Process, number>();
  readonly #queues: WaiterQueues;

  constructor(cluster: SimulatedCluster) {
    this.#cluster = cluster;
    this.#queues = new WaiterQueues(cluster.config.entry === "server" ? "world" : "process", () =>
      cluster.sometimes("a waiter at the head of the queue died or gave up"),
    );
  }

  /** Its process is gone, and with it all that it waited for. */
  died(process: Process): void {
    this.#queues.died(process.name);
  }

  begin(): void {
    const { machines, config } = this.#cluster;
    for (const machine of machines) this.#planNext(machine);
    const guarded = config.approvals === "yes" && (config.entry === "server" || config.route === "service");
    if (guarded) for (const machine of machines) this.#planBeside(machine, "dangerous");
    if (config.slots > 0) for (const machine of machines) this.#planBeside(machine, "slot");
    if (config.sets === "yes") for (const machine of machines) this.#planBeside(machine, "set");
  }

  /** Somebody waits for something. */
  get waiting(): boolean {
    return !this.#queues.empty;
  }

  /** Operations of living processes that have not ended. */
  get underWay(): number {
    let sum = 0;
    for (const [process, count] of this.#underWay) if (process.alive) sum += count;
    return sum;
  }

  #planNext(machine: Machine): void {
    const { world, config } = this.#cluster;
    const inMs = world.choices.stream(`operation times ${machine.name}`).exponential(config.operationEveryMs);
    if (world.nowMs + inMs > config.faultPhaseMs) return;
    world.schedule(world.nowMs + inMs, machine, "operation", () => {
      this.#start(machine);
      this.#planNext(machine);
    });
  }

  /** From streams of their own: the other operations of a seed are the same with and without these. */
  #planBeside(machine: Machine, kind: keyof typeof BESIDE): void {
    const { world, config } = this.#cluster;
    const random = world.choices.stream(`${kind} ${machine.name}`);
    const everyMs = config.ttlMs * (kind === "dangerous" ? 2 : 0.5);
    const atMs = world.nowMs + random.exponential(everyMs);
    if (atMs > config.faultPhaseMs) return;
    world.schedule(atMs, machine, kind, () => {
      const process = this.#cluster.processOn(machine);
      if (process !== null && world.choices.fires(`${kind} operation ${machine.name}`, 0.95))
        this.#track(process, BESIDE[kind](this.#cluster, process, random));
      this.#planBeside(machine, kind);
    });
  }

  #start(machine: Machine): void {
    const { world, config, keys } = this.#cluster;
    const count = (this.#counts.get(machine.name) ?? 0) + 1;
    this.#counts.set(machine.name, count);
    const random = new RandomStream(config.seed, `operation ${machine.name} ${count}`);
    const operation = random.pick(config.operations);
    const key = random.pick(keys);
    if (!world.choices.fires(`operation ${machine.name}`, 0.95)) return;
    const process = this.#cluster.processOn(machine);
    if (process === null) return;
    this.#track(process, this.#perform(operation, process, key, random));
  }

  #track(process: Process, operation: Promise<void>): void {
    const { config } = this.#cluster;
    const ended = (): void => void this.#underWay.set(process, (this.#underWay.get(process) ?? 0) - 1);
    this.#underWay.set(process, (this.#underWay.get(process) ?? 0) + 1);
    operation.then(ended, (error: unknown) => {
      ended();
      const damaged = damagesRecords(config) && String(error).includes("is damaged");
      const expected =
        error instanceof LeaseError || error instanceof StoreError || error instanceof GaveUp || damaged;
      if (!expected) this.#cluster.surprise(process.name, error);
    });
  }

  async #perform(operation: Operation, process: Process, key: LeaseKey, random: RandomStream): Promise<void> {
    const { leases, clientExecutor } = process;
    const own = process.holdings.filter(({ lease }) => !lease.signal.aborted);
    const holding = own.length === 0 ? null : random.pick(own);
    switch (operation) {
      case "try":
        return await this.#try(process, key, random);
      case "wait":
        return await this.#wait(process, key, random);
      case "retry-key":
        return await this.#tryWithKey(process, key, random);
      case "renew":
        if (holding !== null) await holding.lease.renew();
        return;
      case "release":
        await holding?.lease.release();
        return;
      case "handoff":
        if (holding?.isHeld() === true) await this.#handOff(process, random, holding);
        return;
      case "transfer":
        if (holding?.isHeld() === true) this.#transfer(process, holding.lease, random);
        return;
      case "revoke":
        return await leases.revoke(key.name);
      case "break":
        return await leases.break(key.name, {
          period: Math.floor(this.#cluster.config.ttlMs * random.fraction()),
        });
      case "use":
        if (holding !== null) await this.#use(process, holding.lease);
        return;
      case "inspect":
        await clientExecutor.read(key);
        return;
      case "write":
        return this.#write(process, holding, random);
      case "collect":
        await (process.backend ?? this.#cluster.backends[0])?.executor.collect(TENANT);
        return;
    }
  }

  /** Most programs look before they write; some are zombies that do not, and only the guard stops them. */
  #write(process: Process, holding: Holding | null, random: RandomStream): void {
    const zombie = random.chance(0.4) ? process.holdings.at(-1) : undefined;
    if (zombie !== undefined) this.#cluster.guardedWrite(process, zombie.lease);
    else if (holding?.isHeld() === true) this.#cluster.guardedWrite(process, holding.lease);
  }

  async #try(process: Process, key: LeaseKey, random: RandomStream): Promise<void> {
    const attempt = await process.leases.tryAcquire(key.name, this.#acquireOptions(random));
    if (attempt.ok) this.#cluster.use(process, attempt.lease);
  }

  async #wait(process: Process, key: LeaseKey, random: RandomStream): Promise<void> {
    const { world, config } = this.#cluster;
    const options = {
      ...this.#acquireOptions(random),
      wait: Math.ceil(config.ttlMs * random.between(0.1, 6)),
    };
    const giveUp = new AbortController();
    if (random.chance(0.2)) {
      const atMs = world.nowMs + random.fraction() * config.ttlMs * 2;
      world.schedule(atMs, process.machine, "gives up", () => {
        if (process.alive) giveUp.abort(new GaveUp("the caller gave up"));
      });
    }
    const startedMs = world.nowMs;
    const ticket = this.#queues.join(process.name, key);
    try {
      const lease = await process.leases.acquire(key.name, { ...options, signal: giveUp.signal });
      if (world.nowMs > startedMs + config.ttlMs / 4) {
        this.#cluster.sometimes("a waiter was granted after waiting");
        if (config.entry === "server")
          this.#cluster.sometimes("a waiter in a server's queue was granted after waiting");
      }
      this.#queues.served(ticket);
      this.#cluster.use(process, lease);
    } catch (error) {
      this.#queues.gaveUp(ticket);
      throw error;
    }
  }

  /** Few keys and few arguments, so that they meet again: alike, and not alike. */
  async #tryWithKey(process: Process, key: LeaseKey, random: RandomStream): Promise<void> {
    const { config } = this.#cluster;
    const idempotencyKey = `request-${process.machine.name}-${random.whole(1, 3)}`;
    const ttl = random.chance(0.7) ? config.ttlMs : config.ttlMs * 2;
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const { leases } = process;
      const got = await leases
        .tryAcquire(key.name, { ttl, idempotencyKey, autoRenew: false })
        .catch((error: unknown) => {
          if (error instanceof LeaseError && error.retryable && attempt === 0) return null;
          throw error;
        });
      if (got === null) continue;
      if (got.ok) {
        // The same grant may already be in this process's hands: a second handle is not a second holder.
        const twin = process.holdings.some(
          ({ lease }) => lease.fence === got.lease.fence && keyId(lease.key) === keyId(key),
        );
        if (twin) got.lease.transfer();
        else this.#cluster.use(process, got.lease);
      }
      return;
    }
  }

  #acquireOptions(random: RandomStream): TryAcquireOptions {
    const { ttlMs, storeClock } = this.#cluster.config;
    const part = (chance: number): number =>
      random.chance(chance) ? Math.ceil(ttlMs * random.between(0.1, 1.5)) : 0;
    return {
      ttl: Math.ceil(ttlMs * random.pick([0.7, 1, 1, 2])),
      autoRenew: random.chance(0.75),
      lockDelay: part(0.1),
      // Refused by a store without a clock.
      ...(storeClock === "none" ? {} : { holdAtLeast: part(0.15) }),
    };
  }

  async #handOff(
    process: Process,
    random: RandomStream,
    holding: { handOff(successor: string, withinMs: number): Promise<void> },
  ): Promise<void> {
    const { machines, config } = this.#cluster;
    const successor = this.#cluster.processOn(random.pick(machines)) ?? process;
    await holding.handOff(successor.leases.holder, Math.ceil(config.ttlMs * random.between(0.2, 2)));
  }

  #transfer(process: Process, lease: Lease, random: RandomStream): void {
    const cluster = this.#cluster;
    const { world, network, oracles } = cluster;
    const target = random.pick(cluster.machines);
    const secret = lease.transfer();
    world.note(process.name, "transfers", () => `fence ${lease.fence} to ${target.name}`);
    let delivered = false;
    network.send(process.machine, target, "transfer", () => {
      const heir = cluster.processOn(target);
      // A secret is for one process: its sender sees to it that it is used once.
      if (heir === null || delivered) return;
      delivered = true;
      oracles.ownership.adopted(`${keyId(lease.key)}@${lease.fence}`, heir.name);
      heir.leases.adopt(secret).then(
        (adopted) => {
          cluster.sometimes("a lease was adopted");
          cluster.use(heir, adopted);
        },
        (error: unknown) => {
          if (!(error instanceof LeaseError)) cluster.surprise(heir.name, error);
        },
      );
    });
  }

  async #use(process: Process, lease: Lease): Promise<void> {
    const { key, holder, purpose } = lease;
    const token = this.#cluster.log.tokenOfGrant.get(`${keyId(key)}@${lease.fence}`);
    if (token === undefined) return;
    if (lease.resumeFromLedgerRequired)
      await process.clientExecutor.execute({ op: "resume", key, holder, token });
    await process.clientExecutor.execute({ op: "use", key, holder, token, purpose });
  }
}
