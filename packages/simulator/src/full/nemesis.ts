/**
 * What befalls the machines: pauses, suspends, wall clocks that are set, cut and clogged links, crashes with
 * a restart, a full disk, a rotten record, a store that pauses, jumps or forgets. Each mishap is drawn by
 * name, so that a shrinker can take it away. None lasts longer than three ttls, so that the retention (far
 * longer than any request lives) keeps its meaning.
 */
import type { LeaseKey } from "solehold/internal";
import type { Fault, SimConfig } from "../config.ts";
import type { StoreEngine } from "../store/engine.ts";
import type { Machine } from "../world/machine.ts";
import type { Network } from "../world/network.ts";
import { RandomStream } from "../world/random.ts";
import type { World } from "../world/world.ts";

export interface NemesisOptions {
  readonly world: World;
  readonly network: Network;
  readonly engine: StoreEngine;
  readonly machines: readonly Machine[];
  /** Who talks with whom: what can be cut and clogged. */
  readonly links: readonly (readonly [Machine, Machine])[];
  readonly keys: readonly LeaseKey[];
  readonly config: SimConfig;
  readonly crash: (machine: Machine) => void;
  readonly restart: (machine: Machine) => void;
}

type Mishap = (random: RandomStream, lastsMs: number) => void;

const LONGEST_TTLS = 3;
const HOUR_MS = 3_600_000;

export class Nemesis {
  readonly #options: NemesisOptions;
  readonly #mishaps: readonly (readonly [Fault, Mishap])[];
  #count = 0;

  constructor(options: NemesisOptions) {
    this.#options = options;
    const all: Partial<Record<Fault, Mishap>> = {
      pause: (random, lastsMs) => random.pick(options.machines).pause(lastsMs),
      suspend: (random, lastsMs) => random.pick(options.machines).suspend(lastsMs),
      "wall-step": (random) => this.#stepWall(random),
      partition: (random, lastsMs) => this.#partition(random, lastsMs),
      clog: (random, lastsMs) => this.#clog(random, lastsMs),
      crash: (random, lastsMs) => this.#crash(random, lastsMs),
      "store-pause": (_random, lastsMs) => options.engine.machine.pause(lastsMs),
      "disk-full": (_random, lastsMs) => this.#fillDisk(lastsMs),
      corrupt: (random) => this.#corrupt(random),
      "misdirected-write": (random) => this.#misdirect(random),
      "clock-jump": (random) => this.#jump(random),
      "lost-writes": (random) => this.#forget(random),
      "store-crash": (_random, lastsMs) => this.#crashStore(lastsMs / 6),
    };
    this.#mishaps = Object.entries(all).flatMap(([fault, mishap]) =>
      options.config.faults.has(fault as Fault) && mishap !== undefined ? [[fault as Fault, mishap]] : [],
    );
  }

  /** Plans the first mishap; each plans the next, until the fault phase is over. */
  begin(): void {
    if (this.#mishaps.length > 0) this.#planNext();
  }

  #planNext(): void {
    const { world, config } = this.#options;
    const inMs = world.choices.stream("mishap times").exponential(config.faultEveryMs);
    const atMs = world.nowMs + inMs;
    if (atMs > config.faultPhaseMs) return;
    world.schedule(atMs, null, "mishap", () => {
      this.#strike();
      this.#planNext();
    });
  }

  #strike(): void {
    const { world, config } = this.#options;
    this.#count += 1;
    const random = new RandomStream(config.seed, `mishap ${this.#count}`);
    const [fault, mishap] = random.pick(this.#mishaps);
    const lastsMs = random.between(0.05, LONGEST_TTLS) * config.ttlMs;
    if (world.choices.fires(`mishap ${fault}`, 0.9)) mishap(random, lastsMs);
  }

  /** A suspend and a step back together would hide time from both clocks: more than any bound promises. */
  #stepWall(random: RandomStream): void {
    const { machines, config } = this.#options;
    const forwardOnly = config.clocks === "bounded" && config.faults.has("suspend");
    const byMs = random.pick([config.ttlMs / 3, config.ttlMs * 2, HOUR_MS]) * random.fraction();
    random.pick(machines).stepWall(forwardOnly || random.chance(0.5) ? byMs : -byMs);
  }

  #partition(random: RandomStream, lastsMs: number): void {
    const { network, links, world } = this.#options;
    const cutOff = links.filter(() => random.chance(0.5));
    const direction = random.pick(["both", "requests", "replies"] as const);
    for (const [near, far] of cutOff) {
      if (direction !== "replies") network.cut(near, far);
      if (direction !== "requests") network.cut(far, near);
    }
    world.schedule(world.nowMs + lastsMs, null, "restore", () => {
      for (const [near, far] of cutOff) {
        network.restore(near, far);
        network.restore(far, near);
      }
    });
  }

  /** One link after the other is clogged, each for a time of its own: they open in another order. */
  #clog(random: RandomStream, lastsMs: number): void {
    const { network, links } = this.#options;
    for (const [near, far] of links) {
      if (random.chance(0.5)) network.clog(near, far, lastsMs * random.fraction());
      if (random.chance(0.5)) network.clog(far, near, lastsMs * random.fraction());
    }
  }

  #crash(random: RandomStream, lastsMs: number): void {
    const { crash, restart, world, machines } = this.#options;
    const machine = random.pick(machines);
    crash(machine);
    world.schedule(world.nowMs + lastsMs / 2, null, "restart", () => restart(machine));
  }

  #fillDisk(lastsMs: number): void {
    const { engine, world } = this.#options;
    world.note("store", "disk full", () => `for ${Math.round(lastsMs)} ms`, lastsMs);
    engine.full = true;
    world.schedule(world.nowMs + lastsMs, null, "disk freed", () => {
      engine.full = false;
    });
  }

  #corrupt(random: RandomStream): void {
    const { engine, keys, world } = this.#options;
    if (engine.corrupt(random.pick(keys))) world.note("store", "record damaged");
  }

  #misdirect(random: RandomStream): void {
    const { engine, keys, world } = this.#options;
    const victim = random.pick(keys);
    if (engine.misdirect(victim)) world.note("store", "misdirected write", () => `landed on ${victim.name}`);
  }

  #jump(random: RandomStream): void {
    const { engine, config, world } = this.#options;
    const byMs = Math.round(random.between(-3, 3) * config.ttlMs);
    world.note("store", "clock jump", () => `${byMs} ms`);
    engine.jumpClock(byMs);
  }

  /**
   * A failover that lost the tail, or a backup from before. Whatever was under way is lost with the connections, and the
   * new server is there later than any answer took: a fence is taken from a time that is at most that much ahead.
   */
  #forget(random: RandomStream): void {
    const { engine, world, config } = this.#options;
    const count = random.pick([1, 2, 4, Number.MAX_SAFE_INTEGER]);
    world.note("store", "forgets", () => `its last ${count} writes`);
    engine.forgetLastWrites(count);
    const widestMs = config.callTimeoutMs + config.granularityMs + 2 * config.skewMs + config.ttlMs / 10 + 60;
    this.#crashStore(widestMs * (1 + config.driftRatio) ** 2);
  }

  #crashStore(downMs: number): void {
    const { engine, world } = this.#options;
    world.note("store", "crashes", () => `for ${Math.round(downMs)} ms`, downMs);
    engine.crash();
    engine.down = true;
    const { life } = engine;
    world.schedule(world.nowMs + downMs, null, "store is back", () => {
      if (engine.life === life) engine.down = false;
    });
  }
}
