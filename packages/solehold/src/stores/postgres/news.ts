/**
 * Where the store hears of changes: by notification or by looking. Both only name keys, and notifications say
 * whether each is held now, and mark by whom; what else there is to know the store reads, unless all that changed came along.
 */
import type { LeaseKey } from "../../core/index.ts";
import type { WatchScope } from "../../store/index.ts";

/** A key whose record changed. */
export interface Change {
  readonly key: LeaseKey;
  /** Whether it was held then; "unknown" to whoever only saw that it changed. */
  readonly held: "yes" | "no" | "unknown";
  /** A mark of who holds it, or held it last; null where that is not known. */
  readonly by: string | null;
  /** A mark of the grant, by which the news of one can be put in order; null as well. */
  readonly grant: string | null;
  /** How the lease ended, for who knows the row before; null where that was not told. */
  readonly end: string | null;
}

export interface ScopeHandlers {
  onChanges(changes: readonly Change[]): void;
  /** Some changes in the scope may have been missed. */
  onReset(): void;
}

export interface ScopeSubscription {
  close(): Promise<void>;
}

export interface NewsSource {
  /** Resolves once every later change in the scope will be told. Changes outside it may be told, too. */
  subscribe(scope: WatchScope, handlers: ScopeHandlers): Promise<ScopeSubscription>;
  close(): Promise<void>;
}

/** Notifications do not reach this client. */
export class NotificationsUnavailable extends Error {
  override readonly name = "NotificationsUnavailable";
}

/** Notifications where they arrive, looking where they do not. Which of the two is found out by the first watch. */
export class FallingBackSource implements NewsSource {
  readonly #listener: NewsSource;
  readonly #poller: NewsSource;
  #current: NewsSource;

  constructor(listener: NewsSource, poller: NewsSource) {
    this.#listener = listener;
    this.#poller = poller;
    this.#current = listener;
  }

  async subscribe(scope: WatchScope, handlers: ScopeHandlers): Promise<ScopeSubscription> {
    try {
      return await this.#current.subscribe(scope, handlers);
    } catch (error) {
      if (!(error instanceof NotificationsUnavailable)) throw error;
      this.#current = this.#poller;
      return this.#poller.subscribe(scope, handlers);
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#listener.close(), this.#poller.close()]);
  }
}
