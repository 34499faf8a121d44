/** Where the store hears of changes: by notification or by looking. Both only name keys; the store reads them. */
import type { LeaseKey } from "../../core/index.ts";
import type { WatchScope } from "../contract.ts";

export interface ScopeHandlers {
  onKeys(keys: readonly LeaseKey[]): void;
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

/** Reads `tenant/name`; a tenant contains no slash. Null for what is no key. */
export function keyFrom(id: string): LeaseKey | null {
  const slash = id.indexOf("/");
  return slash > 0 ? { tenant: id.slice(0, slash), name: id.slice(slash + 1) } : null;
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
