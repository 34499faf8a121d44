/**
 * Follows the leases under a prefix: by the store's watch events where it has any, else by polling. Stores announce
 * writes, not the passing of time: it finds that a lease has expired by a read when the expiry is due.
 */
import type { Env, Timer } from "../env/index.ts";
import { type LeaseExecutor, type LeaseView, type QueueListener, viewOf } from "../executor/index.ts";
import { pagesOf, type StoreEvent, type StoreWatch } from "../store/index.ts";
import { Alarm } from "../support/alarm.ts";
import { type LeaseChange, LeaseDiff } from "./lease-diff.ts";

export interface LeaseWatcherOptions {
  readonly executor: LeaseExecutor;
  readonly tenant: string;
  readonly prefix: string;
  readonly everyMs: number;
  readonly onChange: (change: LeaseChange) => void;
  /** Every view that is read, changed or not, of a lease that is held or ended. */
  readonly onSeen?: (view: LeaseView) => void;
  /** How many wait, where a server says it. */
  readonly onQueue?: QueueListener;
  /** A read has failed; another follows. */
  readonly onTrouble: (error: unknown) => void;
  readonly env: Env;
}

/** A lease is read again this long after it should have ended. */
const AFTER_EXPIRY_MS = 20;
const MIN_DELAY_MS = 10;
const PAGE = 500;

export class LeaseWatcher {
  readonly #options: LeaseWatcherOptions;
  readonly #env: Env;
  readonly #diff = new LeaseDiff();
  /** When each lease has to be read again, on the monotonic clock. */
  readonly #due = new Map<string, number>();
  /** Null where every poll sees everything. A renewal before it rings only makes that read needless. */
  #expiries: Alarm | null = null;
  #poll: Timer | null = null;
  #retry: Timer | null = null;
  #ended = false;
  #fail: (error: unknown) => void = () => undefined;

  constructor(options: LeaseWatcherOptions) {
    this.#options = options;
    this.#env = options.env;
  }

