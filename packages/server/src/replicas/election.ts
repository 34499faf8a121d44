/** One replica at a time: a lease that is held, and stood for again whenever it is lost, until the signal aborts. */

import type { Lease, Leases } from "solehold";
import type { Env } from "solehold/internal";
import { delay } from "solehold/internal";

export interface ElectionOptions {
  readonly env: Env;
  readonly leases: Leases;
  readonly name: string;
  readonly ttlMs: number;
  readonly note?: string;
  readonly signal: AbortSignal;
  /** The lease could not be had, or `lead` rejected; it is tried again after a ttl. */
  readonly onFailure: (error: unknown) => void;
}

/** `lead` runs once for each term, and should end when its lease's signal aborts. Never rejects. */
export async function standForElection(
  options: ElectionOptions,
  lead: (term: Lease) => Promise<void>,
): Promise<void> {
  const { env, leases, name, ttlMs: ttl, note, signal, onFailure } = options;
  const noted = note === undefined ? {} : { note };
  while (!signal.aborted) {
    try {
      for await (const term of leases.elect(name, { ttl, signal, keepAlive: false, ...noted }))
        await lead(term);
    } catch (error) {
      onFailure(error);
      await delay(env, ttl, signal);
    }
  }
}

export function ended(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
