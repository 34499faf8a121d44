/**
 * Brings a revocation, a break or a takeover to the holder at once where the store can announce changes, instead of at the
 * next renewal. An event decides nothing: it makes the handle renew now, and the store's answer counts.
 *
 * A watch costs the store a subscription, so only leases whose end somebody observes (by `signal` or `onStateChange`) are
 * watched, and at most MAX_WATCHED of a client at a time; the others learn of it at their next renewal.
 */
import { keyId, type LeaseKey, type LeaseRecord, recordFence } from "../core/index.ts";
import type { LeaseExecutor } from "../executor/index.ts";
import type { StoreEvent, StoreWatch } from "../store/index.ts";

export const MAX_WATCHED = 64;

export interface RevocableLease {
  readonly key: LeaseKey;
  readonly fence: bigint;
  renewNow(): void;
}

export class RevocationWatch {
  readonly #executor: LeaseExecutor;
  readonly #watches = new Map<RevocableLease, Promise<StoreWatch | null>>();

  constructor(executor: LeaseExecutor) {
    this.#executor = executor;
  }

  add(lease: RevocableLease): void {
    if (this.#watches.has(lease) || this.#watches.size >= MAX_WATCHED) return;
    const { tenant, name } = lease.key;
    const onEvent = (event: StoreEvent): void => {
      if (this.#watches.has(lease) && mayEnd(lease, event)) lease.renewNow();
    };
    // A watch that fails leaves the lease to its renewals.
    const watch = this.#executor.watch({ tenant, prefix: name }, onEvent).catch(() => null);
    this.#watches.set(lease, watch);
  }

  remove(lease: RevocableLease): void {
    const watch = this.#watches.get(lease);
    this.#watches.delete(lease);
    watch?.then((opened) => opened?.close()).catch(() => undefined);
  }
}

/** Whether the event shows that the lease was ended or asked for by somebody else. */
function mayEnd({ key, fence }: RevocableLease, event: StoreEvent): boolean {
  if (event.kind !== "changed" || keyId(event.key) !== keyId(key)) return false;
  return event.stored?.kind === "found" && isEnded(event.stored.record, fence);
}

function isEnded(record: LeaseRecord, fence: bigint): boolean {
  return recordFence(record) !== fence || record.state !== "held" || record.breakAtMs !== null;
}