  /** Until the signal aborts; then it throws the signal's reason. Throws what the store throws, too. */
  async run(signal: AbortSignal): Promise<never> {
    const ended = new Promise<never>((_, reject) => {
      this.#fail = reject;
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    // Awaited below; until then it must not count as unhandled.
    ended.catch(() => undefined);
    let watch: StoreWatch | null = null;
    try {
      const { executor, tenant, prefix, onQueue } = this.#options;
      // The watch first, then the list: a change in between is seen twice rather than never.
      const early: StoreEvent[] = [];
      let listener = (event: StoreEvent): void => void early.push(event);
      const opened = executor.watch({ tenant, prefix }, (event) => listener(event), onQueue);
      watch = await Promise.race([opened, ended]);
      if (watch !== null) this.#expiries = new Alarm(this.#env, () => this.#readDue(), { keepAlive: true });
      await Promise.race([this.#readAll("first"), ended]);
      listener = (event) => this.#onEvent(event);
      for (const event of early) listener(event);
      if (watch === null) this.#pollAgain();
      return await ended;
    } finally {
      this.#ended = true;
      this.#expiries?.cancel();
      this.#poll?.cancel();
      this.#retry?.cancel();
      this.#fail = () => undefined;
      await watch?.close().catch(() => undefined);
    }
  }

  #onEvent(event: StoreEvent): void {
    if (event.kind === "reset") {
      this.#resync();
      return;
    }
    const { key, stored } = event;
    if (stored === null) {
      this.#readIn(key.name, 0);
      return;
    }
    if (stored.kind !== "found") {
      this.#emit(this.#diff.remove(key.name));
      return;
    }
    const { record } = stored;
    // The record was written a moment ago: at its own latest instant it was what it says.
    const writtenMs = record.endedAtMs ?? record.renewedAtMs;
    this.#see(viewOf(record, writtenMs, this.#options.executor.policy));
  }

  #see(view: LeaseView): void {
    this.#options.onSeen?.(view);
    const { name } = view.key;
    const last = this.#diff.get(name);
    const sameEnd =
      last?.fence === view.fence && last.expiresAtMs === view.expiresAtMs && this.#due.has(name);
    if (!view.live) this.#due.delete(name);
    else if (!sameEnd) this.#readIn(name, view.remainingMs + AFTER_EXPIRY_MS);
    this.#emit(this.#diff.update(view));
  }

  #readIn(name: string, inMs: number): void {
    const dueMs = this.#env.monotonicMs() + Math.max(MIN_DELAY_MS, inMs);
    this.#due.set(name, dueMs);
    if (!this.#ended) this.#expiries?.setBy(dueMs);
  }

  /** After a reset, and again until the store has answered. */
  #resync(): void {
    this.#readAll("again").catch((error: unknown) => {
      this.#options.onTrouble(error);
      this.#retry = this.#env.timer(this.#options.everyMs, () => this.#resync(), { keepAlive: true });
    });
  }

  #emit(change: LeaseChange | null): void {
    if (change === null) return;
    try {
      this.#options.onChange(change);
    } catch (error) {
      // The output was closed.
      this.#fail(error);
    }
  }

  async #readAll(which: "first" | "again"): Promise<void> {
    const { executor, tenant, prefix } = this.#options;
    const present = new Set<string>();
    const all = { tenant, prefix, limit: PAGE };
    for await (const { leases } of pagesOf((query) => executor.list(query), all)) {
      for (const view of leases) {
        present.add(view.key.name);
        if (which === "first") this.#emit(this.#diff.begin(view));
        this.#see(view);
      }
    }
    for (const name of this.#diff.names()) if (!present.has(name)) this.#emit(this.#diff.remove(name));
  }

  /** The store announces nothing: every poll sees everything, expiry included. */
  #pollAgain(): void {
    if (this.#ended) return;
    const readAgain = (): void => {
      this.#readAll("again")
        .catch((error: unknown) => this.#options.onTrouble(error))
        .then(() => this.#pollAgain());
    };
    this.#poll = this.#env.timer(this.#options.everyMs, readAgain, { keepAlive: true });
  }

  #readDue(): void {
    const nowMs = this.#env.monotonicMs();
    for (const [name, dueMs] of [...this.#due]) {
      if (dueMs > nowMs) {
        this.#expiries?.setBy(dueMs);
        continue;
      }
      this.#due.delete(name);
      this.#read(name).catch((error: unknown) => {
        this.#options.onTrouble(error);
        this.#readIn(name, this.#options.everyMs);
      });
    }
  }

  async #read(name: string): Promise<void> {
    const { executor, tenant } = this.#options;
    const view = await executor.read({ tenant, name });
    if (view === null) this.#emit(this.#diff.remove(name));
    else this.#see(view);
  }
}

/** The changes as they come, until the signal aborts. A reader that falls behind gets them all later. */
export async function* watchLeases(
  options: Omit<LeaseWatcherOptions, "onChange" | "onTrouble">,
  signal: AbortSignal,
): AsyncGenerator<LeaseChange, void, void> {
  const changes: LeaseChange[] = [];
  let wake: () => void = () => undefined;
  let failure: { readonly error: unknown } | null = null;
  const ending = new AbortController();
  const stop = (): void => ending.abort();
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  const onChange = (change: LeaseChange): void => {
    changes.push(change);
    wake();
  };
  const running = new LeaseWatcher({ ...options, onChange, onTrouble: () => undefined })
    .run(ending.signal)
    .catch((error: unknown) => {
      if (!ending.signal.aborted) failure = { error };
      stop();
      wake();
    });
  try {
    while (!ending.signal.aborted || changes.length > 0) {
      const change = changes.shift();
      if (change !== undefined) yield change;
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
          if (ending.signal.aborted) resolve();
        });
    }
    if (failure !== null) throw (failure as { readonly error: unknown }).error;
  } finally {
    stop();
    signal.removeEventListener("abort", stop);
    await running;
  }
}
