/**
 * Changes of leases, for watchers: numbered in the order in which this process learned of them, the
 * last of them kept, so that a watcher that comes back gets what it missed.
 *
 * Events are hints: they may be doubled or late, and after a gap a watcher gets "reset", which means:
 * list again, then go on from here. The numbers belong to this process; another one answers "reset".
 */

import type { LeaseKey } from "solehold";
import {
  type CommandOutcome,
  type Env,
  encodeLease,
  isInScope,
  type Layer,
  type LeaseRecord,
  type LeaseService,
  layerOver,
  type RecordEvent,
  type StoredRecord,
  type StoreWatch,
  type Timer,
  viewOf,
  type WatchEvent,
  type WatchKind,
  type WatchScope,
  watchRecords,
} from "solehold/internal";
import { FanOut } from "./fan-out.ts";

export interface WatchHubOptions {
  readonly env: Env;
  readonly service: LeaseService;
  /** How many events are kept for those who come back. */
  readonly backlog: number;
}

export type WatchListener = (event: WatchEvent) => void;

interface Kept {
  readonly sequence: number;
  readonly kind: WatchKind;
  readonly key: LeaseKey;
  readonly record: LeaseRecord | null;
}

const RECONNECT_MS = 1_000;

export class WatchHub {
  readonly #options: WatchHubOptions;
  readonly #epoch: string;
  readonly #watchers: FanOut<Kept>;
  /** Made once for all who watch. */
  #latest: { readonly kept: Kept; readonly event: WatchEvent } | null = null;
  /** A ring: event n lies at n modulo the backlog. */
  readonly #ring: Kept[] = [];
  /** The last event's number; 0 before the first. */
  #sequence = 0;
  /** What was before this is not known: a gap, or the start. */
  #firstKnown = 1;
  #watch: StoreWatch | null = null;
  #retry: Timer | null = null;
  #stopExpiries: () => void = () => undefined;
  #closed = false;

  constructor(options: WatchHubOptions) {
    this.#options = options;
    this.#watchers = new FanOut(options.env);
    this.#epoch = Buffer.from(options.env.randomBytes(6)).toString("base64url");
  }

  get watchers(): number {
    return this.#watchers.size;
  }

  /** The token of now. */
  get token(): string {
    return `${this.#epoch}.${this.#sequence}`;
  }

  /** Of this process, and not of the future. */
  isToken(text: string): boolean {
    return this.#sequenceOf(text) !== null;
  }

  async start(): Promise<void> {
    this.#stopExpiries = this.#options.service.onExpired((record) =>
      this.#publish("expired", record.key, record),
    );
    await this.#follow();
  }

  /** A layer: decisions of this process are published where the store announces nothing itself. */
  readonly layer: Layer = (next) =>
    layerOver(next, {
      execute: async (request, context) => {
        const outcome = await next.execute(request, context);
        if (this.#watch === null && request.op !== "use") this.#decided(outcome);
        return outcome;
      },
    });

  /**
   * Everything in the scope from now on, or from `after` on. The first call of the listener may come before
   * this returns. Returns how to stop.
   */
  subscribe(scope: WatchScope, after: string | null, listener: WatchListener): () => void {
    // Expiries are only announced in tenants whose live leases are known.
    if (scope.tenant !== null) this.#options.service.activeCount(scope.tenant).catch(() => undefined);
    if (after !== null) this.#catchUp(scope, listener, after);
    return this.#watchers.add(scope.tenant, {
      push: (kept) => {
        if (isInScope(scope, kept.key)) listener(this.#eventOf(kept));
      },
      missed: () => listener({ kind: "reset", token: this.token }),
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#stopExpiries();
    this.#retry?.cancel();
    await this.#watch?.close().catch(() => undefined);
  }

  async #follow(): Promise<void> {
    const { env, service } = this.#options;
    if (!service.executor.store.capabilities.watch || this.#closed) return;
    try {
      const all = { tenant: null, prefix: "" };
      this.#watch = await watchRecords(service.executor, env, all, (event) => this.#onStoreEvent(event));
    } catch {
      // Until it works, the decisions of this process are all that watchers see.
      this.#retry = env.timer(RECONNECT_MS, () => void this.#follow());
      return;
    }
    if (this.#retry !== null) this.#reset();
    this.#retry = null;
  }

  /** What a release replaced by the next grant with the same write never stood in the store. */
  #decided(outcome: CommandOutcome): void {
    if (outcome.kind !== "applied") return;
    const { lease } = outcome.next?.kind === "applied" ? outcome.next.decision : outcome.decision;
    this.#publish("changed", lease.key, lease);
  }

  #onStoreEvent(event: RecordEvent): void {
    if (event.kind === "reset") this.#reset();
    else this.#publish(kindOf(event.stored), event.key, recordIn(event.stored));
  }

  #publish(kind: WatchKind, key: LeaseKey, record: LeaseRecord | null): void {
    if (key.name.startsWith("$")) return;
    this.#sequence += 1;
    const kept: Kept = { sequence: this.#sequence, kind, key, record };
    this.#ring[this.#sequence % this.#options.backlog] = kept;
    this.#watchers.publish(key.tenant, kept);
  }

  /** Some changes were missed: watchers have to list again, also those that come back later. */
  #reset(): void {
    this.#sequence += 1;
    this.#firstKnown = this.#sequence + 1;
    this.#watchers.publishGap();
  }

  #catchUp(scope: WatchScope, listener: WatchListener, after: string): void {
    const sequence = this.#sequenceOf(after);
    const oldest = Math.max(this.#firstKnown, this.#sequence - this.#options.backlog + 1);
    if (sequence === null || sequence < oldest - 1) {
      listener({ kind: "reset", token: this.token });
      return;
    }
    for (let next = sequence + 1; next <= this.#sequence; next += 1) {
      const kept = this.#ring[next % this.#options.backlog];
      if (kept?.sequence === next && isInScope(scope, kept.key)) listener(this.#eventOf(kept));
    }
  }

  /** Null for a token of another process, or of none. */
  #sequenceOf(token: string): number | null {
    const [epoch, digits = ""] = token.split(".", 2);
    if (epoch !== this.#epoch || !/^\d{1,15}$/.test(digits)) return null;
    const sequence = Number(digits);
    return sequence <= this.#sequence ? sequence : null;
  }

  #eventOf(kept: Kept): WatchEvent {
    if (this.#latest?.kept !== kept) this.#latest = { kept, event: this.#encode(kept) };
    return this.#latest.event;
  }

  #encode({ sequence, kind, key, record }: Kept): WatchEvent {
    const { executor } = this.#options.service;
    const base = { kind, token: `${this.#epoch}.${sequence}`, tenant: key.tenant, name: key.name };
    if (record === null) return base;
    return { ...base, lease: encodeLease(viewOf(record, executor.storeNowMs(), executor.policy)) };
  }
}

/** Of a record that cannot be read watchers see that it changed, without a lease. */
function kindOf({ kind }: StoredRecord): WatchKind {
  return kind === "absent" ? "deleted" : "changed";
}

function recordIn(stored: StoredRecord): LeaseRecord | null {
  return stored.kind === "found" ? stored.record : null;
}
