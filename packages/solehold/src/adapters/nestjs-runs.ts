/**
 * The methods of a Nest application that run under a lease. At shutdown, first their signals abort, and waits for leases
 * end; then the runs end, what is held is released, and the store is closed. A lease is never released under work that
 * still runs: a method that ignores its signal holds up the shutdown, and the lease of a killed process ends by its ttl.
 */
import type { Leases } from "../client/index.ts";

/** A provider of LeasesModule: Nest calls its hooks. */
export class LeaseRuns {
  readonly #leases: Leases;
  readonly #stopping = new AbortController();
  readonly #running = new Set<Promise<unknown>>();

  constructor(leases: Leases) {
    this.#leases = leases;
  }

  /** `start` gets the leases, and the signal of the shutdown. */
  async run<Result>(start: (leases: Leases, stop: AbortSignal) => Promise<Result>): Promise<Result> {
    this.#stopping.signal.throwIfAborted();
    const running = start(this.#leases, this.#stopping.signal);
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  beforeApplicationShutdown(): void {
    this.#stopping.abort(new Error("the application shuts down"));
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.allSettled(this.#running);
    await this.#leases.close({ release: true });
  }
}
