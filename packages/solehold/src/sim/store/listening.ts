/**
 * How a process hears of changes in the simulated store: by a watch, or by a place in the store's line for a key. News
 * travels over the network, where it is late, doubled and lost; a crash of the store leaves a watch deaf until its
 * process has connected again, and then it is told that some may be missing.
 */
import type { LeaseKey } from "../../core/index.ts";
import type { StoredRecord, StoreEvent, StorePlace, StoreWatch, WatchScope } from "../../store/index.ts";
import type { SimConfig } from "../config.ts";
import type { Situation } from "../oracles/oracle.ts";
import type { SimulatedEnv } from "../world/env.ts";
import type { Network } from "../world/network.ts";
import type { World } from "../world/world.ts";
import type { StoreEngine } from "./engine.ts";
import { holdingEvent, type Teller } from "./news.ts";

/** Where it is noticed that news got lost. */
const NOTICED_RATE = 0.5;

type Listener = (event: StoreEvent) => void;

export interface ListeningOptions {
  readonly world: World;
  readonly network: Network;
  readonly engine: StoreEngine;
  readonly env: SimulatedEnv;
  readonly config: SimConfig;
  readonly sometimes: (situation: Situation) => void;
  readonly onLook: Teller["onLook"];
  /** Whether this piece of news gets lost. */
  readonly isLost: () => boolean;
  readonly call: <Reply>(label: string, work: () => Reply) => Promise<Reply>;
}

function tellerOf({ world, config, onLook }: ListeningOptions): Teller {
  return { form: config.news, random: world.choices.stream("told ends"), onLook };
}

export function openWatch(
  options: ListeningOptions,
  scope: WatchScope,
  listener: Listener,
): Promise<StoreWatch> {
  const { world, engine, network, env, config, isLost, call } = options;
  const teller = tellerOf(options);
  const wantsHolding = scope.wants === "holding";
  return call("watch", () => {
    let open = true;
    let isDeaf = false;
    const send = (event: StoreEvent): void => {
      network.send(engine.machine, env.machine, "news", () => {
        if (open && !env.dead) listener(event);
      });
    };
    const unsubscribe = engine.subscribe(scope, (event, stored) => {
      if (isDeaf || event.kind === "reset") return;
      if (!isLost()) send(wantsHolding ? holdingEvent(event.key, stored, teller) : event);
      else if (config.news !== "records" && world.choices.stream("noticed losses").chance(NOTICED_RATE))
        send({ kind: "reset" });
    });
    const forgetCrashes = engine.onCrash(() => {
      isDeaf = true;
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
        isDeaf = false;
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

/** What is said to the store about the line is not said again when it gets lost. */
export function placeFor(options: ListeningOptions, key: LeaseKey, listener: Listener): StorePlace {
  const { engine, network, env, config, isLost, call } = options;
  const teller = tellerOf(options);
  let ticket: number | null = null;
  let isIn = false;
  const eventOf = (stored: StoredRecord): StoreEvent =>
    config.news === "records"
      ? { kind: "changed", key, record: null, held: "no", stored: () => stored }
      : holdingEvent(key, stored, teller);
  const deliver = (event: StoreEvent): void => {
    if (env.dead) return;
    // It left just when its turn came.
    if (!isIn) say("gone");
    else listener(event);
  };
  const member = {
    isListening: () => !env.dead,
    tell: (stored: StoredRecord): void => {
      if (isLost()) return;
      options.sometimes("a waiter in a store's line was told of its turn");
      const event = eventOf(stored);
      network.send(engine.machine, env.machine, "turn", () => deliver(event));
    },
  };
  const say = (why: "served" | "gone"): void => {
    network.send(env.machine, engine.machine, "leave line", () => engine.leaveLine(key, member, why));
  };
  const enter = async (): Promise<void> => {
    isIn = true;
    ticket = await call("enter line", () => engine.enterLine(key, member, ticket));
    if (!isIn) say("gone");
  };
  const leave = (why: "served" | "gone"): void => {
    if (isIn) say(why);
    isIn = false;
    ticket = null;
  };
  return { enter, leave, close: async () => leave("gone") };
}
