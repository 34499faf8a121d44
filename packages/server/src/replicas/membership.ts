/**
 * Which replicas serve this store. Membership is itself leases in the store: each replica holds one under
 * its own name with its address, and is a member while that lease lives. A replica that dies, hangs or
 * cannot reach the store drops out when its lease ends.
 *
 * Members only help clients to find a key's home. Nothing depends on them for being correct.
 */

import { type LeaseExecutor, Leases } from "solehold";
import type { Env } from "solehold/internal";
import { SYSTEM_TENANT } from "../access/principal.ts";
import type { Logger } from "../telemetry/log.ts";
import { ended, standForElection } from "./election.ts";

export interface ReplicaMember {
  readonly nodeId: string;
  readonly url: string;
  readonly weight: number;
}

export interface MembershipOptions {
  readonly env: Env;
  readonly executor: LeaseExecutor;
  readonly log: Logger;
  readonly weight: number;
}

const PREFIX = "replicas/";
const TTL_MS = 4_000;
const MAX_REPLICAS = 1_000;

export class Membership {
  readonly #options: MembershipOptions;
  readonly #leaving = new AbortController();
  #membership: Promise<void> = Promise.resolve();

  constructor(options: MembershipOptions) {
    this.#options = options;
  }

  /** Stands for membership until `leave`, again and again whenever it is lost. */
  join(nodeId: string, url: string): void {
    const { executor, env, log, weight } = this.#options;
    const { signal } = this.#leaving;
    const leases = new Leases({ executor, env, tenant: SYSTEM_TENANT, holder: nodeId });
    const onFailure = (error: unknown): void =>
      log.warn({ err: error }, "this replica could not be announced; trying again");
    this.#membership = standForElection(
      { env, leases, name: `${PREFIX}${nodeId}`, ttlMs: TTL_MS, note: `${url} ${weight}`, signal, onFailure },
      (term) => ended(AbortSignal.any([term.signal, signal])),
    );
  }

  /** Those who are alive, by name. Rejects when the store cannot say. */
  async members(): Promise<readonly ReplicaMember[]> {
    const { executor } = this.#options;
    const page = await executor.list({
      tenant: SYSTEM_TENANT,
      prefix: PREFIX,
      state: "held",
      limit: MAX_REPLICAS,
    });
    return page.leases.flatMap(({ live, key, note }) => {
      const [url = "", weight = "1"] = note.split(" ");
      return live && url !== ""
        ? [{ nodeId: key.name.slice(PREFIX.length), url, weight: Number(weight) }]
        : [];
    });
  }

  /** Gives the place up, so that clients go elsewhere at once. */
  async leave(): Promise<void> {
    this.#leaving.abort();
    await this.#membership;
  }
}
