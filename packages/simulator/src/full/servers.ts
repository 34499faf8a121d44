/** The lease servers of a run: machines of their own, with one life of a server process after another. */
import type { Gateway } from "../net/gateway.ts";
import type { ServerAddress, Serving } from "../net/server-address.ts";
import { drawClock } from "../world/draw-clock.ts";
import { Machine } from "../world/machine.ts";
import type { World } from "../world/world.ts";
import { Attempts } from "./attempts.ts";
import { Backend, type BackendOptions } from "./backend.ts";
import { Lives } from "./lives.ts";
import type { ServerQueues } from "./server-queues.ts";

export interface ServersOptions extends Omit<BackendOptions, "name" | "env"> {
  readonly world: World;
  readonly gateway: Gateway;
  readonly queues: ServerQueues;
}

export interface ServerLife extends Serving {
  readonly name: string;
  readonly backend: Backend;
  readonly attempts: Attempts;
}

export class Servers {
  readonly machines: readonly Machine[];
  readonly addresses: readonly ServerAddress[];
  readonly lives: Lives<ServerLife>;

  constructor(options: ServersOptions) {
    const { world, config } = options;
    const random = world.choices.stream("server clocks");
    this.machines = Array.from(
      { length: config.servers },
      (_, index) => new Machine(world, `s${index + 1}`, drawClock(config, random)),
    );
    this.addresses = this.machines.map((machine) => ({
      url: `http://${machine.name}`,
      machine,
      serving: () => this.lives.on(machine),
    }));
    this.lives = new Lives({
      world,
      config,
      machines: this.machines,
      open: (name, env, onStarted) =>
        Backend.open({ ...options, name, env }, (backend) => onStarted(this.#serve(backend, options))),
    });
    for (const machine of this.machines) this.lives.start(machine);
  }

  #serve(backend: Backend, { gateway, queues, mutations }: ServersOptions): ServerLife {
    const { name, env, service, audit: trail } = backend;
    const { machine } = env;
    const attempts = new Attempts();
    const served = gateway.serve({
      slot: this.machines.indexOf(machine),
      url: `http://${machine.name}`,
      env,
      service: attempts.watched(service),
      trail,
    });
    const endpoint = queues.watched(name, mutations.endpoint?.(served) ?? served);
    return { name, env, endpoint, backend, attempts };
  }
}
