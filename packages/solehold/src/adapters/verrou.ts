/**
 * `solehold/adapters/verrou`: a store for @verrou/core. Its locks are leases: judged by the store's clock, fenced, visible
 * to `solehold ls`, and exclusive with leases that are taken directly.
 *
 * Not promised: a signal or a fence for the work under a lock. The interface has no place for them: use `leases.run`.
 */
import { createHash } from "node:crypto";
import { type Lease, LeaseDeniedError, LeaseHeldError, type Leases } from "../client/index.ts";
import { failureOf } from "../client/outcome-errors.ts";
import { type LeaseKey, recordFence, writeTransfer } from "../core/index.ts";
import { randomId, realEnv } from "../env/index.ts";

/** What @verrou/core asks of a store. */
export interface LockStore {
  save(key: string, owner: string, ttl: number | null): Promise<boolean>;
  delete(key: string, owner: string): Promise<void>;
  forceDelete(key: string): Promise<void>;
  exists(key: string): Promise<boolean>;
  extend(key: string, owner: string, duration: number): Promise<void>;
}

export interface SoleholdStoreOptions {
  readonly leases: Leases;
  /** The error class of the @verrou/core that the program uses: `import { E_LOCK_NOT_OWNED } from "@verrou/core"`. */
  readonly E_LOCK_NOT_OWNED: new () => Error;
}

export function soleholdStore(options: SoleholdStoreOptions): { factory(): LockStore } {
  return { factory: () => new SoleholdStore(options) };
}

interface Proof {
  readonly key: LeaseKey;
  readonly holder: string;
  readonly token: string;
}

/**
 * A lock is known by its owner, a random word, and another process may restore it from that alone. So the token of the
 * lease is made of the owner and of a salt that the lease's note shows: whoever knows the owner can prove the grant, the
 * same owner cannot take it twice, and the store has neither of the two secrets.
 */
export class SoleholdStore implements LockStore {
  readonly #leases: Leases;
  readonly #notOwned: new () => Error;
  /** Locks without a ttl, which this process renews for as long as it lives. */
  readonly #endless = new Map<string, Lease>();

  constructor({ leases, E_LOCK_NOT_OWNED }: SoleholdStoreOptions) {
    if (typeof E_LOCK_NOT_OWNED !== "function")
      throw new TypeError("E_LOCK_NOT_OWNED must be the class of that name, imported from @verrou/core");
    this.#leases = leases;
    this.#notOwned = E_LOCK_NOT_OWNED;
  }

  async save(name: string, owner: string, ttl: number | null | undefined): Promise<boolean> {
    const { executor, holder } = this.#leases;
    const key = this.#key(name);
    const salt = randomId(realEnv);
    const token = tokenOf(owner, salt);
    const ttlMs = ttl ?? executor.policy.defaultTtlMs;
    const outcome = await executor.execute({ op: "acquire", key, holder, token, ttlMs, note: NOTE + salt });
    if (outcome.kind !== "applied") {
      const failure = failureOf(key, outcome);
      if (failure instanceof LeaseHeldError) return false;
      throw failure;
    }
    if (typeof ttl === "number") return true;
    const fence = recordFence(outcome.decision.lease);
    const secret = writeTransfer({ key, holder, token, ttlMs, fence });
    this.#endless.set(idOf(name, owner), await this.#leases.adopt(secret));
    return true;
  }

  async delete(name: string, owner: string): Promise<void> {
    const proof = await this.#proof(name, owner);
    this.#forget(idOf(name, owner));
    await this.#prove({ op: "release", ...proof });
  }

  async extend(name: string, owner: string, duration: number): Promise<void> {
    await this.#prove({ op: "renew", ...(await this.#proof(name, owner)), ttlMs: duration });
  }

  /** The next owner still waits until the last one can no longer believe that it has the lock. */
  async forceDelete(name: string): Promise<void> {
    await this.#leases.revoke(name).catch((error: unknown) => {
      if (!(error instanceof LeaseDeniedError)) throw error; // else: there is nothing to end
    });
  }

  async exists(name: string): Promise<boolean> {
    return (await this.#leases.inspect(name))?.live === true;
  }

  async #proof(name: string, owner: string): Promise<Proof> {
    const view = await this.#leases.inspect(name);
    if (view?.live !== true || !view.note.startsWith(NOTE)) throw new this.#notOwned();
    return { key: view.key, holder: view.holder, token: tokenOf(owner, view.note.slice(NOTE.length)) };
  }

  async #prove(
    request: Proof & ({ readonly op: "release" } | { readonly op: "renew"; readonly ttlMs: number }),
  ) {
    const outcome = await this.#leases.executor.execute(request);
    if (outcome.kind === "applied") return;
    if (outcome.kind === "refused" && outcome.decision.kind === "denied") throw new this.#notOwned();
    throw failureOf(request.key, outcome);
  }

  #forget(id: string): void {
    this.#endless.get(id)?.abandon();
    this.#endless.delete(id);
  }

  #key(name: string): LeaseKey {
    return { tenant: this.#leases.tenant, name };
  }
}

const NOTE = "verrou ";
const idOf = (name: string, owner: string): string => JSON.stringify([name, owner]);
const tokenOf = (owner: string, salt: string): string =>
  createHash("sha256")
    .update(JSON.stringify([owner, salt]))
    .digest("base64url");
