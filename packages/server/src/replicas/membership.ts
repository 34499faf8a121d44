/**
 * Which replicas serve this store. Membership is itself leases in the store: each replica holds one under
 * its own name with its address, and is a member while that lease lives. A replica that dies, hangs or
 * cannot reach the store drops out when its lease ends.
 *
 * The record also says by which rules a replica decides, so that one with others does not start beside it.
 *
 * Members only help clients to find a key's home. Nothing depends on them for being correct.
 */

import { type LeaseExecutor, Leases } from "solehold";
import { delay, type Env } from "solehold/internal";
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

/** A member that serves, and is not announced to clients, has this in place of an address. */
const NO_URL = "-";
const PREFIX = "replicas/";
const TTL_MS = 4_000;
const LOOK_EVERY_MS = 500;
const MAX_REPLICAS = 1_000;

export class Membership {
  readonly #options: MembershipOptions;
  readonly #leaving = new AbortController();
  #standing = new AbortController();
  #membership: Promise<void> = Promise.resolve();
  #self: { readonly nodeId: string; readonly url: string | null } | null = null;

  constructor(options: MembershipOptions) {
    this.#options = options;
  }

  /**
   * Stands for membership until `leave`, again and again whenever it is lost. `url`: null for a replica that clients are
   * not sent to. `rules`: a word that is the same for replicas that decide alike.
   */
  join(nodeId: string, url: string | null, rules: string): void {
    const { executor, env, log, weight } = this.#options;
    this.#self = { nodeId, url };
    this.#standing = new AbortController();
    const signal = AbortSignal.any([this.#leaving.signal, this.#standing.signal]);
    const note = `${url ?? NO_URL} ${weight} ${rules}`;
    const leases = new Leases({ executor, env, tenant: SYSTEM_TENANT, holder: nodeId });
    const onFailure = (error: unknown): void =>
      log.warn({ err: error }, "this replica could not be announced; trying again");
    this.#membership = standForElection(
      { env, leases, name: `${PREFIX}${nodeId}`, ttlMs: TTL_MS, note, signal, onFailure },
      (term) => ended(AbortSignal.any([term.signal, signal])),
    );
  }

  /** A member with other rules from now on. */
  async changeRules(rules: string): Promise<void> {
    this.#standing.abort();
    await this.#membership;
    if (this.#self !== null) this.join(this.#self.nodeId, this.#self.url, rules);
  }

  /**
   * The name of a replica that decides by other rules; null if there is none. One that ended without a word counts until
   * its lease ends, so that one is waited for.
   */
  async otherRules(rules: string): Promise<string | null> {
    const { env } = this.#options;
    for (let waitedMs = 0; ; waitedMs += LOOK_EVERY_MS) {
      const others = await this.#replicas();
      const other = others.find((replica) => replica.rules !== rules && replica.rules !== "");
      if (other === undefined || waitedMs > TTL_MS) return other?.nodeId ?? null;
      await delay(env, LOOK_EVERY_MS);
    }
  }

  /** Those who are alive, by name. Rejects when the store cannot say. */
  async members(): Promise<readonly ReplicaMember[]> {
    const replicas = await this.#replicas();
    return replicas.flatMap(({ rules: _rules, ...member }) => (member.url === NO_URL ? [] : [member]));
  }

  /** This one's name, if it is among them. */
  selfAmong(members: readonly ReplicaMember[]): string | null {
    return members.find(({ nodeId }) => nodeId === this.#self?.nodeId)?.nodeId ?? null;
  }

  async #replicas(): Promise<readonly (ReplicaMember & { readonly rules: string })[]> {
    const { executor } = this.#options;
    const page = await executor.list({
      tenant: SYSTEM_TENANT,
      prefix: PREFIX,
      state: "held",
      limit: MAX_REPLICAS,
    });
    return page.leases.flatMap(({ live, key, note }) => {
      const [url = "", weight = "1", rules = ""] = note.split(" ");
      return live && url !== ""
        ? [{ nodeId: key.name.slice(PREFIX.length), url, weight: Number(weight), rules }]
        : [];
    });
  }

  /** Gives the place up, so that clients go elsewhere at once. */
  async leave(): Promise<void> {
    this.#leaving.abort();
    await this.#membership;
  }
}
