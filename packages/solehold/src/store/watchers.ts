/** Who watches a store in this process: scopes and listeners, and the way of an event to them. */
import {
  isInScope,
  type StoreEvent,
  type StoreWatch,
  type WatchListener,
  type WatchScope,
} from "./watching.ts";

interface Watcher {
  readonly scope: WatchScope;
  readonly listener: WatchListener;
}

export class Watchers {
  readonly #watchers = new Set<Watcher>();

  get size(): number {
    return this.#watchers.size;
  }

  get scopes(): readonly WatchScope[] {
    return [...this.#watchers].map(({ scope }) => scope);
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

  /** A listener that throws keeps the event from nobody else; its error is thrown when all have been called. */
  announce(event: StoreEvent): void {
    const errors: unknown[] = [];
    for (const { scope, listener } of [...this.#watchers]) {
      if (event.kind === "changed" && !isInScope(scope, event.key)) continue;
      try {
        listener(event);
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }

  clear(): void {
    this.#watchers.clear();
  }
}
