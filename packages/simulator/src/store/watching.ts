/**
 * How a process learns of changes in the simulated store: by a watch.
 * Events travel over the network, where they are late, doubled and lost; some carry the record, some do not. A crash of
 * the store ends a watch until its process has connected again, which shows as a reset.
 */
import type {
  LeaseKey,
  StoredRecord,
  StoreEvent,
  StoreWatch,
  WatchListener,
  WatchScope,
} from "solehold/internal";
import type { SimConfig } from "../config.ts";
import type { Situation } from "../oracles/oracle.ts";
import type { SimulatedEnv } from "../world/env.ts";
import type { Network } from "../world/network.ts";
import type { World } from "../world/world.ts";
import type { StoreEngine } from "./engine.ts";

/** How often a store that may do so leaves the record out of an event. */
const BARE_RATE = 0.3;

export interface WatchingOptions {
  readonly world: World;
  readonly network: Network;
  readonly engine: StoreEngine;
  readonly env: SimulatedEnv;
  readonly config: SimConfig;
  readonly sometimes: (situation: Situation) => void;
  readonly onDelivered: (event: StoreEvent) => void;
  /** Whether this event gets lost. */
  readonly isLost: () => boolean;
  readonly call: <Reply>(label: string, work: () => Reply) => Promise<Reply>;
}

function eventOf({ world, config }: WatchingOptions, key: LeaseKey, stored: StoredRecord): StoreEvent {
  const isBare = config.events === "bare" && world.choices.stream("bare events").chance(BARE_RATE);
  return { kind: "changed", key, stored: isBare ? null : stored };
}

export function openWatch(
  options: WatchingOptions,
  scope: WatchScope,
  listener: WatchListener,
): Promise<StoreWatch> {
  const { world, engine, network, env, config, isLost, call, onDelivered } = options;
  return call("watch", () => {
    let open = true;
    let isConnected = true;
    const unsubscribe = engine.subscribe(scope, (key, stored) => {
      if (!isConnected || isLost()) return;
      const event = eventOf(options, key, stored);
      network.send(engine.machine, env.machine, "event", () => {
        if (!open || env.dead) return;
        onDelivered(event);
        listener(event);
      });
    });
    const forgetCrashes = engine.onCrash(() => {
      isConnected = false;
      reconnect();
    });
    const reconnect = (): void => {
      const inMs = world.choices.stream("reconnects").fraction() * config.ttlMs * 0.5;
      world.schedule(world.nowMs + inMs, env.machine, "reconnect", () => {
        if (!open || env.dead) return;
        if (engine.down) {
          reconnect();
          return;
        }
        isConnected = true;
        listener({ kind: "reset" });
      });
    };
    const close = async (): Promise<void> => {
      open = false;
      unsubscribe();
      forgetCrashes();
    };
    return { close };
  });
}
