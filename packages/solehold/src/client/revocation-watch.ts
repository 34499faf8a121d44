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
    let knownBreakMs: number | null = null;
    const look = async (stored: StoredRecord | null): Promise<void> => {
      if (!this.#watches.has(lease)) return;
      // A read that fails leads to a renewal: it may be the one that met the loss of the store's data.
      const record = await this.#recordOf(lease, stored).catch(() => null);
      const isLive = record !== null && isHeldAs(lease, record);
      // The renewal that a break leads to is an event of its own, with the same break: it must not lead to the next.
      if (isLive && record.breakAtMs === knownBreakMs) return;
      if (isLive) knownBreakMs = record.breakAtMs;
      if (this.#watches.has(lease)) lease.renewNow();
    };
    const onEvent = (event: StoreEvent): void => {
      if (event.kind === "changed" && keyId(event.key) !== keyId(lease.key)) return;
      void look(event.kind === "changed" ? event.stored : null);
    };
    // A watch that fails leaves the lease to its renewals.
    const watch = this.#executor.watch({ tenant, prefix: name }, onEvent).catch(() => null);
    this.#watches.set(lease, watch);
    // What happened before it was open was announced to nobody.
    void watch.then((opened) => (opened === null ? undefined : look(null)));
  }

  remove(lease: RevocableLease): void {
    const watch = this.#watches.get(lease);
    this.#watches.delete(lease);
    watch?.then((opened) => opened?.close()).catch(() => undefined);
  }

  /** An event without the record is followed by a read: a renewal instead would cause the next event, without end. */
  async #recordOf({ key }: RevocableLease, stored: StoredRecord | null): Promise<WatchedRecord | null> {
    if (stored === null) return await this.#executor.read(key);
    return stored.kind === "found" ? stored.record : null;
  }
}

type WatchedRecord = Pick<LeaseRecord, "term" | "generation" | "state" | "breakAtMs">;

function isHeldAs({ fence }: RevocableLease, { term, generation, state }: WatchedRecord): boolean {
  return state === "held" && fenceOf(term, generation) === fence;
}
