/**
 * The line before one key: who waits, in order of arrival, and what is known to stand in their way. It only
 * remembers; asking is the queue's work.
 */
import {
  type CommandOutcome,
  type LeaseKey,
  type LeaseRecord,
  type LeaseView,
  type Reason,
  recordFence,
  type Timer,
} from "solehold";
import type { AcquireRequest, CallContext } from "solehold/internal";
import type { Connection } from "../access/call.ts";

/** An acquire whose token was chosen here, so that the grant can be given back whatever the reply was. */
export type WaitRequest = AcquireRequest & { readonly token: string };

export interface WaitOptions {
  readonly waitMs: number;
  readonly connection: Connection;
  /** How the caller could find the grant by repeating the request: it chose the token, or a key. */
  readonly repeatable: "no" | "by token" | "by key";
}

export interface Waiter {
  readonly request: WaitRequest;
  readonly context: CallContext;
  readonly options: WaitOptions;
  /** On the server's monotonic clock. */
  readonly sinceMs: number;
  readonly untilMs: number;
  resolve(reply: CommandOutcome): void;
  reject(error: unknown): void;
  /** Ends its timer, and its interest in the connection. */
  stop(): void;
  /** Still in the line. */
  present: boolean;
  /** Got the reply of its own attempt. */
  answered: boolean;
  /** Its time ran out while its own attempt was under way. */
  timedOut: boolean;
  /** Its last attempt. */
  last: CommandOutcome | null;
}

export interface Obstacle {
  readonly reason: Reason;
  readonly heldBy: string | null;
  readonly heldUntilMs: number | null;
}

export class Line {
  readonly key: LeaseKey;
  readonly waiters: Waiter[] = [];
  /** A look or an attempt that is under way. */
  attempt: Promise<void> | null = null;
  /** Whose attempt it is. */
  trying: Waiter | null = null;
  /** Something happened during the attempt that makes another one worth while. */
  again = false;
  timer: Timer | null = null;
  /** Looks in a row that found the same obstacle. */
  looks = 0;
  /** Since when, on the server's monotonic clock, those looks found the same. */
  sameSinceMs = 0;
  #obstacle: Obstacle | null = null;
  #newestFence = 0n;
  /** The write that ended the lease, as far as the line was told: decisions and news tell it twice. */
  #knownEnd: string | null = null;
  #successor: string | null = null;

  constructor(key: LeaseKey) {
    this.key = key;
  }

  get obstacle(): Obstacle | null {
    return this.#obstacle;
  }

  /** Who may ask: the successor to whom the lease is being handed, else the first. */
  next(): Waiter | undefined {
    const successor = this.#successor;
    const named =
      successor === null ? undefined : this.waiters.find(({ request }) => request.holder === successor);
    return named ?? this.waiters[0];
  }

  /** The record that now stands under the key, perhaps old news. */
  learn(record: LeaseRecord | null): "worth a look" | "nothing new" {
    if (record === null) return "worth a look";
    const fence = recordFence(record);
    if (fence < this.#newestFence) return "nothing new";
    this.#newestFence = fence;
    if (record.state === "held") {
      this.#block({ reason: "LEASE_HELD_BY_OTHER", heldBy: record.holder, heldUntilMs: record.expiresAtMs });
      return "nothing new";
    }
    if (record.nonce === this.#knownEnd) return "nothing new";
    this.#knownEnd = record.nonce;
    this.#successor = record.handoff?.successor ?? null;
    this.#obstacle = null;
    return "worth a look";
  }

  /** Whether no newer grant of the key is known. */
  isCurrent(record: LeaseRecord): boolean {
    return recordFence(record) >= this.#newestFence;
  }

  /** What a look found. */
  see(view: LeaseView): void {
    this.#block({ reason: "LEASE_HELD_BY_OTHER", heldBy: view.holder, heldUntilMs: view.expiresAtMs });
  }

  /** How an attempt ended. */
  remember(outcome: CommandOutcome): void {
    if (outcome.kind === "applied") {
      this.learn(outcome.decision.lease);
      this.#successor = null;
    }
    if (outcome.kind !== "refused" || outcome.decision.kind !== "denied") return;
    const { reason, heldBy, heldUntilMs } = outcome.decision;
    this.#successor = reason === "LEASE_HANDOFF_PENDING" ? heldBy : null;
    this.#block({ reason, heldBy, heldUntilMs });
  }

  /** Whether nothing that is known stands in the way any more. */
  isDue(nowMs: number): boolean {
    const heldUntilMs = this.#obstacle?.heldUntilMs ?? null;
    return heldUntilMs === null || heldUntilMs <= nowMs;
  }

  #block(obstacle: Obstacle): void {
    if (obstacle.heldUntilMs !== this.#obstacle?.heldUntilMs) this.looks = 0;
    this.#obstacle = obstacle;
  }
}
