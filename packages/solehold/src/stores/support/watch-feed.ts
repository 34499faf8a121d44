/**
 * One source of events for all watches of a store: opened for the first of them, opened again when it was lost, with a
 * reset for everybody because events may be missing. A listener that throws harms neither the source nor the others.
 */
import type { Env } from "../../env/index.ts";
import type { StoreEvent, StoreWatch, WatchListener, WatchScope } from "../../store/index.ts";
import { Watchers } from "../../store/watchers.ts";
import { Reconnecting } from "./reconnecting.ts";

export interface WatchFeedOptions<Source> {
  readonly env: Env;
  /** Of the store, for messages. */
  readonly name: string;
  /** Resolves once every later change will be announced. `onLost` may be called at any time after, and before. */
  readonly open: (onLost: () => void) => Promise<Source>;
  /** Must not throw. */
  readonly close: (source: Source) => void | Promise<void>;
  /** Whether the source outlives its last watch: the next one may come soon. */
  readonly keepsSource?: boolean;
}

export class WatchFeed<Source extends object> {
  readonly #env: Env;
  readonly #watchers = new Watchers();
  readonly #sources: Reconnecting<Source>;
  readonly #keepsSource: boolean;
  #current: Source | null = null;

  constructor({ env, name, open, close, keepsSource = false }: WatchFeedOptions<Source>) {
    this.#env = env;
    this.#keepsSource = keepsSource;
    this.#sources = new Reconnecting({ env, name, open: () => this.#open(open), close });
  }

  get isWatched(): boolean {
    return this.#watchers.size > 0;
  }

  /** Resolves once every later change will be announced. */
  async watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch> {
    const watch = this.#watchers.add(scope, listener, () => {
      if (!this.isWatched && !this.#keepsSource) this.restart();
    });
    try {
      await this.#sources.get();
      return watch;
    } catch (error) {
      await watch.close();
      throw error;
    }
  }

  announce(event: StoreEvent): void {
    this.#env.defer(() => this.#watchers.announce(event));
  }

  /** Ends the present source. Another is opened if somebody watches, or when somebody does. */
  restart(): void {
    if (this.#current !== null) this.#lose(this.#current);
  }

  async close(): Promise<void> {
    this.#watchers.clear();
    await this.#sources.close();
  }

  async #open(open: WatchFeedOptions<Source>["open"]): Promise<Source> {
    let source: Source | null = null;
    let isLost = false;
    const opened = await open(() => {
      isLost = true;
      if (source !== null) this.#lose(source);
    });
    source = opened;
    this.#current = opened;
    if (isLost) this.#lose(opened);
    return opened;
  }

  #lose(source: Source): void {
    if (this.#current !== source) return;
    this.#current = null;
    void this.#sources.lose(source);
    void this.#reopen();
  }

  /** The pauses between attempts are those of `Reconnecting`. */
  async #reopen(): Promise<void> {
    while (this.isWatched) {
      const isOpen = await this.#sources.get().then(
        () => true,
        () => false,
      );
      if (isOpen) return this.announce({ kind: "reset" });
    }
  }
}
