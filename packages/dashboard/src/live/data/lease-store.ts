/**
 * The leases of one tenant as this page knows them: listed once, page by page, then kept up to date by the watch. After a
 * reset (events were missed, or the server is another one) it lists again, and shows the old rows until that is done.
 */
import type { SseEvent } from "solehold/browser";
import { get, type Lease, type LeasePage, ProblemError, urlOf } from "./api.ts";
import { Changes } from "./changes.ts";
import { openStream, type StreamState } from "./events.ts";
import { SortedLeases } from "./sorted-leases.ts";
import { learnFromLease } from "./store-clock.ts";

export interface StoreScope {
  readonly tenant: string;
  readonly prefix: string;
  /** "held" leaves out what was released or revoked. */
  readonly which: "held" | "all";
}

export type Loading = "loading" | "complete" | "truncated" | "failed";

const PAGE_SIZE = 1_000;
export const MOST_ROWS = 250_000;

export class LeaseStore extends Changes {
  readonly scope: StoreScope;
  loading: Loading = "loading";
  stream: StreamState = "connecting";
  error: unknown = null;
  readonly leases = new SortedLeases();
  readonly waiting = new Map<string, number>();
  readonly corrupt = new Map<string, string>();
  #close: () => void = () => undefined;
  #listing = new AbortController();
  #token = "";

  constructor(scope: StoreScope) {
    super();
    this.scope = scope;
  }

  start(): void {
    this.#list(() => this.#follow());
  }

  close(): void {
    this.#listing.abort();
    this.#close();
  }

  #list(onFirstPage: () => void): void {
    this.#listing.abort();
    this.#listing = new AbortController();
    const { signal } = this.#listing;
    this.loading = "loading";
    this.error = null;
    this.changed();
    this.#listAll(signal, onFirstPage).catch((error: unknown) => {
      if (signal.aborted) return;
      this.loading = "failed";
      this.error = error;
      this.changed();
      // Without an answer there is hope; after a refusal there is none.
      if (!(error instanceof ProblemError) || error.problem.status >= 500)
        setTimeout(() => signal.aborted || this.#list(onFirstPage), 2_000);
    });
  }

  async #listAll(signal: AbortSignal, onFirstPage: () => void): Promise<void> {
    const { tenant, prefix, which } = this.scope;
    const state = which === "held" ? "held" : undefined;
    const seen = new Set<string>();
    let cursor: string | undefined;
    let isFirst = true;
    do {
      const query = { tenant, prefix, state, cursor, limit: PAGE_SIZE };
      const page = await get<LeasePage>("/v1/leases", query, signal);
      if (signal.aborted) return;
      for (const lease of page.leases) {
        seen.add(lease.name);
        this.#put(lease);
      }
      for (const { name, detail } of page.corrupt) {
        this.corrupt.set(name, detail);
        seen.add(name);
      }
      if (isFirst) {
        this.#token = page.watch;
        onFirstPage();
        isFirst = false;
      }
      cursor = page.next ?? undefined;
      this.changed();
    } while (cursor !== undefined && this.leases.size < MOST_ROWS);
    if (cursor === undefined) {
      const gone = this.leases.all.filter(({ name }) => !seen.has(name));
      for (const { name } of gone) this.leases.delete(name);
    }
    this.loading = cursor === undefined ? "complete" : "truncated";
    this.changed();
  }

  #follow(): void {
    const { tenant, prefix } = this.scope;
    this.#close();
    this.#close = openStream({
      url: () => urlOf("/v1/watch", { tenant, prefix, queues: true, after: this.#token }),
      onEvent: (event) => this.#onEvent(event),
      onState: (state) => {
        // The lengths come again with a new connection.
        if (state === "reconnecting") this.waiting.clear();
        this.stream = state;
        this.changed();
      },
      onRefused: (error) => {
        this.loading = "failed";
        this.error = error;
        this.changed();
      },
    });
  }

  #onEvent({ event, id, data }: SseEvent): void {
    if (id !== "") this.#token = id;
    if (event === "watching") return;
    if (event === "reset") {
      this.#list(() => undefined);
      return;
    }
    const { name, lease, waiting } = JSON.parse(data) as { name: string; lease?: Lease; waiting?: number };
    if (event === "queue") {
      if (waiting === undefined || waiting === 0) this.waiting.delete(name);
      else this.waiting.set(name, waiting);
    } else if (lease !== undefined) {
      this.corrupt.delete(name);
      this.#put(lease);
    } else if (event === "deleted") this.leases.delete(name);
    this.changed();
  }

  #put(lease: Lease): void {
    const known = this.leases.get(lease.name);
    if (known !== undefined && isOlder(lease, known)) return;
    learnFromLease(lease);
    this.leases.put(lease);
  }
}

/** Events and pages may arrive out of order. */
export function isOlder(lease: Lease, known: Lease): boolean {
  if (lease.fence !== known.fence) return lease.fence < known.fence;
  if (known.state !== "held") return lease.state === "held";
  return lease.state === "held" && lease.renewals < known.renewals;
}
