/** Processes on machines: at most one on each at a time, one life after another. */
import type { SimConfig } from "../config.ts";
import { SimulatedEnv } from "../world/env.ts";
import type { Machine } from "../world/machine.ts";
import type { World } from "../world/world.ts";

interface Life {
  readonly name: string;
  readonly env: SimulatedEnv;
}

export interface LivesOptions<Each extends Life> {
  readonly world: World;
  readonly config: SimConfig;
  readonly machines: readonly Machine[];
  /** Calls back when the process runs; never if it dies before. */
  readonly open: (name: string, env: SimulatedEnv, onStarted: (life: Each) => void) => void;
}

export class Lives<Each extends Life> {
  readonly #options: LivesOptions<Each>;
  readonly #all: Each[] = [];
  readonly #running = new Map<Machine, Each>();
  /** Those that have not got as far as running: their audit trail is being opened. */
  readonly #starting = new Map<Machine, SimulatedEnv>();

  constructor(options: LivesOptions<Each>) {
    this.#options = options;
  }

  /** All that ever ran. */
  get all(): readonly Each[] {
    return this.#all;
  }

  get running(): readonly Each[] {
    return [...this.#running.values()];
  }

  get starting(): number {
    return this.#starting.size;
  }

  on(machine: Machine): Each | null {
    return this.#running.get(machine) ?? null;
  }

  start(machine: Machine): void {
    const { world, config, machines, open } = this.#options;
    if (this.#running.has(machine) || this.#starting.has(machine) || !machines.includes(machine)) return;
    const count = this.#all.filter(({ env }) => env.machine === machine).length + 1;
    const name = count === 1 ? machine.name : `${machine.name}.${count}`;
    const random = world.choices.stream(`process ${name}`);
    const env = new SimulatedEnv({ world, machine, random, timerLatenessMs: config.timerLatenessMs });
    this.#starting.set(machine, env);
    open(name, env, (life) => {
      this.#starting.delete(machine);
      this.#all.push(life);
      this.#running.set(machine, life);
      world.note(name, "starts");
    });
  }

  crash(machine: Machine): void {
    this.#starting.get(machine)?.kill();
    this.#starting.delete(machine);
    const life = this.#running.get(machine);
    if (life === undefined) return;
    this.#options.world.note(life.name, "crashes");
    this.#running.delete(machine);
    life.env.kill();
  }
}
