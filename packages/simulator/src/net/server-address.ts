/** Where a client finds a server, and who serves there at the moment. */
import type { SimulatedEnv } from "../world/env.ts";
import type { Machine } from "../world/machine.ts";
import type { Network } from "../world/network.ts";
import type { World } from "../world/world.ts";
import type { Endpoint } from "./gateway.ts";

export interface Serving {
  readonly env: SimulatedEnv;
  readonly endpoint: Endpoint;
}

export interface ServerAddress {
  readonly url: string;
  readonly machine: Machine;
  /** Null while no server process runs there. */
  serving(): Serving | null;
}

/** What a connection is made of, apart from its two ends. */
export interface Wire {
  readonly world: World;
  readonly network: Network;
  /** How long it takes at most until a broken connection is noticed, if it is at all. */
  readonly noticeMs: number;
}
