/**
 * Whether other processes may wait for a key, for a process that asks so for very many: one listing of all tickets of the
 * tenant answers for every key that is asked for while it is fresh. A ticket that is written later is seen by the next look.
 */
import type { LeaseKey } from "../core/index.ts";
import type { Env } from "../env/index.ts";
import type { WaitTickets } from "../executor/index.ts";
import { BoundedMap } from "../support/bounded-map.ts";

interface Listing {
  readonly sinceMs: number;
  readonly mayHave: Promise<(key: LeaseKey) => boolean>;
}

/** A key is looked at once a second at most (own-grants.ts): this is little beside it. */
const FRESH_MS = 100;
const MAX_TENANTS = 1_000;

export class TicketLooks {
  readonly #env: Env;
  readonly #listings = new BoundedMap<Listing>(MAX_TENANTS);

  constructor(env: Env) {
    this.#env = env;
  }

  /** Never false for a key that had a ticket FRESH_MS ago. Rejects with a StoreError. */
  async mayHave(tickets: WaitTickets, key: LeaseKey): Promise<boolean> {
    const nowMs = this.#env.monotonicMs();
    const last = this.#listings.get(key.tenant);
    if (last !== undefined && nowMs - last.sinceMs < FRESH_MS) return (await last.mayHave)(key);
    const mayHave = tickets.mayHave(key.tenant);
    this.#listings.set(key.tenant, { sinceMs: nowMs, mayHave });
    return (await mayHave)(key);
  }
}
