/**
 * A name that several may hold at a time. Now and then a process asks for one of its slots: at once or with a wait, most
 * times for all of them, sometimes for fewer, as processes of an older or a newer release would.
 */
import type { LeaseKey } from "solehold/internal";
import type { RandomStream } from "../world/random.ts";
import type { Process } from "./process.ts";
import type { SimulatedCluster } from "./simulated-cluster.ts";

export const POOL: LeaseKey = { tenant: "default", name: "pool" };

export async function askForSlot(
  cluster: SimulatedCluster,
  process: Process,
  random: RandomStream,
): Promise<void> {
  const { ttlMs, slots: all } = cluster.config;
  const slots = random.chance(0.8) ? all : random.whole(1, all);
  const waits = random.chance(0.6);
  const wait = Math.ceil(ttlMs * random.between(0.1, 4));
  const ttl = Math.ceil(ttlMs * random.pick([0.7, 1, 2]));
  const options = { slots, ttl, autoRenew: random.chance(0.6) };
  if (waits) return cluster.use(process, await process.leases.acquire(POOL.name, { ...options, wait }));
  const attempt = await process.leases.tryAcquire(POOL.name, options);
  if (attempt.ok) cluster.use(process, attempt.lease);
}
