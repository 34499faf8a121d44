/**
 * All watches of the store over one source of news. Keys that were named are read together, and each watch
 * is told of those in its scope. What was named while a read is under way is read next, once.
 */
import { keyId, type LeaseKey } from "../../core/index.ts";
import type { Env } from "../../env/index.ts";
import {
  isInScope,
  type ReadReply,
  type StoredRecord,
  type StoreEvent,
  type StoreWatch,
  type WatchScope,
} from "../contract.ts";
import type { NewsSource } from "./news.ts";

interface Watch {
  readonly scope: WatchScope;
  readonly listener: (event: StoreEvent) => void;
}

export interface WatchHubOptions {
  readonly env: Env;
  readonly source: NewsSource;
  readonly maxBatch: number;
  read(keys: readonly LeaseKey[]): Promise<ReadReply>;
}

export class WatchHub {
  readonly #options: WatchHubOptions;
  readonly #watches = new Set<Watch>();
  #named = new Map<string, LeaseKey>();
  #reading = false;

  constructor(options: WatchHubOptions) {
    this.#options = options;
  }

  async open(scope: WatchScope, listener: (event: StoreEvent) => void): Promise<StoreWatch> {
    const watch: Watch = { scope, listener };
    this.#watches.add(watch);
    try {
      const subscription = await this.#options.source.subscribe(scope, {
        onKeys: (keys) => this.#look(keys),
        onReset: () => this.#tell(watch, { kind: "reset" }),
      });
      let closing: Promise<void> | null = null;
      const close = (): Promise<void> => {
        this.#watches.delete(watch);
        closing ??= subscription.close();
        return closing;
      };
      return { close };
    } catch (error) {
      this.#watches.delete(watch);
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#watches.clear();
    await this.#options.source.close();
  }

  #look(keys: readonly LeaseKey[]): void {
    const watches = [...this.#watches];
    for (const key of keys) {
      if (watches.some(({ scope }) => isInScope(scope, key))) this.#named.set(keyId(key), key);
    }
    if (!this.#reading && this.#named.size > 0) void this.#readNamed();
  }

  async #readNamed(): Promise<void> {
    this.#reading = true;
    while (this.#named.size > 0) {
      const keys = [...this.#named.values()].slice(0, this.#options.maxBatch);
      for (const key of keys) this.#named.delete(keyId(key));
      try {
        const { records } = await this.#options.read(keys);
        for (const [index, key] of keys.entries()) this.#announce(key, records[index]);
      } catch {
        // What was named cannot be read now; whoever watches has to look for itself.
        for (const watch of this.#watches) this.#tell(watch, { kind: "reset" });
      }
    }
    this.#reading = false;
  }

  #announce(key: LeaseKey, stored: StoredRecord | undefined): void {
    const record = stored?.kind === "found" ? stored.record : null;
    for (const watch of this.#watches) {
      if (isInScope(watch.scope, key)) this.#tell(watch, { kind: "changed", key, record });
    }
  }

  #tell(watch: Watch, event: StoreEvent): void {
    this.#options.env.defer(() => {
      if (this.#watches.has(watch)) watch.listener(event);
    });
  }
}
