/** The lease servers of a run: machines of their own, with one life of a server process after another. */
import type { LeaseService, ServiceReply } from "../../service/index.ts";
import type { Gateway } from "../net/gateway.ts";
import type { ServerAddress, Serving } from "../net/server-address.ts";
import { drawClock } from "../world/draw-clock.ts";
import { Machine } from "../world/machine.ts";
import type { World } from "../world/world.ts";
import { Backend, type BackendOptions } from "./backend.ts";
import { envOf, nameOf } from "./process.ts";
import type { ServerLines } from "./server-lines.ts";
import type { AnsweredAttempt } from "./service-route.ts";

export interface ServersOptions extends Omit<BackendOptions, "name" | "env"> {
  readonly world: World;
  readonly gateway: Gateway;
  readonly lines: ServerLines;
}

export interface ServerLife extends Serving {
  readonly backend: Backend;
  /** What the service answered, to be compared with the audit. */
  readonly answered: readonly AnsweredAttempt[];
}

export class Servers {
  readonly machines: readonly Machine[];
  readonly addresses: readonly ServerAddress[];
  readonly #options: ServersOptions;
  readonly #lives: ServerLife[] = [];
  readonly #running = new Map<Machine, ServerLife>();

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

  start(machine: Machine): void {
    const slot = this.machines.indexOf(machine);
    if (this.#running.has(machine) || slot < 0) return;
    const { world, gateway, lines, mutations } = this.#options;
    const life = this.#lives.filter((each) => each.env.machine === machine).length + 1;
    const name = nameOf(machine, life);
    const env = envOf({ ...this.#options, machine }, name);
    const backend = new Backend({ ...this.#options, name, env });
    const answered: AnsweredAttempt[] = [];
    const served = gateway.serve({
      slot,
      url: `http://${machine.name}`,
      env,
      service: rememberingAnswers(backend.service, answered),
      trail: backend.audit,
    });
    const endpoint = lines.watched(name, mutations.endpoint?.(served) ?? served);
    const running = { env, endpoint, backend, answered };
    this.#lives.push(running);
    this.#running.set(machine, running);
    world.note(name, "starts");
  }

  crash(machine: Machine): void {
    const life = this.#running.get(machine);
    if (life === undefined) return;
    this.#options.world.note(life.backend.name, "crashes");
    this.#running.delete(machine);
    life.env.kill();
  }
}

/** Whatever the service answers about a command passes here. */
function rememberingAnswers(service: LeaseService, answered: AnsweredAttempt[]): LeaseService {
  return new Proxy(service, {
    get: (inner, field) => {
      const member: unknown = Reflect.get(inner, field, inner);
      if (typeof member !== "function") return member;
      return (...given: readonly unknown[]): unknown => {
        const result: unknown = Reflect.apply(member, inner, given);
        if (result instanceof Promise)
          result.then(
            (replies: unknown) => {
              for (const reply of [replies].flat())
                if (isReply(reply)) answered.push({ traceId: reply.entry.traceId, outcome: reply.outcome });
            },
            () => undefined,
          );
        return result;
      };
    },
  });
}

function isReply(value: unknown): value is ServiceReply {
  return typeof value === "object" && value !== null && "entry" in value && "outcome" in value;
}
