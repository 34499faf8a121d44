/** Acquiring with a word to the person who waits. */
import {
  type AcquireOptions,
  type Lease,
  LeaseHeldError,
  type Leases,
  LeaseUnavailableError,
} from "solehold";
import type { Io } from "./io.ts";
import { heldFailure } from "./outcomes.ts";

/** As `leases.acquire`; on a terminal it says who is waited for. */
export async function acquireAndSay(
  leases: Leases,
  name: string,
  options: AcquireOptions,
  io: Io,
): Promise<Lease> {
  if (options.wait === 0 || !io.stderr.isTTY) return await leases.acquire(name, options);
  try {
    return await leases.acquire(name, { ...options, wait: 0 });
  } catch (error) {
    const worthWaiting = error instanceof LeaseHeldError || error instanceof LeaseUnavailableError;
    if (!worthWaiting) throw error;
    const why = error instanceof LeaseHeldError ? heldFailure(error).message : error.message;
    io.stderr.write(`solehold: waiting: ${why}\n`);
    return await leases.acquire(name, options);
  }
}
