/** Watches: by notification where it arrives, by polling where it does not. The first watch finds out which. */
import type { StoreWatch, WatchListener, WatchScope } from "../../store/index.ts";
import { NotificationsUnavailable } from "./driver.ts";

export interface ChangeSource {
  /** Resolves once every later change in the scope will be reported. */
  watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch>;
  close(): Promise<void>;
}

export class FallingBackSource implements ChangeSource {
  readonly #listener: ChangeSource;
  readonly #poller: ChangeSource;
  #current: ChangeSource;

  constructor(listener: ChangeSource, poller: ChangeSource) {
    this.#listener = listener;
    this.#poller = poller;
    this.#current = listener;
  }

  async watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch> {
    try {
      return await this.#current.watch(scope, listener);
    } catch (error) {
      if (!(error instanceof NotificationsUnavailable)) throw error;
      this.#current = this.#poller;
      return this.#poller.watch(scope, listener);
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#listener.close(), this.#poller.close()]);
  }
}
