/**
 * Deletes records that ended long ago, now and then, by itself. One replica at a time: the one that holds the lease
 * "collection" in the server's own tenant. A pass that fails is logged once and tried again the next time; nothing
 * depends on it but space.
 *
 * No store can enumerate its tenants. Collected are the default tenant, the server's own, those that API keys name, and
 * those that requests or the store's events named since this server started.
 */

import { type Lease, Leases } from "solehold";
import {
  collectionObstacle,
  DEFAULT_TENANT,
  delay,
  type Env,
  jittered,
  type LeaseService,
} from "solehold/internal";
import { SYSTEM_TENANT } from "../access/principal.ts";
import { ended, standForElection } from "../replicas/election.ts";
import type { Logger } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";

export interface ScheduledCollectionOptions {
  readonly env: Env;
  readonly service: LeaseService;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** 0: never. */
  readonly everyMs: number;
  /** Those that API keys name. */
  readonly tenants: () => readonly string[];
}

const LEASE_NAME = "collection";
const TTL_MS = 30_000;
const JITTER = 0.1;

export class ScheduledCollection {
  readonly #options: ScheduledCollectionOptions;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  /** The failure that was logged last; null after a pass without one. */
  #lastFailure: string | null = null;

  constructor(options: ScheduledCollectionOptions) {
    this.#options = options;
  }

  /** `nodeId` names this replica as the holder. */
  start(nodeId: string): void {
    const { env, service, log, everyMs } = this.#options;
    if (everyMs === 0) return;
    const obstacle = collectionObstacle(service.executor.store);
    if (obstacle !== null) {
      log.info(`ended records are kept for ever: ${obstacle}`);
      return;
    }
    const { executor } = service;
    const { minTtlMs, maxTtlMs } = executor.policy;
    const ttlMs = Math.min(maxTtlMs, Math.max(minTtlMs, TTL_MS));
    const leases = new Leases({ executor, env, tenant: SYSTEM_TENANT, holder: nodeId });
    const { signal } = this.#stopping;
    const onFailure = (error: unknown): void => this.#failed(error);
    this.#running = standForElection({ env, leases, name: LEASE_NAME, ttlMs, signal, onFailure }, (term) =>
      this.#lead(term),
    );
  }

  /** A pass under way is left behind: what it has not deleted by then stays for the next. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /** The first pass comes at a random moment of the interval, so that servers that start together spread out. */
  async #lead(term: Lease): Promise<void> {
    const { env, everyMs } = this.#options;
    const signal = AbortSignal.any([term.signal, this.#stopping.signal]);
    for (let pauseMs = env.random() * everyMs; ; pauseMs = jittered(env, everyMs, JITTER)) {
      await delay(env, pauseMs, signal);
      if (signal.aborted) return;
      await Promise.race([this.#pass(signal), ended(signal)]);
    }
  }

  /** Never rejects. */
  async #pass(signal: AbortSignal): Promise<void> {
    const { service, tenants } = this.#options;
    let isClean = true;
    for (const tenant of new Set([DEFAULT_TENANT, SYSTEM_TENANT, ...tenants(), ...service.tenants()])) {
      if (signal.aborted) return;
      try {
        await this.#collect(tenant);
      } catch (error) {
        isClean = false;
        if (!signal.aborted) this.#failed(error);
      }
    }
    if (isClean) this.#lastFailure = null;
  }

  async #collect(tenant: string): Promise<void> {
    const { service, log, metrics } = this.#options;
    const { scanned, deleted } = await service.executor.collect(tenant);
    metrics.collected(deleted);
    if (deleted > 0) log.info({ tenant, scanned, deleted }, "ended records were deleted");
  }

  #failed(error: unknown): void {
    const failure = error instanceof Error ? error.message : String(error);
    if (failure === this.#lastFailure) return;
    this.#lastFailure = failure;
    this.#options.log.warn({ err: error }, "ended records could not be deleted; trying again later");
  }
}
