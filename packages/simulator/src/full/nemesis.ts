/**
 * What befalls the machines: pauses, suspends, wall clocks that are set, cut and clogged links, crashes with
 * a restart, a full disk, a rotten record, a store that pauses, jumps or forgets. Each mishap is drawn by
 * name, so that a shrinker can take it away. None lasts longer than three ttls, so that the retention (far
 * longer than any request lives) keeps its meaning.
 */
import type { Fault } from "../config.ts";
import type { Machine } from "../world/machine.ts";
import { RandomStream } from "../world/random.ts";
import type { SimulatedCluster } from "./simulated-cluster.ts";

type Mishap = (random: RandomStream, lastsMs: number) => void;

const LONGEST_TTLS = 3;
const HOUR_MS = 3_600_000;

export class Nemesis {
  readonly #cluster: SimulatedCluster;
  readonly #onCrash: (machine: Machine) => void;
  readonly #machines: readonly Machine[];
  readonly #mishaps: readonly (readonly [Fault, Mishap])[];
  #count = 0;

  /** `onCrash` is called before a machine crashes. */
  constructor(cluster: SimulatedCluster, onCrash: (machine: Machine) => void) {
    this.#cluster = cluster;
    this.#onCrash = onCrash;
    this.#machines = cluster.allMachines;
    const all: Partial<Record<Fault, Mishap>> = {
      pause: (random, lastsMs) => random.pick(this.#machines).pause(lastsMs),
      suspend: (random, lastsMs) => random.pick(this.#machines).suspend(lastsMs),
      "wall-step": (random) => this.#stepWall(random),
      partition: (random, lastsMs) => this.#partition(random, lastsMs),
      clog: (random, lastsMs) => this.#clog(random, lastsMs),
      crash: (random, lastsMs) => this.#crash(random, lastsMs),
      "store-pause": (_random, lastsMs) => cluster.engine.machine.pause(lastsMs),
      "disk-full": (_random, lastsMs) => this.#fillDisk(lastsMs),
      corrupt: (random) => this.#corrupt(random),
      "misdirected-write": (random) => this.#misdirect(random),
      "clock-jump": (random) => this.#jump(random),
      "lost-writes": (random) => this.#forget(random),
      "store-crash": (_random, lastsMs) => cluster.crashStore(lastsMs / 6),
    };
    this.#mishaps = Object.entries(all).flatMap(([fault, mishap]) =>
      cluster.config.faults.has(fault as Fault) && mishap !== undefined ? [[fault as Fault, mishap]] : [],
    );
  }

  /** Plans the first mishap; each plans the next, until the fault phase is over. */
  begin(): void {
    if (this.#mishaps.length > 0) this.#planNext();
  }

  #planNext(): void {
    const { world, config } = this.#cluster;
    const inMs = world.choices.stream("mishap times").exponential(config.faultEveryMs);
    const atMs = world.nowMs + inMs;
    if (atMs > config.faultPhaseMs) return;
    world.schedule(atMs, null, "mishap", () => {
      this.#strike();
      this.#planNext();
    });
  }

  #strike(): void {
    const { world, config } = this.#cluster;
    this.#count += 1;
    const random = new RandomStream(config.seed, `mishap ${this.#count}`);
    const [fault, mishap] = random.pick(this.#mishaps);
    const lastsMs = random.between(0.05, LONGEST_TTLS) * config.ttlMs;
    if (world.choices.fires(`mishap ${fault}`, 0.9)) mishap(random, lastsMs);
  }

  /** A suspend and a step back together would hide time from both clocks: more than any bound promises. */
  #stepWall(random: RandomStream): void {
    const { config } = this.#cluster;
    const forwardOnly = config.clocks === "bounded" && config.faults.has("suspend");
    const byMs = random.pick([config.ttlMs / 3, config.ttlMs * 2, HOUR_MS]) * random.fraction();
    random.pick(this.#machines).stepWall(forwardOnly || random.chance(0.5) ? byMs : -byMs);
  }

  #partition(random: RandomStream, lastsMs: number): void {
    const { network, links, world } = this.#cluster;
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
    const { network, links } = this.#cluster;
    for (const [near, far] of links) {
      if (random.chance(0.5)) network.clog(near, far, lastsMs * random.fraction());
      if (random.chance(0.5)) network.clog(far, near, lastsMs * random.fraction());
    }
  }

  #crash(random: RandomStream, lastsMs: number): void {
    const machine = random.pick(this.#machines);
    this.#onCrash(machine);
    this.#cluster.crashFor(machine, lastsMs / 2);
  }

  #fillDisk(lastsMs: number): void {
    const { engine, world } = this.#cluster;
    world.note("store", "disk full", () => `for ${Math.round(lastsMs)} ms`, lastsMs);
    engine.full = true;
    world.schedule(world.nowMs + lastsMs, null, "disk freed", () => {
      engine.full = false;
    });
  }

  #corrupt(random: RandomStream): void {
    const { engine, keys, world } = this.#cluster;
    if (engine.corrupt(random.pick(keys))) world.note("store", "record damaged");
  }

  #misdirect(random: RandomStream): void {
    const { engine, keys, world } = this.#cluster;
    const victim = random.pick(keys);
    if (engine.misdirect(victim)) world.note("store", "misdirected write", () => `landed on ${victim.name}`);
  }

  #jump(random: RandomStream): void {
    this.#cluster.jumpStoreClock(Math.round(random.between(-3, 3) * this.#cluster.config.ttlMs));
  }

  /**
   * A failover that lost the tail, or a backup from before. Whatever was under way is lost with the connections, and the
   * new server is there later than any answer took: a fence is taken from a time that is at most that much ahead.
   */
  #forget(random: RandomStream): void {
    const { config } = this.#cluster;
    const count = random.pick([1, 2, 4, Number.MAX_SAFE_INTEGER]);
    const widestMs = config.callTimeoutMs + config.granularityMs + 2 * config.skewMs + config.ttlMs / 10 + 60;
    this.#cluster.loseWrites(count, widestMs * (1 + config.driftRatio) ** 2);
  }
}
