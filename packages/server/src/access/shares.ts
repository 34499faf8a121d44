/**
 * What there is a limited number of: places in wait queues, watches, connections. One caller, or one tenant, has at most
 * its share of them, so that none can shut out all others. The user of this machine, without API keys, is alone here.
 */
import { ProblemError, tooMany } from "../protocol/problem.ts";
import { LOCAL_PRINCIPAL, type Principal } from "./principal.ts";

const RETRY_MS = 1_000;

export class Shares {
  readonly #what: string;
  readonly #limit: number;
  readonly #share: number;
  #total = 0;
  readonly #taken = new Map<string, number>();

  /** `limit`: for all together. */
  constructor(what: string, limit: number, percent: number) {
    this.#what = what;
    this.#limit = limit;
    this.#share = Math.max(1, Math.floor((limit * percent) / 100));
  }

  /** One more. Throws a ProblemError with status 429. Returns how to free it, which may be called twice. */
  take(principal: Principal, tenant?: string): () => void {
    const owners = principal === LOCAL_PRINCIPAL ? [] : ownersOf(principal, tenant);
    if (this.#total >= this.#limit) throw this.#full("this server", this.#limit);
    for (const [who, id] of owners) {
      if ((this.#taken.get(id) ?? 0) >= this.#share) throw this.#full(who, this.#share);
    }
    const change = (by: 1 | -1): void => {
      this.#total += by;
      for (const [, id] of owners) this.#change(id, by);
    };
    change(1);
    let isFreed = false;
    return () => {
      if (!isFreed) change(-1);
      isFreed = true;
    };
  }

  #full(who: string, most: number): ProblemError {
    return new ProblemError(tooMany(`${who} may have ${most} ${this.#what} at a time`, RETRY_MS));
  }

  #change(owner: string, by: 1 | -1): void {
    const taken = (this.#taken.get(owner) ?? 0) + by;
    if (taken === 0) this.#taken.delete(owner);
    else this.#taken.set(owner, taken);
  }
}

type Owner = readonly [who: string, id: string];

function ownersOf({ id }: Principal, tenant: string | undefined): readonly Owner[] {
  const key: Owner = ["this API key", `key ${id}`];
  return tenant === undefined ? [key] : [key, ["this tenant", `tenant ${tenant}`]];
}

/** Of everything that callers share. */
export interface SharedLimits {
  readonly waiters: Shares;
  readonly watches: Shares;
  readonly connections: Shares;
}
