/**
 * Which leases of a tenant are alive, as far as a service knows: read from the store at the tenant's first use, then
 * kept by its own decisions and by the store's watch events. It serves counts, limits and expiries, and no decision.
 * On a store that cannot list, leases from before the service started are not known until they change.
 */
import type { LeaseKey, LeaseRecord } from "../core/index.ts";
import { delay, type Env } from "../env/index.ts";
import type { StoreExecutor } from "../executor/index.ts";
import { pagesOf, type StoreWatch } from "../store/index.ts";
import { BoundedMap } from "../support/bounded-map.ts";
import { LiveIndex } from "./live-index.ts";
import { type RecordEvent, watchRecords } from "./record-events.ts";

export interface LiveLeasesOptions {
  readonly env: Env;
  readonly executor: StoreExecutor;
  readonly maxLiveLeases: number;
  readonly rememberedTenants: number;
  readonly onExpired: (record: LeaseRecord) => void;
}

interface Loading {
  readonly finished: Promise<void>;
  state: "under way" | "finished";
}

const LIST_PAGE = 1_000;
/** How long a grant waits for its tenant's leases to be counted. */
const LONGEST_COUNT_MS = 250;

export class LiveLeases {
  readonly #options: LiveLeasesOptions;
  readonly #index: LiveIndex;
  /** Bounded, because anybody can name tenants; one that was forgotten is read again at its next use. */
  #loadedTenants: BoundedMap<Loading>;
  /** Tenants of requests and events since the start; the oldest are forgotten first. */
  readonly #seenTenants = new Set<string>();
  /** Grants under way, so that a burst cannot slip past the limit together. */
  readonly #grantsUnderWay = new Map<string, number>();
  #watch: Promise<StoreWatch | null> | null = null;

  constructor(options: LiveLeasesOptions) {
    const { env, executor, onExpired } = options;
    this.#options = options;
    this.#loadedTenants = new BoundedMap(options.rememberedTenants);
    this.#index = new LiveIndex({ env, nowMs: () => executor.storeNowMs(), onExpired });
  }

  /** Of all tenants that were used. */
  get total(): number {
    return this.#index.total();
  }

  /** Those of requests and of events since the start. */
  get tenants(): readonly string[] {
    return [...this.#seenTenants];
  }

  learn(record: LeaseRecord): void {
    this.#index.learn(record);
  }

  async count(tenant: string): Promise<number> {
    await this.#load(tenant).finished;
    return this.#index.count(tenant);
  }

  /** Whether the tenant's leases are known. */
  isLoaded(tenant: string): boolean {
    return this.#load(tenant).state === "finished";
  }

  /**
   * Resolves when the tenant's leases are known, or after a while: a million leases take longer to count than a caller
   * waits. Until then the limit may be exceeded.
   */
  async loaded(tenant: string): Promise<void> {
    const { finished, state } = this.#load(tenant);
    if (state === "finished") return;
    const enough = new AbortController();
    await Promise.race([finished, delay(this.#options.env, LONGEST_COUNT_MS, enough.signal)]);
    enough.abort();
  }

  isFull(key: LeaseKey, wanting: "this key" | "another" = "this key"): boolean {
    const wanted = (this.#grantsUnderWay.get(key.tenant) ?? 0) + 1;
    const { maxLiveLeases } = this.#options;
    return (
      !this.#index.hasRoom(key.tenant, wanted, maxLiveLeases) &&
      (wanting === "another" || !this.#index.has(key))
    );
  }

  /** A grant counts until it is decided; then `learn` counts it. */
  grantBegins(tenant: string): void {
    this.#grantsUnderWay.set(tenant, (this.#grantsUnderWay.get(tenant) ?? 0) + 1);
  }

  grantEnds(tenant: string): void {
    const left = (this.#grantsUnderWay.get(tenant) ?? 1) - 1;
    if (left > 0) this.#grantsUnderWay.set(tenant, left);
    else this.#grantsUnderWay.delete(tenant);
  }

  async close(): Promise<void> {
    this.#index.close();
    const watch = this.#watch === null ? null : await this.#watch.catch(() => null);
    await watch?.close();
  }

  #load(tenant: string): Loading {
    this.#see(tenant);
    const known = this.#loadedTenants.get(tenant);
    if (known !== undefined) return known;
    const finished = this.#loadNow(tenant).then(() => {
      loading.state = "finished";
    });
    const loading: Loading = { finished, state: "under way" };
    this.#loadedTenants.set(tenant, loading);
    return loading;
  }

  async #loadNow(tenant: string): Promise<void> {
    const { store } = this.#options.executor;
    try {
      await this.#follow();
      const list = store.list?.bind(store);
      if (list === undefined) return;
      for await (const { records } of pagesOf(list, { tenant, prefix: "", state: "held", limit: LIST_PAGE }))
        for (const record of records) this.#index.learn(record);
    } catch {
      // The index only serves counts and limits: a store that is down now is asked again at the next use.
      this.#loadedTenants.delete(tenant);
    }
  }

  async #follow(): Promise<void> {
    const { executor, env } = this.#options;
    const all = { tenant: null, prefix: "" };
    this.#watch ??= watchRecords(executor, env, all, (event) => this.#onEvent(event));
    await this.#watch.catch(() => {
      this.#watch = null;
    });
  }

  #see(tenant: string): void {
    if (this.#seenTenants.has(tenant)) return;
    const [oldest] = this.#seenTenants;
    if (oldest !== undefined && this.#seenTenants.size >= this.#options.rememberedTenants)
      this.#seenTenants.delete(oldest);
    this.#seenTenants.add(tenant);
  }

  #onEvent(event: RecordEvent): void {
    if (event.kind === "reset") {
      this.#loadedTenants = new BoundedMap(this.#options.rememberedTenants);
      return;
    }
    this.#see(event.key.tenant);
    if (event.stored.kind === "found") this.#index.learn(event.stored.record);
    else this.#index.remove(event.key);
  }
}
