/** The lease servers of a run: machines of their own, with one life of a server process after another. */
import type { Gateway } from "../net/gateway.ts";
import type { ServerAddress, Serving } from "../net/server-address.ts";
import { drawClock } from "../world/draw-clock.ts";
import type { SimulatedEnv } from "../world/env.ts";
import { Machine } from "../world/machine.ts";
import type { World } from "../world/world.ts";
import { Attempts } from "./attempts.ts";
import { Backend, type BackendOptions } from "./backend.ts";
import { envOf, nameOf } from "./process.ts";
import type { ServerQueues } from "./server-queues.ts";

export interface ServersOptions extends Omit<BackendOptions, "name" | "env"> {
  readonly world: World;
  readonly gateway: Gateway;
  readonly lines: ServerQueues;
}

export interface ServerLife extends Serving {
  readonly backend: Backend;
  readonly attempts: Attempts;
}

export class Servers {
  readonly machines: readonly Machine[];
  readonly addresses: readonly ServerAddress[];
  readonly #options: ServersOptions;
  readonly #lives: ServerLife[] = [];
  readonly #running = new Map<Machine, ServerLife>();
  /** Those whose trail is being opened. */
  readonly #starting = new Map<Machine, SimulatedEnv>();

  constructor(options: ServersOptions) {
    const { world, config } = options;
    this.#options = options;
    const random = world.choices.stream("server clocks");
    this.machines = Array.from(
      { length: config.servers },
      (_, index) => new Machine(world, `s${index + 1}`, drawClock(config, random)),
    );
    this.addresses = this.machines.map((machine) => ({
      url: `http://${machine.name}`,
      machine,
      serving: () => this.#running.get(machine) ?? null,
    }));
    for (const machine of this.machines) this.start(machine);
  }

  /** All that ever ran. */
  get lives(): readonly ServerLife[] {
    return this.#lives;
  }

  get running(): readonly ServerLife[] {
    return [...this.#running.values()];
  }

  get starting(): number {
    return this.#starting.size;
  }

  start(machine: Machine): void {
    if (this.#running.has(machine) || this.#starting.has(machine) || !this.machines.includes(machine)) return;
    const life = this.#lives.filter((each) => each.env.machine === machine).length + 1;
    const name = nameOf(machine, life);
    const env = envOf({ ...this.#options, machine }, name);
    this.#starting.set(machine, env);
    Backend.open({ ...this.#options, name, env }, (backend) => {
      this.#starting.delete(machine);
      this.#serve(machine, backend);
    });
  }

  #serve(machine: Machine, backend: Backend): void {
    const { world, gateway, lines, mutations } = this.#options;
    const { name, env } = backend;
    const attempts = new Attempts();
    const served = gateway.serve({
      slot: this.machines.indexOf(machine),
      url: `http://${machine.name}`,
      env,
      service: attempts.watched(backend.service),
      trail: backend.audit,
    });
    const endpoint = lines.watched(name, mutations.endpoint?.(served) ?? served);
    const running = { env, endpoint, backend, attempts };
    this.#lives.push(running);
    this.#running.set(machine, running);
    world.note(name, "starts");
  }

  crash(machine: Machine): void {
    this.#starting.get(machine)?.kill();
    this.#starting.delete(machine);
    const life = this.#running.get(machine);
    if (life === undefined) return;
    this.#options.world.note(life.backend.name, "crashes");
    this.#running.delete(machine);
    life.env.kill();
  }
}
