/**
 * The command pipeline. Everything between an edge (library call, HTTP, stream, command line, simulator) and a store is
 * one function: `execute`. A `StoreExecutor` decides over a store, a `RemoteExecutor` asks a server; approvals, quota,
 * audit and waiting are layers of the same signature around one of the two.
 */
import type { ApprovalVerdict, DriftBound, LeaseKey, LeasePolicy } from "../core/index.ts";
import type { ListQuery, StoredRecord, StoreWatch, WatchListener, WatchScope } from "../store/index.ts";
import type { CommandOutcome } from "./outcome.ts";
import type { LeaseRequest } from "./request.ts";
import type { LeaseView } from "./view.ts";
import type { WaitTickets } from "./wait-tickets.ts";

/** What an executor does beyond deciding. A request that needs a feature is refused by an executor without it. */
export type Feature =
  /** Checks `request.approval` against a policy. */
  | "approvals"
  /** Writes every decision to an audit trail before it answers. */
  | "audit"
  /** An acquire may wait for its turn: `context.wait`. */
  | "queue";

/** How long an acquire may wait for its turn. */
export interface WaitOptions {
  readonly waitMs: number;
  /** Ends the wait: the caller does not want the lease any more. */
  readonly signal?: AbortSignal;
  /** Called once the acquire has to wait, and again when its position changes. Must not throw. */
  readonly onWaiting?: (details: WaitingDetails) => void;
}

/** What an acquire waits for, as far as its process knows. Instants are the store's. */
export interface WaitingDetails {
  readonly holder: string | null;
  /** Since when the holder has it. */
  readonly sinceMs: number | null;
  /** Among the waiters of this process; 0 is next. */
  readonly position: number;
  /** Until when, if nobody renews it. */
  readonly heldUntilMs: number | null;
}

/** The caller behind a request, which may be gone before the answer. */
export interface Recipient {
  /** Nobody will read the answer any more. */
  isGone(): boolean;
  /** The caller said that it does not want the answer any more, and will not repeat the request. */
  isCancelled(): boolean;
  /** Calls back when it goes before it was answered. Returns how to stop that. */
  onGone(listener: () => void): () => void;
}

/** What belongs to the call and not to the request: the same request may be made in another context. */
export interface CallContext {
  /** Names the attempt in the audit and in logs. Random when not given. */
  readonly traceId?: string;
  /** The authenticated caller. Idempotency keys are bound to it. */
  readonly caller?: string;
  /** The network address that the request came from, for the audit. */
  readonly address?: string;
  /** Only for an executor with the feature "queue". Without it an acquire is answered at once. */
  readonly wait?: WaitOptions;
  /** Only for an executor with the feature "queue": what is granted to a recipient that has gone is released again. */
  readonly recipient?: Recipient;
  /** Set by the wait queue: how long the acquire has waited there. It is for the audit, and decides nothing. */
  readonly waitedMs?: number;
  /** Set by the quota layer. */
  readonly quotaExhausted?: boolean;
  /** Set by the approvals layer, null where nothing stands against the command. Absent where nobody checked. */
  readonly approval?: ApprovalVerdict | null;
}

export interface LeaseListing {
  readonly leases: readonly LeaseView[];
  readonly corrupt: readonly { readonly key: LeaseKey; readonly detail: string }[];
  /** Where the next page begins; null after the last. */
  readonly next: string | null;
}

/** How many wait for a key in one process. */
export interface QueueLength {
  readonly key: LeaseKey;
  readonly waiting: number;
}

/** After a reset the lengths that are not zero come again. */
export type QueueEvent = ({ readonly kind: "length" } & QueueLength) | { readonly kind: "reset" };
export type QueueListener = (event: QueueEvent) => void;

export interface LeaseExecutor {
  readonly policy: LeasePolicy;
  readonly drift: DriftBound;
  readonly features: ReadonlySet<Feature>;
  /** Decides and carries out one command. Never rejects. */
  execute(request: LeaseRequest, context?: CallContext): Promise<CommandOutcome>;
  /** Null when nothing was ever granted, or the record was collected. Rejects with StoreError or CorruptRecordError. */
  read(key: LeaseKey): Promise<LeaseView | null>;
  list(query: ListQuery): Promise<LeaseListing>;
  /** Null when the store cannot announce changes. `onQueue`: only a server knows who waits, and calls it. */
  watch(scope: WatchScope, listener: WatchListener, onQueue?: QueueListener): Promise<StoreWatch | null>;
  /** A watch event showed this record: a hint that may save a read before the next attempt. */
  onHint?(key: LeaseKey, stored: StoredRecord): void;
  /** How processes that wait for a key know of each other; absent where the store cannot announce changes. */
  readonly tickets?: WaitTickets | undefined;
  close(): Promise<void>;
}

/** Adds one concern to an executor. */
export type Layer = (next: LeaseExecutor) => LeaseExecutor;

/** What a layer is made of: it forwards everything to the executor below, and each layer replaces its own part. */
export class ExecutorLayer implements LeaseExecutor {
  readonly policy: LeasePolicy;
  readonly drift: DriftBound;
  readonly features: ReadonlySet<Feature>;
  readonly tickets: WaitTickets | undefined;
  protected readonly next: LeaseExecutor;

  constructor(next: LeaseExecutor, features = next.features) {
    this.next = next;
    this.policy = next.policy;
    this.drift = next.drift;
    this.features = features;
    this.tickets = next.tickets;
  }

  execute(request: LeaseRequest, context?: CallContext): Promise<CommandOutcome> {
    return this.next.execute(request, context);
  }

  read(key: LeaseKey): Promise<LeaseView | null> {
    return this.next.read(key);
  }

  list(query: ListQuery): Promise<LeaseListing> {
    return this.next.list(query);
  }

  watch(scope: WatchScope, listener: WatchListener, onQueue?: QueueListener): Promise<StoreWatch | null> {
    return this.next.watch(scope, listener, onQueue);
  }

  onHint(key: LeaseKey, stored: StoredRecord): void {
    this.next.onHint?.(key, stored);
  }

  close(): Promise<void> {
    return this.next.close();
  }
}

/** A layer that replaces these members. */
export function layerOver(next: LeaseExecutor, members: Partial<LeaseExecutor>): LeaseExecutor {
  return Object.assign(new ExecutorLayer(next), members);
}

/** The features of `next`, and one more. */
export function withFeature(next: LeaseExecutor, feature: Feature): ReadonlySet<Feature> {
  return new Set([...next.features, feature]);
}
