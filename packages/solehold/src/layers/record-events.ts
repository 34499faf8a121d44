/**
 * A watch whose events always say what is stored. Some stores announce only that a key changed: those keys are read,
 * many in one call, one call at a time. Like all watch events these are hints: late, doubled or out of order.
 */
import { keyId, type LeaseKey } from "../core/index.ts";
import type { Env } from "../env/index.ts";
import type { StoreExecutor } from "../executor/index.ts";
import {
  ABSENT,
  answerWithin,
  type LeaseStore,
  type StoredRecord,
  type StoreWatch,
  type WatchScope,
} from "../store/index.ts";

export type RecordEvent =
  | { readonly kind: "changed"; readonly key: LeaseKey; readonly stored: StoredRecord }
  /** Events may be missing: listeners that depend on them have to read. */
  | { readonly kind: "reset" };

export type RecordListener = (event: RecordEvent) => void;

/** After this a read counts as failed, and everybody has to look. */
const READ_TIMEOUT_MS = 5_000;

/** Null when the store cannot announce changes. */
export async function watchRecords(
  executor: StoreExecutor,
  env: Env,
  scope: WatchScope,
  listener: RecordListener,
): Promise<StoreWatch | null> {
  const reader = new ChangedKeys(executor.store, env, listener);
  const watch = await executor.watch(scope, (event) => {
    if (event.kind === "reset") listener(event);
    else if (event.stored === null) reader.add(event.key);
    else listener({ kind: "changed", key: event.key, stored: event.stored });
  });
  if (watch === null) return null;
  return {
    close: async () => {
      reader.close();
      await watch.close();
    },
  };
}

/** Keys that changed, until they were read. A key that changes often is read once for many events. */
class ChangedKeys {
  readonly #store: LeaseStore;
  readonly #env: Env;
  #listener: RecordListener;
  readonly #waiting = new Map<string, LeaseKey>();
  #isReading = false;

  constructor(store: LeaseStore, env: Env, listener: RecordListener) {
    this.#store = store;
    this.#env = env;
    this.#listener = listener;
  }

  add(key: LeaseKey): void {
    this.#waiting.set(keyId(key), key);
    if (!this.#isReading) void this.#readAll();
  }

  close(): void {
    this.#waiting.clear();
    this.#listener = () => undefined;
  }

  /** Never rejects: listeners do not throw. */
  async #readAll(): Promise<void> {
    this.#isReading = true;
    while (this.#waiting.size > 0) {
      const keys = [...this.#waiting.values()].slice(0, this.#store.capabilities.maxBatch);
      for (const key of keys) this.#waiting.delete(keyId(key));
      const records = await this.#read(keys);
      if (records === null) {
        this.#waiting.clear();
        this.#listener({ kind: "reset" });
        continue;
      }
      for (const [index, key] of keys.entries())
        this.#listener({ kind: "changed", key, stored: records[index] ?? ABSENT });
    }
    this.#isReading = false;
  }

  /** Null when the store does not answer. */
  async #read(keys: readonly LeaseKey[]): Promise<readonly StoredRecord[] | null> {
    try {
      const read = (): ReturnType<LeaseStore["read"]> => this.#store.read(keys);
      return (await answerWithin(this.#env, READ_TIMEOUT_MS, "read", read)).records;
    } catch {
      return null;
    }
  }
}
