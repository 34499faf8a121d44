/**
 * The wait queues that the reference store keeps: a release wakes the first waiter of the key, and nobody else. They
 * decide nothing. What they send may get lost on its way, and a waiter that was woken may do nothing about it.
 */

import type { StoredRecord } from "solehold/internal";
import { keyId, type LeaseKey } from "solehold/internal";

/** A waiter, as the store knows it. */
export interface QueuedWaiter {
  /** False once its connection is gone. */
  isConnected(): boolean;
  wake(stored: StoredRecord): void;
}

interface Queue {
  /** In the order of their tickets. */
  readonly waiting: Ticket[];
  woken: { readonly waiter: QueuedWaiter; readonly atMs: number } | null;
}

interface Ticket {
  readonly number: number;
  readonly waiter: QueuedWaiter;
}

/** For so long newcomers leave the key to the waiter that was woken. */
const GRACE_MS = 100;

export class WaitQueues {
  readonly #queues = new Map<string, Queue>();
  #tickets = 0;

  /**
   * Takes up that ticket, or one at the end; wakes at once when the key is free and nobody was woken just now. Returns
   * the ticket's number.
   */
  enter(
    key: LeaseKey,
    waiter: QueuedWaiter,
    before: number | null,
    stored: StoredRecord,
    nowMs: number,
  ): number {
    const queue = this.#queueOf(key);
    const standing = queue.waiting.find((ticket) => ticket.waiter === waiter);
    if (standing !== undefined) return standing.number;
    this.#tickets += 1;
    const ticket = { number: before ?? this.#tickets, waiter };
    queue.waiting.push(ticket);
    queue.waiting.sort((a, b) => a.number - b.number);
    const isPending = queue.woken !== null && nowMs - queue.woken.atMs < GRACE_MS;
    if (isFree(stored) && !isPending) this.#wake(queue, ticket, stored, nowMs);
    return ticket.number;
  }

  /** "gone": if it had been woken, the next one is. */
  leave(
    key: LeaseKey,
    waiter: QueuedWaiter,
    why: "served" | "gone",
    stored: StoredRecord,
    nowMs: number,
  ): void {
    const queue = this.#queueOf(key);
    const wasWoken = queue.woken?.waiter === waiter;
    this.#remove(queue, waiter);
    if (why === "gone" && wasWoken && isFree(stored)) this.#wakeNext(queue, stored, nowMs);
  }

  /** What stands there now was written just now. */
  written(key: LeaseKey, stored: StoredRecord, nowMs: number): void {
    const queue = this.#queues.get(keyId(key));
    if (queue === undefined || !isFree(stored)) return;
    // A reservation concerns every waiter: its successor may be any of them.
    const isReserved = stored.kind === "found" && stored.record.handoff !== null;
    if (isReserved) for (const { waiter } of queue.waiting) waiter.wake(stored);
    else this.#wakeNext(queue, stored, nowMs);
  }

  #wakeNext(queue: Queue, stored: StoredRecord, nowMs: number): void {
    queue.woken = null;
    const next = queue.waiting.find(({ waiter }) => waiter.isConnected());
    if (next !== undefined) this.#wake(queue, next, stored, nowMs);
  }

  #wake(queue: Queue, ticket: Ticket, stored: StoredRecord, nowMs: number): void {
    this.#remove(queue, ticket.waiter);
    queue.woken = { waiter: ticket.waiter, atMs: nowMs };
    ticket.waiter.wake(stored);
  }

  #remove(queue: Queue, waiter: QueuedWaiter): void {
    const index = queue.waiting.findIndex((ticket) => ticket.waiter === waiter);
    if (index >= 0) queue.waiting.splice(index, 1);
  }

  #queueOf(key: LeaseKey): Queue {
    const id = keyId(key);
    const queue = this.#queues.get(id) ?? { waiting: [], woken: null };
    this.#queues.set(id, queue);
    return queue;
  }
}

function isFree(stored: StoredRecord): boolean {
  return stored.kind !== "found" || stored.record.state !== "held";
}
