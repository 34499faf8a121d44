/**
 * A holder of the core tier: the shipped `decide`, `StoreClock` and validity functions, with messages in
 * between and nothing else. It reads, decides, writes on condition, and after silence reads again and looks
 * for its own nonce. What it believes is what the shipped functions say about its own clocks.
 */
import {
  type ClockReading,
  type DriftBound,
  type decide,
  exactly,
  isStillValid,
  type LeaseCommand,
  type LeaseKey,
  type LeasePolicy,
  type LeaseRecord,
  laterValidity,
  recordFence,
  StoreClock,
  type StoreInstant,
  type TimeSample,
  type Validity,
  validityFrom,
} from "solehold/internal";
import type { SimConfig } from "../config.ts";
import type { Believer, Situation } from "../oracles/oracle.ts";
import type { StoreEngine } from "../store/engine.ts";
import type { Machine } from "../world/machine.ts";
import type { Network } from "../world/network.ts";
import type { RandomStream } from "../world/random.ts";
import type { World } from "../world/world.ts";

export interface HolderOptions {
  readonly world: World;
  readonly network: Network;
  readonly engine: StoreEngine;
  readonly machine: Machine;
  readonly config: SimConfig;
  readonly policy: LeasePolicy;
  readonly drift: DriftBound;
  readonly believedDrift: DriftBound;
  readonly decide: typeof decide;
  readonly nonce: () => string;
  readonly onBelief: (believer: Believer) => void;
  readonly sometimes: (situation: Situation) => void;
}

export type CoreOperation = "acquire" | "renew" | "release" | "handoff" | "revoke" | "break";

/** A lease that this holder was given. */
export class CoreLease implements Believer {
  readonly who: string;
  readonly key: LeaseKey;
  readonly fence: bigint;
  readonly tokenHash: string;
  readonly #machine: Machine;
  #validity: Validity;
  #stopped = false;

  constructor(machine: Machine, record: LeaseRecord, validity: Validity) {
    this.#machine = machine;
    this.who = machine.name;
    this.key = record.key;
    this.fence = recordFence(record);
    this.tokenHash = record.tokenHash;
    this.#validity = validity;
  }

  prolong(validity: Validity): void {
    this.#validity = laterValidity(this.#validity, validity);
  }

  stop(): void {
    this.#stopped = true;
  }

  ended(): boolean {
    return this.#stopped;
  }

  believes(): boolean {
    return !this.#stopped && isStillValid(this.#validity, readingOf(this.#machine));
  }

  frozen(): boolean {
    return this.#machine.frozen;
  }

  /** Nobody tells anybody anything here; see the full tier. */
  overdue(): boolean {
    return false;
  }
}

export class CoreHolder {
  readonly machine: Machine;
  readonly #options: HolderOptions;
  readonly #clock: StoreClock;
  readonly #leases: CoreLease[] = [];

