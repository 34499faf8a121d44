/** Who watches a store in this process: scopes and listeners, and the way of an event to them. */
import {
  isInScope,
  type StoreEvent,
  type StoreWatch,
  type WatchListener,
  type WatchScope,
} from "../../store/index.ts";

interface Watcher {
  readonly scope: WatchScope;
  readonly listener: WatchListener;
}

export class Watchers {
  readonly #watchers = new Set<Watcher>();

  get size(): number {
    return this.#watchers.size;
  }

  /** `onClosed` runs once, when this watch ends; it may stop what feeds the watchers once `size` is 0. */
  add(scope: WatchScope, listener: WatchListener, onClosed?: () => void | Promise<void>): StoreWatch {
    const watcher: Watcher = { scope, listener };
    this.#watchers.add(watcher);
    return {
      close: async () => {
        if (this.#watchers.delete(watcher)) await onClosed?.();
      },
    };
  }

  announce(event: StoreEvent): void {
    for (const { scope, listener } of [...this.#watchers]) {
      if (event.kind === "reset" || isInScope(scope, event.key)) listener(event);
    }
  }

  clear(): void {
    this.#watchers.clear();
  }
}
