/**
 * Several leases in one hand. `signal` aborts when the first of them is over; the others stay until they are released,
 * because the work that needs all of them may still have to stop.
 */
import type { Lease } from "./lease.ts";
import type { ReleaseResult } from "./loss.ts";

export class LeaseSet {
  /** In the order in which they were asked for. */
  readonly leases: readonly Lease[];
  #signal: AbortSignal | null = null;

  constructor(leases: readonly Lease[]) {
    this.leases = leases;
  }

  /** Aborts, once, when one of the leases is over; the reason is that one's LeaseLostError. */
  get signal(): AbortSignal {
    this.#signal ??= AbortSignal.any(this.leases.map(({ signal }) => signal));
    return this.#signal;
  }

  /** Milliseconds for which all of them may still be believed without another renewal; 0 when one is over. */
  remaining(): number {
    return Math.min(...this.leases.map((lease) => lease.remaining()));
  }

  isHeld(): boolean {
    return this.remaining() > 0;
  }

  /** Throws LeaseLostError unless all of them are held at this very moment. */
  assertHeld(): void {
    for (const lease of this.leases) lease.assertHeld();
  }

  /** Releases all of them, in one call where the store can. Never throws. */
  async release(): Promise<readonly ReleaseResult[]> {
    return await Promise.all(this.leases.map((lease) => lease.release()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}
