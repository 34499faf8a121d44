/**
 * What this process was granted lately, and how it uses it. A process that takes a key again and again, and never has to
 * wait for it, would never learn that others wait: so now and then it looks for their tickets.
 */
import { BoundedMap } from "../support/bounded-map.ts";

interface OwnGrant {
  fence: bigint;
  releasedMs: number;
  lookAtMs: number;
  pauseMs: number;
}

const MAX_KEYS = 10_000;
/** A key that is left alone for so long is not taken again and again. */
const LONGEST_GAP_MS = 500;
const FIRST_LOOK_MS = 100;
const SLOWEST_LOOK_MS = 1_000;

export class OwnGrants {
  readonly #grants = new BoundedMap<OwnGrant>(MAX_KEYS);

  /** The fence of the last grant; -1 when none is remembered. */
  fenceOf(id: string): bigint {
    return this.#grants.get(id)?.fence ?? -1n;
  }

  granted(id: string, fence: bigint): void {
    const known = this.#grants.get(id);
    if (known !== undefined) known.fence = fence;
    else this.#grants.set(id, { fence, releasedMs: Number.NEGATIVE_INFINITY, lookAtMs: 0, pauseMs: 0 });
  }

  /** Whether it is time to look for others who wait. */
  released(id: string, nowMs: number): boolean {
    const grant = this.#grants.get(id);
    if (grant === undefined) return false;
    const isAgain = nowMs - grant.releasedMs < LONGEST_GAP_MS;
    grant.releasedMs = nowMs;
    if (isAgain && nowMs < grant.lookAtMs) return false;
    grant.pauseMs = isAgain ? Math.min(SLOWEST_LOOK_MS, grant.pauseMs * 2) : FIRST_LOOK_MS;
    grant.lookAtMs = nowMs + grant.pauseMs;
    return isAgain;
  }
}
