/**
 * A name that several may hold at a time. Now and then a process asks for one of its slots: at once or with a wait, most
 * times for all of them, sometimes for fewer, as processes of an older or a newer release would.
 */
import type { Lease, LeaseKey } from "solehold/internal";
import type { RandomStream } from "../world/random.ts";
import type { Process } from "./process.ts";

export const POOL: LeaseKey = { tenant: "default", name: "pool" };

export interface SlotOptions {
  readonly slots: number;
  readonly ttlMs: number;
  readonly onLease: (process: Process, lease: Lease) => void;
}

export async function askForSlot(
  process: Process,
  random: RandomStream,
  options: SlotOptions,
): Promise<void> {
  const { ttlMs } = options;
  const slots = random.chance(0.8) ? options.slots : random.whole(1, options.slots);
  const waits = random.chance(0.6);
  const waitMs = Math.ceil(ttlMs * random.between(0.1, 4));
  const acquire = {
    slots,
    ttl: Math.ceil(ttlMs * random.pick([0.7, 1, 2])),
    autoRenew: random.chance(0.6),
  };
  if (waits) options.onLease(process, await process.leases.acquire(POOL.name, { ...acquire, wait: waitMs }));
  else {
    const attempt = await process.leases.tryAcquire(POOL.name, acquire);
    if (attempt.ok) options.onLease(process, attempt.lease);
  }
}
