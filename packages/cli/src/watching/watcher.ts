/**
 * Follows the leases under a prefix: by the store's watch events where it has any, else by looking now and then.
 * Stores announce writes, not the passing of time: that a lease has expired is found by looking when it is
 * due.
 */
import {
  type Env,
  type LeaseExecutor,
  type LeaseView,
  realEnv,
  type StoreEvent,
  type StoreWatch,
  type Timer,
  viewOf,
} from "solehold";
import { listLeases } from "../listing.ts";
import { Board, type Change } from "./board.ts";

export interface LeaseWatcherOptions {
  readonly executor: LeaseExecutor;
  readonly tenant: string;
  readonly prefix: string;
  readonly everyMs: number;
  readonly onChange: (change: Change) => void;
  /** A look has failed; another follows. */
  readonly onTrouble: (error: unknown) => void;
  readonly env?: Env;
}

/** A lease is looked at this long after it should have ended. */
const AFTER_EXPIRY_MS = 20;
const MIN_LOOK_MS = 10;

export class LeaseWatcher {
  readonly #options: LeaseWatcherOptions;
  readonly #env: Env;
  readonly #board = new Board();
  /** When the end of which lease is due, on the own monotonic clock. */
  readonly #due = new Map<string, number>();
  #timer: Timer | null = null;
  #retry: Timer | null = null;
  #ended = false;
  #timerAtMs = Number.POSITIVE_INFINITY;
  #fail: (error: unknown) => void = () => undefined;

  constructor(options: LeaseWatcherOptions) {
    this.#options = options;
    this.#env = options.env ?? realEnv;
  }

  /** Until the signal aborts; then it throws the signal's reason. Throws what the store throws, too. */
  async run(signal: AbortSignal): Promise<never> {
    const ended = new Promise<never>((_, reject) => {
      this.#fail = reject;
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    // Looked at below; until then it must not count as unhandled.
    ended.catch(() => undefined);
    let watch: StoreWatch | null = null;
    try {
      const { executor, tenant, prefix } = this.#options;
      // The watch first, then the list: a change in between is seen twice rather than never.
      const early: StoreEvent[] = [];
      let listener = (event: StoreEvent): void => void early.push(event);
      watch = await Promise.race([executor.watch({ tenant, prefix }, (event) => listener(event)), ended]);
      await Promise.race([this.#lookAtAll("first"), ended]);
      listener = (event) => this.#onEvent(event);
      for (const event of early) listener(event);
      if (watch === null) this.#lookRegularly();
      else this.#armExpiry();
      return await ended;
    } finally {
      this.#ended = true;
      this.#timer?.cancel();
      this.#retry?.cancel();
      this.#fail = () => undefined;
      await watch?.close().catch(() => undefined);
    }
  }

  #onEvent(event: StoreEvent): void {
    if (event.kind === "reset") {
      this.#lookAgain();
      return;
    }
    const { key, stored } = event;
    if (stored === null) {
      this.#due.set(key.name, this.#env.monotonicMs());
      this.#armExpiry();
      return;
    }
    if (stored.kind !== "found") {
      this.#emit(this.#board.forget(key.name));
      return;
    }
    const { record } = stored;
    // The record was written a moment ago: at its own latest instant it was what it says.
    const writtenMs = record.endedAtMs ?? record.renewedAtMs;
    this.#see(viewOf(record, writtenMs, this.#options.executor.policy));
    if ((this.#due.get(key.name) ?? Number.POSITIVE_INFINITY) < this.#timerAtMs) this.#armExpiry();
  }

  #see(view: LeaseView): void {
    const { name } = view.key;
    const last = this.#board.get(name);
    const sameEnd =
      last?.fence === view.fence && last.expiresAtMs === view.expiresAtMs && this.#due.has(name);
    if (!view.live) this.#due.delete(name);
    else if (!sameEnd) this.#due.set(name, this.#env.monotonicMs() + view.remainingMs + AFTER_EXPIRY_MS);
    this.#emit(this.#board.see(view));
  }

  /** After a reset, and again until the store has answered. */
  #lookAgain(): void {
    this.#lookAtAll("again").then(
      () => this.#armExpiry(),
      (error: unknown) => {
        this.#options.onTrouble(error);
        this.#retry = this.#env.timer(this.#options.everyMs, () => this.#lookAgain(), { keepAlive: true });
      },
    );
  }

  #emit(change: Change | null): void {
    if (change === null) return;
    try {
      this.#options.onChange(change);
    } catch (error) {
      // The reader of the output has gone.
      this.#fail(error);
    }
  }

  async #lookAtAll(which: "first" | "again"): Promise<void> {
    const { executor, tenant, prefix } = this.#options;
    const { leases } = await listLeases(executor, tenant, {
      prefix,
      which: "all",
      limit: Number.POSITIVE_INFINITY,
    });
    for (const view of leases) {
      if (which === "first") this.#emit(this.#board.begin(view));
      this.#see(view);
    }
    const present = new Set(leases.map(({ key }) => key.name));
    for (const name of this.#board.names()) if (!present.has(name)) this.#emit(this.#board.forget(name));
  }

  /** The store announces nothing: every look sees everything, expiry included. */
  #lookRegularly(): void {
    if (this.#ended) return;
    const lookAgain = (): void => {
      this.#lookAtAll("again")
        .catch((error: unknown) => this.#options.onTrouble(error))
        .then(() => this.#lookRegularly());
    };
    this.#timer = this.#env.timer(this.#options.everyMs, lookAgain, { keepAlive: true });
  }

  /** One timer for all: it fires when the earliest end is due. A renewal in between only makes it look in vain. */
  #armExpiry(): void {
    this.#timer?.cancel();
    if (this.#ended) return;
    this.#timerAtMs = Number.POSITIVE_INFINITY;
    for (const dueMs of this.#due.values()) this.#timerAtMs = Math.min(this.#timerAtMs, dueMs);
    if (this.#due.size === 0) return;
    const inMs = Math.max(MIN_LOOK_MS, this.#timerAtMs - this.#env.monotonicMs());
    this.#timer = this.#env.timer(inMs, () => this.#lookAtDue(), { keepAlive: true });
  }

  #lookAtDue(): void {
    const nowMs = this.#env.monotonicMs();
    const names = [...this.#due].filter(([, dueMs]) => dueMs <= nowMs).map(([name]) => name);
    for (const name of names) {
      this.#due.delete(name);
      this.#lookAt(name).catch((error: unknown) => {
        this.#options.onTrouble(error);
        this.#due.set(name, this.#env.monotonicMs() + this.#options.everyMs);
        this.#armExpiry();
      });
    }
    this.#armExpiry();
  }

  async #lookAt(name: string): Promise<void> {
    const { executor, tenant } = this.#options;
    const view = await executor.read({ tenant, name });
    if (view === null) {
      this.#emit(this.#board.forget(name));
      return;
    }
    this.#see(view);
    if (view.live) this.#armExpiry();
  }
}
