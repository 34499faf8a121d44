/**
 * Brings a revocation, a break or a takeover to the holder at once where the store can announce changes, instead of at the
 * next renewal. An event decides nothing: it makes the handle renew now, and the store's answer counts.
 *
 * A watch costs the store a subscription, so only leases whose end somebody observes (by `signal` or `onStateChange`) are
 * watched, and at most MAX_WATCHED of a client at a time; the others learn of it at their next renewal.
 */
import { fenceOf, keyId, type LeaseKey, type LeaseRecord } from "../core/index.ts";
import type { LeaseExecutor } from "../executor/index.ts";
import type { StoredRecord, StoreEvent, StoreWatch } from "../store/index.ts";

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
    const onEvent = async (event: StoreEvent): Promise<void> => {
      if (event.kind !== "changed" || keyId(event.key) !== keyId(lease.key)) return;
      if ((await this.#mayBeOver(lease, event.stored)) && this.#watches.has(lease)) lease.renewNow();
    };
    // A watch that fails leaves the lease to its renewals.
    const watch = this.#executor
      .watch({ tenant, prefix: name }, (event) => void onEvent(event).catch(() => undefined))
      .catch(() => null);
    this.#watches.set(lease, watch);
  }

  remove(lease: RevocableLease): void {
    const watch = this.#watches.get(lease);
    this.#watches.delete(lease);
    watch?.then((opened) => opened?.close()).catch(() => undefined);
  }

  /** An event without the record is followed by a read: a renewal instead would cause the next event, without end. */
  async #mayBeOver({ key, fence }: RevocableLease, stored: StoredRecord | null): Promise<boolean> {
    const record = stored === null ? await this.#executor.read(key) : recordIn(stored);
    if (record === null) return true;
    const isOwn = fenceOf(record.term, record.generation) === fence;
    return !isOwn || record.state !== "held" || record.breakAtMs !== null;
  }
}

function recordIn(stored: StoredRecord): LeaseRecord | null {
  return stored.kind === "found" ? stored.record : null;
}
