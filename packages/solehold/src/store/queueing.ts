/**
 * Queueing, for stores that can wake those who wait for a key one after the other, first come, first served, instead
 * of all at once. A turn decides nothing (whoever is woken has to try like everybody), and may get lost.
 */
import type { LeaseKey } from "../core/index.ts";
import type { WatchListener } from "./watching.ts";

export interface QueueTicket {
  /**
   * Enters the queue at its end, or takes up the position it had. The listener is called at once if nobody holds the
   * key; otherwise when somebody has released it and it is this ticket's turn.
   */
  enter(): Promise<void>;
  /** "served": it has the key. "gone": it does not want it any more; if it was its turn, the next is woken. */
  leave(why: "served" | "gone"): void;
  close(): Promise<void>;
}

export interface QueueingStore {
  /** A ticket of this client for the key, which is not entered yet. */
  joinQueue(key: LeaseKey, listener: WatchListener): Promise<QueueTicket>;
}
