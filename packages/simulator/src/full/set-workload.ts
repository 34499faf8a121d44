/**
 * Names that are wanted together. Now and then a process asks for two or three of them at once, in an order of its own, and
 * releases them after a while.
 */
import type { RandomStream } from "../world/random.ts";
import type { Process } from "./process.ts";
import type { SimulatedCluster } from "./simulated-cluster.ts";

export const SET_NAMES: readonly string[] = ["set1", "set2", "set3"];

export async function askForSet(
  cluster: SimulatedCluster,
  process: Process,
  random: RandomStream,
): Promise<void> {
  const { world, config } = cluster;
  const { ttlMs } = config;
  const startedMs = world.nowMs;
  const names = inAnyOrder(random).slice(0, random.whole(2, SET_NAMES.length));
  const wait = random.chance(0.8) ? Math.ceil(ttlMs * random.between(0.5, 5)) : 0;
  const keepMs = ttlMs * random.between(0, 1.5);
  const set = await process.leases.acquireAll(names, { ttl: ttlMs, wait });
  for (const lease of set.leases) cluster.use(process, lease);
  if (world.nowMs > startedMs + ttlMs / 4)
    cluster.sometimes("several names were held together after waiting for one of them");
  world.schedule(world.nowMs + keepMs, process.machine, "releases a set", () => {
    if (process.alive) void set.release();
  });
}

export function inAnyOrder(random: RandomStream): readonly string[] {
  const left = [...SET_NAMES];
  return SET_NAMES.map(() => left.splice(random.whole(0, left.length - 1), 1)[0] ?? "");
}
