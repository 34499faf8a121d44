/**
 * All watches of the store over one source of news. A watch that wants to know only whether a key is held is
 * told at once, if the news says it. For the others the keys that were named are read together, and each
 * watch is told of those in its scope. What was named while a read is under way is read next, once.
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
} from "../../store/index.ts";
import type { Change, NewsSource } from "./news.ts";
import type { KnownRows } from "./plain-ends.ts";

interface Watch {
  readonly scope: WatchScope;
  readonly listener: (event: StoreEvent) => void;
}

/** A key to be read, and for whom. */
interface Named {
  readonly key: LeaseKey;
  readonly watches: Set<Watch>;
}

export interface WatchHubOptions {
  readonly env: Env;
  readonly source: NewsSource;
  readonly maxBatch: number;
  readonly known: KnownRows;
  read(keys: readonly LeaseKey[]): Promise<ReadReply>;
}

export class WatchHub {
  readonly #options: WatchHubOptions;
  readonly #watches = new Set<Watch>();
  readonly #named = new Map<string, Named>();
  #reading = false;

  constructor(options: WatchHubOptions) {
    this.#options = options;
  }

  async open(scope: WatchScope, listener: (event: StoreEvent) => void): Promise<StoreWatch> {
    const watch: Watch = { scope, listener };
    this.#add(watch);
    try {
      const subscription = await this.#options.source.subscribe(scope, {
        onChanges: (changes) => this.#hear(watch, changes),
        onReset: () => this.#tell(watch, { kind: "reset" }),
      });
      let closing: Promise<void> | null = null;
      const close = (): Promise<void> => {
        this.#remove(watch);
        closing ??= subscription.close();
        return closing;
      };
      return { close };
    } catch (error) {
      this.#remove(watch);
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#watches.clear();
    await this.#options.source.close();
  }

  #add(watch: Watch): void {
    this.#watches.add(watch);
    this.#options.known.listen();
  }

  #remove(watch: Watch): void {
    if (this.#watches.delete(watch)) this.#options.known.forget();
  }

  #hear(watch: Watch, changes: readonly Change[]): void {
    const { known } = this.#options;
    for (const { key, held, by, grant, end } of changes) {
      if (!isInScope(watch.scope, key)) continue;
      if (watch.scope.wants === "holding" && held !== "unknown")
        this.#tell(watch, {
          ...{ kind: "changed", key, record: null, held },
          ...(by === null || grant === null ? {} : { by, grant }),
          ...(end === null ? {} : { stored: () => known.storedFrom(key, end) }),
        });
      else this.#name(key, watch);
    }
    if (!this.#reading && this.#named.size > 0) void this.#readNamed();
  }

  #name(key: LeaseKey, watch: Watch): void {
    const id = keyId(key);
    const named = this.#named.get(id);
    if (named === undefined) this.#named.set(id, { key, watches: new Set([watch]) });
    else named.watches.add(watch);
  }

  async #readNamed(): Promise<void> {
    this.#reading = true;
    while (this.#named.size > 0) {
      const batch = [...this.#named].slice(0, this.#options.maxBatch);
      for (const [id] of batch) this.#named.delete(id);
      try {
        const { records } = await this.#options.read(batch.map(([, { key }]) => key));
        for (const [index, [, named]] of batch.entries()) this.#announce(named, records[index]);
      } catch {
        // What was named cannot be read now; whoever watches has to look for itself.
        for (const watch of this.#watches) this.#tell(watch, { kind: "reset" });
      }
    }
    this.#reading = false;
  }

  #announce({ key, watches }: Named, stored: StoredRecord | undefined): void {
    const record = stored?.kind === "found" ? stored.record : null;
    for (const watch of watches) this.#tell(watch, { kind: "changed", key, record });
  }

  #tell(watch: Watch, event: StoreEvent): void {
    this.#options.env.defer(() => {
      if (this.#watches.has(watch)) watch.listener(event);
    });
  }
}
