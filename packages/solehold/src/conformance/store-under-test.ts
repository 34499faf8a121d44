/**
 * What the conformance kit needs to know about a store under test: how to open clients of it, and, where
 * the store's own tests can arrange it, how to damage a value and how to disturb the way to the store.
 *
 * Every case uses tenants of its own, so the data need not be empty and cases may run side by side.
 */
import type { LeaseKey } from "../core/index.ts";
import type { Env } from "../env/index.ts";
import type { LeaseStore } from "../store/index.ts";

export interface StoreSubject {
  /** A client of the store. The kit closes it at the end of the case. */
  open(): Promise<LeaseStore>;
  /**
   * Another client of the data that `open` gave last, as another process would have. Leave it out only
   * where a second client cannot exist: races then run through the first one.
   */
  openSecond?(): Promise<LeaseStore>;
  /** After every case, when its clients are closed. */
  cleanup?(): Promise<void>;
  /** Makes the stored value of this existing key unreadable, behind the store's back. */
  corrupt?(key: LeaseKey): Promise<void>;
  /** A client of the same data with a bad network that the kit can switch. */
  openFaulty?(): Promise<FaultyClient>;
  /** Moves the clock that the store takes its time from, as somebody who sets it, for all clients. */
  jumpClock?(byMs: number): void | Promise<void>;
  /** How node can start a process that uses the same data. It runs from files, so not from TypeScript. */
  child?(): KitChild;
  /** "reduced" for stores where a write takes milliseconds: smaller batches, races and histories. */
  readonly effort?: "full" | "reduced";
  /** Seeds the random histories; a failure names the seed to repeat. */
  readonly seed?: number;
  /** How long a watch event, or the end of a fault, may take to arrive. Default 10 s. */
  readonly patienceMs?: number;
  /** The clocks and randomness of the kit itself. */
  readonly env?: Env;
}

/** A module that opens the store and calls `runKitProcess` with it. */
export interface KitChild {
  readonly module: string;
  readonly args?: readonly string[];
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

/** The client's calls must give up on their own within `patienceMs`: configure a short timeout. */
export interface FaultyClient {
  readonly store: LeaseStore;
  /** From now on requests arrive and are carried out, but their replies never come. */
  loseReplies(): void | Promise<void>;
  /** From now on requests are held on the way; `heal` lets them arrive, late. */
  holdRequests(): void | Promise<void>;
  heal(): void | Promise<void>;
}

/** One check. It rejects with an AssertionError when the store breaks the contract. */
export interface StoreCase {
  readonly title: string;
  run(): Promise<void>;
}