  constructor(options: HolderOptions) {
    this.#options = options;
    this.machine = options.machine;
    this.#clock = new StoreClock({
      drift: options.drift,
      granularityMs: options.config.granularityMs,
      skewMs: options.config.skewMs,
      observeForMs: options.policy.maxTtlMs,
    });
  }

  /** The leases that it believes in now. */
  held(): readonly CoreLease[] {
    return this.#leases.filter((lease) => lease.believes());
  }

  start(operation: CoreOperation, key: LeaseKey, random: RandomStream): void {
    const lease = this.#leases.findLast((each) => !each.ended() && each.key.name === key.name);
    const command = this.#command(operation, key, lease, random);
    if (command === null) return;
    // A holder stops before it says so, whatever becomes of the message.
    if (operation === "release" || operation === "handoff") lease?.stop();
    this.#read(command, null);
  }

  #read(
    command: LeaseCommand,
    unknown: { readonly nonce: string; readonly reading: ClockReading; readonly validForMs: number } | null,
  ): void {
    const { network, engine, config } = this.#options;
    const sent = readingOf(this.machine);
    const { life } = engine;
    // A message may be doubled on its way; an answer is taken once.
    let answered = false;
    network.send(this.machine, engine.machine, "read", () => {
      if (!isServed(engine, life)) return;
      const [stored] = engine.read([command.key]);
      const told = toldBy(engine);
      network.send(engine.machine, this.machine, "read reply", () => {
        const received = readingOf(this.machine);
        if (answered || received.monotonicMs - sent.monotonicMs > config.callTimeoutMs) return;
        answered = true;
        this.#clock.learn({ sent, received, ...told });
        if (stored === undefined || stored.kind === "corrupt") return;
        const record = stored.kind === "found" ? stored.record : null;
        if (unknown !== null && record?.nonce === unknown.nonce) {
          this.#options.sometimes("an unknown outcome was settled as applied");
          this.#applied(command, record, unknown.reading, unknown.validForMs);
        } else this.#decide(command, record, stored.kind === "found" ? stored.version : null);
      });
    });
  }

  #decide(command: LeaseCommand, record: LeaseRecord | null, version: string | null): void {
    const { policy, decide } = this.#options;
    const reading = readingOf(this.machine);
    const now = this.#instant(reading);
    if (now === null) return;
    const { decision, effect } = decide(command, { record, floor: 0n }, now, policy);
    if (decision.kind !== "granted" || effect.kind === "none") return;
    const next = effect.kind === "write" ? effect.record : null;
    const validForMs = Math.max(0, decision.lease.expiresAtMs - now.stampMs);
    this.#write(command, version, next, reading, validForMs);
  }

  #write(
    command: LeaseCommand,
    expected: string | null,
    next: LeaseRecord | null,
    reading: ClockReading,
    validForMs: number,
  ): void {
    const { network, engine, world, config } = this.#options;
    let answered = false;
    const sent = readingOf(this.machine);
    const { life } = engine;
    network.send(this.machine, engine.machine, "write", () => {
      if (!isServed(engine, life)) return;
      const result = engine.apply({ key: command.key, expected, next }, this.machine.name);
      if (result.kind === "conflict" && answered)
        this.#options.sometimes("a late request met a newer version");
      const told = toldBy(engine);
      network.send(engine.machine, this.machine, "write reply", () => {
        if (answered) return;
        answered = true;
        this.#clock.learn({ sent, received: readingOf(this.machine), ...told });
        if (result.kind === "applied" && next !== null) this.#applied(command, next, reading, validForMs);
      });
    });
    world.schedule(world.nowMs + config.callTimeoutMs, this.machine, "no answer", () => {
      if (answered || next === null) return;
      answered = true;
      this.#read({ ...command, nonce: this.#options.nonce() }, { nonce: next.nonce, reading, validForMs });
    });
  }

  #applied(command: LeaseCommand, record: LeaseRecord, reading: ClockReading, validForMs: number): void {
    if (command.op !== "acquire" && command.op !== "renew") return;
    if (record.state !== "held") return;
    const validity = validityFrom(reading, validForMs, this.#options.believedDrift);
    const fence = recordFence(record);
    const known = this.#leases.find((lease) => lease.fence === fence && lease.key.name === record.key.name);
    if (known !== undefined) {
      if (!known.ended()) known.prolong(validity);
      return;
    }
    const lease = new CoreLease(this.machine, record, validity);
    this.#leases.push(lease);
    this.#options.onBelief(lease);
  }

  #instant(reading: ClockReading): StoreInstant | null {
    const { config, engine } = this.#options;
    if (config.storeClock === "exact") return exactly(engine.nowMs());
    const interval = this.#clock.interval(reading);
    // After a jump only observation counts; this tier leaves that to the full one.
    if (interval === null || this.#clock.mustObserve(reading.monotonicMs)) return null;
    return { ...interval, stampMs: interval.latestMs };
  }

  #command(
    operation: CoreOperation,
    key: LeaseKey,
    lease: CoreLease | undefined,
    random: RandomStream,
  ): LeaseCommand | null {
    const { config, nonce: newNonce } = this.#options;
    const holder = this.machine.name;
    const nonce = newNonce();
    const ttlMs = Math.ceil(config.ttlMs * random.pick([0.7, 1, 2]));
    if (operation === "revoke") return { op: "revoke", key, nonce };
    if (operation === "break")
      return { op: "break", key, nonce, periodMs: Math.floor(config.ttlMs * random.fraction()) };
    if (operation === "acquire") {
      const tokenHash = `${nonce}:`.padEnd(43, "0");
      const closedMs = Math.ceil(config.ttlMs * random.between(0.1, 1.5));
      const [holdAtLeastMs, lockDelayMs] = random.pick([
        [0, 0],
        [0, 0],
        [0, 0],
        [closedMs, 0],
        [0, closedMs],
      ]);
      const periods = { holdAtLeastMs: holdAtLeastMs ?? 0, lockDelayMs: lockDelayMs ?? 0 };
      return { op: "acquire", key, nonce, holder, purpose: "Operation", ttlMs, tokenHash, ...periods };
    }
    if (lease === undefined || !lease.believes()) return null;
    const { tokenHash } = lease;
    if (operation === "renew") return { op: "renew", key, nonce, holder, tokenHash, ttlMs };
    if (operation === "release") return { op: "release", key, nonce, holder, tokenHash };
    const successor = `n${random.whole(1, config.nodes)}`;
    return { op: "handoff", key, nonce, holder, tokenHash, successor, withinMs: Math.ceil(config.ttlMs / 2) };
  }
}

/** A connection ends with the store's life, and with it what was under way. */
function isServed(engine: StoreEngine, life: number): boolean {
  return engine.life === life && !engine.down;
}

function toldBy(engine: StoreEngine): Pick<TimeSample, "storeTimeMs" | "serverChangedAtMs"> {
  return { storeTimeMs: engine.abortedMs(), serverChangedAtMs: engine.takeovers.at(-1)?.atMs ?? null };
}

function readingOf({ clock }: Machine): ClockReading {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
}
