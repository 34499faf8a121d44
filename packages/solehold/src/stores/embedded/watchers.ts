/** Who watches what in this process, and telling them. */
import type { LeaseKey, LeaseRecord } from "../../core/index.ts";
import type { Env } from "../../env/index.ts";
import { isInScope, type StoreEvent, type WatchScope } from "../../store/index.ts";

interface Watcher {
  readonly scope: WatchScope;
  readonly listener: (event: StoreEvent) => void;
}

export class Watchers {
  readonly #env: Env;
  readonly #watchers = new Set<Watcher>();
  /** What is to be told when the work at hand is done. */
  #news: { readonly watcher: Watcher; readonly event: StoreEvent }[] = [];

  constructor(env: Env) {
    this.#env = env;
  }

  get isEmpty(): boolean {
    return this.#watchers.size === 0;
  }

  /** The returned function removes it; twice is fine. */
  add(scope: WatchScope, listener: (event: StoreEvent) => void): () => void {
    const watcher: Watcher = { scope, listener };
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  clear(): void {
    this.#watchers.clear();
  }

  /** `recordOf` is asked once, and only if somebody wants to know. "unreadable" makes them look. */
  changed(key: LeaseKey, recordOf: () => LeaseRecord | null | "unreadable"): void {
    let event: StoreEvent | null = null;
    for (const watcher of this.#watchers) {
      if (!isInScope(watcher.scope, key)) continue;
      event ??= eventOf(key, recordOf());
      this.#tell(watcher, event);
    }
  }

  reset(): void {
    for (const watcher of this.#watchers) this.#tell(watcher, { kind: "reset" });
  }

  /**
   * After the work at hand, all at once: thousands of changes may come in one call. What that call's answers bring
   * about in this turn comes first, because somebody waits for it.
   */
  #tell(watcher: Watcher, event: StoreEvent): void {
    this.#news.push({ watcher, event });
    if (this.#news.length === 1) this.#env.defer(() => this.#env.defer(() => this.#tellAll()));
  }

  /** A listener that throws must keep neither the others from hearing, nor its mistake to itself. */
  #tellAll(): void {
    const news = this.#news;
    this.#news = [];
    for (const { watcher, event } of news) {
      if (!this.#watchers.has(watcher)) continue;
      try {
        watcher.listener(event);
      } catch (error) {
        this.#env.defer(() => {
          throw error;
        });
      }
    }
  }
}

function eventOf(key: LeaseKey, record: LeaseRecord | null | "unreadable"): StoreEvent {
  return record === "unreadable" ? { kind: "reset" } : { kind: "changed", key, record };
}
