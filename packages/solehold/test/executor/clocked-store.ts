// A memory store seen from afar: its time comes only in replies, from a clock that a test can set, or not at all.
import type { LeaseKey } from "../../src/core/index.ts";
import type { Env } from "../../src/env/index.ts";
import {
  type ApplyReply,
  type ConditionalWrite,
  type LeaseStore,
  type ListPage,
  type ListQuery,
  MemoryStore,
  type ReadReply,
  type StoreCapabilities,
} from "../../src/store/index.ts";

export class ClockedStore implements LeaseStore {
  readonly name = "clocked";
  /** What the store's clock is ahead of the test's monotonic clock. */
  offsetMs = 5_000_000;
  /** How far the clocks of its servers may be apart. */
  skewMs = 0;
  /** Time that passes between sending and the store's reading of its clock, and again until the reply. */
  beforeReading: () => Promise<void> = async () => undefined;
  afterReading: () => Promise<void> = async () => undefined;
  /** The next read rejects with this. */
  failNext: Error | null = null;
  readonly #inner: MemoryStore;
  readonly #env: Env;
  readonly #clock: "reply" | "none";

  constructor(env: Env, clock: "reply" | "none" = "reply") {
    this.#env = env;
    this.#clock = clock;
    this.#inner = new MemoryStore({ env });
  }

  get capabilities(): StoreCapabilities {
    return { ...this.#inner.capabilities, clock: this.#clock, clockSkewMs: this.skewMs };
  }

  async read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    const failure = this.failNext;
    this.failNext = null;
    if (failure !== null) throw failure;
    await this.beforeReading();
    const { records } = await this.#inner.read(keys);
    const storeTimeMs = this.#timeMs();
    await this.afterReading();
    return { storeTimeMs, records };
  }

  async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    await this.beforeReading();
    const { results } = await this.#inner.apply(writes);
    const storeTimeMs = this.#timeMs();
    await this.afterReading();
    return { storeTimeMs, results };
  }

  async list(query: ListQuery): Promise<ListPage> {
    return { ...(await this.#inner.list(query)), storeTimeMs: this.#timeMs() };
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  #timeMs(): number | null {
    return this.#clock === "none" ? null : Math.floor(this.#env.monotonicMs() + this.offsetMs);
  }
}
