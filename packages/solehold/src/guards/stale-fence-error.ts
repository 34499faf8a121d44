import { LeaseError } from "../client/errors.ts";
import { keyId, type LeaseKey } from "../core/index.ts";

/** A protected resource has seen a newer fence: this writer's lease is gone, whatever it believes. */
export class StaleFenceError extends LeaseError {
  override readonly name = "StaleFenceError";
  readonly fence: bigint;
  readonly newestFence: bigint;

  constructor(key: LeaseKey, fence: bigint, newestFence: bigint) {
    super(
      `fence ${fence} of ${keyId(key)} is older than ${newestFence}, which was already used: nothing was written`,
      { code: "STALE_FENCE", key },
    );
    this.fence = fence;
    this.newestFence = newestFence;
  }
}
