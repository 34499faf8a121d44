/** Nodes with a lease manager each, over the simulated store and network, with faults drawn by a seed. */
import type { LeaseKey, LeaseRecord } from "solehold/internal";
import { LeaseManagerError, StoreLeaseManager } from "solehold/seeds";
import { drawConfig, type Fault, type SimConfig } from "../../../src/config.ts";
import { SimulatedStore } from "../../../src/store/client.ts";
import { StoreEngine } from "../../../src/store/engine.ts";
import { SimulatedEnv } from "../../../src/world/env.ts";
import { Machine } from "../../../src/world/machine.ts";
import { Network } from "../../../src/world/network.ts";
import { Choices } from "../../../src/world/random.ts";
import { withoutRealWorld } from "../../../src/world/trap.ts";
import { World } from "../../../src/world/world.ts";

export const DURATION_MS = 5_000;
export const ACTOR = "actor-1";
const KEY: LeaseKey = { tenant: "default", name: ACTOR };
const LONGEST_MS = 3_600_000;

/** `DST_SEED=12345` plays that seed alone. */
export function seeds(count: number): readonly number[] {
  const { DST_SEED } = process.env;
  if (DST_SEED === undefined) return Array.from({ length: count }, (_, index) => index + 1);
  const seed = Number(DST_SEED);
  if (!Number.isSafeInteger(seed) || seed < 0)
    throw new RangeError(`DST_SEED must be a whole number, got '${DST_SEED}'`);
  return [seed];
}

/** "StorageWriteFail" of the document: about one write in twelve. */
export const STORAGE_WRITE_FAIL: readonly Fault[] = ["fail-before"];

export interface Node {
  readonly name: string;
  readonly manager: StoreLeaseManager;
  readonly pass: (ms: number) => Promise<void>;
}

export interface DstWorld {
  readonly nodes: readonly [Node, Node, Node, Node];
  readonly record: () => LeaseRecord | null;
  readonly hash: () => number;
}

/** Plays `test` in a world of this seed, and returns the hash of all that happened. */
export async function play(
  seed: number,
  faults: readonly Fault[],
  test: (world: DstWorld) => Promise<void>,
): Promise<number> {
  return await withoutRealWorld(async () => {
    const world = new World(new Choices(seed), { record: "no" });
    const config: SimConfig = {
      ...drawConfig(seed, { faults: [] }),
      faults: new Set(faults),
      storeClock: "reply",
      granularityMs: 1,
      skewMs: 0,
      watch: false,
      callTimeoutMs: 400,
      delayMs: 1,
    };
    const rate = (fault: Fault): number => (faults.includes(fault) ? 0.08 : 0);
    const network = new Network(world, {
      delayMs: 1,
      lossRate: rate("loss"),
      duplicateRate: rate("duplicate"),
      slowRate: rate("slow"),
      slowMs: 200,
    });
    const random = world.choices.stream("clocks");
    const machine = (name: string): Machine =>
      new Machine(world, name, {
        monotonicMs: random.between(0, 1e6),
        wallMs: random.between(1e12, 2e12),
        rate: 1,
      });
    const engine = new StoreEngine({
      machine: machine("store"),
      granularityMs: 1,
      writes: "conditional",
      onWrite: () => undefined,
    });
    const node = (name: string): Node => {
      const env = new SimulatedEnv({
        world,
        machine: machine(name),
        random: world.choices.stream(name),
        timerLatenessMs: 0,
      });
      const store = new SimulatedStore({
        ...{ world, network, engine, env, config, process: name },
        healed: () => false,
        sometimes: () => undefined,
        onSent: () => undefined,
      });
      const manager = new StoreLeaseManager(store, { env, leaseDurationMs: DURATION_MS });
      return { name, manager, pass: (ms) => new Promise((resolve) => void env.timer(ms, resolve)) };
    };
    const nodes = [node("n1"), node("n2"), node("n3"), node("n4")] as const;
    let ended: { readonly error: unknown } | null = null;
    test({ nodes: [...nodes], record: () => engine.recordOf(KEY), hash: () => world.hash }).then(
      () => {
        ended = { error: null };
      },
      (error: unknown) => {
        ended = { error };
      },
    );
    await world.run(LONGEST_MS, () => (ended === null ? "go on" : "stop"));
    const { error } = (ended as { readonly error: unknown } | null) ?? { error: new Error("it did not end") };
    if (error !== null)
      throw new Error(`seed ${seed} (DST_SEED=${seed} plays it again): ${String(error)}`, { cause: error });
    return world.hash;
  });
}

/** Whatever the store answers in between: until the manager says yes or a clear no. */
export async function settled<Result>(
  node: Node,
  call: () => Promise<Result>,
): Promise<Result | LeaseManagerError> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof LeaseManagerError) || error.kind !== "Refused")
        return error as LeaseManagerError;
      await node.pass(50);
    }
  }
}

export function kindOf(result: unknown): string {
  return result instanceof LeaseManagerError ? result.kind : "ok";
}
