/** What a watch reported so far, and waiting for it to report something. Driven by events, bounded in time. */
import { keyId, type LeaseKey } from "../core/index.ts";
import type { LeaseStore, StoreEvent, StoreWatch, WatchScope } from "../store/index.ts";
import type { StoreBench } from "./store-fixture.ts";

export class WatchLog {
  readonly #bench: StoreBench;
  readonly #announced = new Set<string>();
  readonly #waiting = new Map<string, () => void>();
  #watch: StoreWatch | null = null;
  #resets = 0;

  private constructor(bench: StoreBench) {
    this.#bench = bench;
  }

  static async open(bench: StoreBench, store: LeaseStore, scope: WatchScope): Promise<WatchLog> {
    if (store.watch === undefined) throw new Error("the store has no watch");
    const log = new WatchLog(bench);
    log.#watch = await store.watch(scope, (event) => log.#note(event));
    return log;
  }

  /** Resolves when the key was announced since `forget`, or a reset said that events may be missing. */
  async announced(key: LeaseKey): Promise<void> {
    const id = keyId(key);
    if (this.#resets > 0 || this.#announced.has(id)) return;
    await this.#bench.inTime(
      `the watch never announced ${JSON.stringify(id)}`,
      new Promise<void>((resolve) => this.#waiting.set(id, resolve)),
    );
  }

  has(key: LeaseKey): boolean {
    return this.#announced.has(keyId(key));
  }

  get count(): number {
    return this.#announced.size + this.#resets;
  }

  forget(): void {
    this.#announced.clear();
    this.#resets = 0;
  }

  async close(): Promise<void> {
    await this.#watch?.close();
  }

  #note(event: StoreEvent): void {
    if (event.kind === "reset") {
      this.#resets += 1;
      for (const resolve of this.#waiting.values()) resolve();
      this.#waiting.clear();
      return;
    }
    const id = keyId(event.key);
    this.#announced.add(id);
    this.#waiting.get(id)?.();
    this.#waiting.delete(id);
  }
}
