/**
 * Which replicas serve this store. Membership is itself leases in the store: each replica holds one under
 * its own name with its address, and is a member while that lease lives. A replica that dies, hangs or
 * cannot reach the store drops out when its lease ends.
 *
 * Members only help clients to find a key's home. Nothing depends on them for being correct.
 */
import { type Env, type LeaseManager, Leases } from "solehold";
import type { Logger } from "../telemetry/log.ts";

export interface ReplicaMember {
  readonly nodeId: string;
  readonly url: string;
  readonly weight: number;
}

export interface MembershipOptions {
  readonly env: Env;
  readonly manager: LeaseManager;
  readonly log: Logger;
  readonly weight: number;
}

/** Beside the users' tenants: a key for the API can be given for it, but needs not. */
export const SYSTEM_TENANT = "solehold";
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
    const { manager, env } = this.#options;
    const leases = new Leases({ manager, env, tenant: SYSTEM_TENANT, holder: nodeId });
    this.#membership = this.#stand(leases, nodeId, url);
  }

  /** Those who are alive, by name. Rejects when the store cannot say. */
  async members(): Promise<readonly ReplicaMember[]> {
    const { manager } = this.#options;
    const page = await manager.list({
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

  async #stand(leases: Leases, nodeId: string, url: string): Promise<void> {
    const { signal } = this.#leaving;
    const { env, log, weight } = this.#options;
    const note = `${url} ${weight}`;
    while (!signal.aborted) {
      try {
        for await (const term of leases.elect(`${PREFIX}${nodeId}`, {
          ttl: TTL_MS,
          note,
          signal,
          keepAlive: "no",
        })) {
          await ended(term.signal, signal);
        }
      } catch (error) {
        log.warn({ err: error }, "this replica could not be announced; trying again");
        await pause(env, TTL_MS, signal);
      }
    }
  }
}

function pause(env: Env, forMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      timer.cancel();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = env.timer(forMs, done);
    signal.addEventListener("abort", done);
  });
}

function ended(...signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const any = AbortSignal.any([...signals]);
    if (any.aborted) resolve();
    else any.addEventListener("abort", () => resolve(), { once: true });
  });
}
