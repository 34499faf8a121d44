/**
 * One lease with its history, kept up to date by two streams: changes of the record and of its queue, and decisions. What
 * is missed while a stream is away is read again when it is back.
 */
import type { AuditEvent, SseEvent } from "solehold/browser";
import { get, type Lease, ProblemError, type Queue, queryAudit, type Replicas, urlOf } from "./api.ts";
import { Changes } from "./changes.ts";
import { openStream, type StreamState } from "./events.ts";
import { isOlder } from "./lease-store.ts";
import { learnFromLease } from "./store-clock.ts";

/** Asked for apart: many denials or renewals must not crowd out who held it. */
const HISTORY = [
  { allowed: true, except: "renew,use", limit: 600 },
  { allowed: false, limit: 300 },
  { allowed: true, action: "renew", limit: 300 },
] as const;
/** A page may be open for weeks: beyond this many decisions it forgets old renewals and denials. */
const MOST_DECISIONS = 4_000;
const EMPTY_QUEUE: Queue = { waiting: 0, waiters: [] };

export class LeaseDetail extends Changes {
  readonly tenant: string;
  readonly name: string;
  lease: Lease | null = null;
  state: "loading" | "found" | "missing" | "damaged" | "failed" = "loading";
  error: unknown = null;
  stream: StreamState = "connecting";
  queue: Queue = EMPTY_QUEUE;
  /** Where clients send the requests for this key, and which server this is; null while it is not known. */
  home: { readonly home: string; readonly self: string | null; readonly url: string } | null = null;
  /** When the queue was read, on this page's clock. */
  queueAtMs = 0;
  /** Null while it is not known; "forbidden" where the key does not allow the audit. */
  history: readonly AuditEvent[] | "forbidden" | null = null;
  readonly #seen = new Map<string, AuditEvent>();
  readonly #closed = new AbortController();

  constructor(tenant: string, name: string) {
    super();
    this.tenant = tenant;
    this.name = name;
  }

  start(mayAudit: boolean): void {
    const { tenant, name } = this;
    const stopWatch = openStream({
      url: () => urlOf("/v1/watch", { tenant, prefix: name, queues: true }),
      onEvent: (event) => this.#onChange(event),
      onState: (state) => {
        this.stream = state;
        if (state === "open") {
          this.#readLease();
          this.#readQueue();
          this.#readHome();
        }
        this.changed();
      },
      onRefused: (error) => this.#failed(error),
    });
    this.#closed.signal.addEventListener("abort", stopWatch);
    if (!mayAudit) {
      this.history = "forbidden";
      return;
    }
    const stopAudit = openStream({
      url: () => urlOf("/v1/audit/watch", { tenant, name }),
      onEvent: ({ event, data }) => {
        if (event === "decided") this.#remember([JSON.parse(data) as AuditEvent]);
        else if (event === "missed") this.#readHistory();
      },
      onState: (state) => {
        if (state === "open") this.#readHistory();
      },
      onRefused: () => {
        this.history = "forbidden";
        this.changed();
      },
    });
    this.#closed.signal.addEventListener("abort", stopAudit);
  }

  close(): void {
    this.#closed.abort();
  }

  /** After an action: the record may be of a kind that no event shows. */
  refresh(): void {
    this.#readLease();
  }

  #onChange({ event, data }: SseEvent): void {
    if (event === "watching") return;
    if (event === "reset") {
      this.#readLease();
      return;
    }
    const { name, lease } = JSON.parse(data) as { name: string; lease?: Lease };
    if (name !== this.name) return;
    if (event === "queue") this.#readQueue();
    else if (lease === undefined) this.#readLease();
    else this.#show(lease);
  }

  #show(lease: Lease): void {
    if (this.lease !== null && isOlder(lease, this.lease)) return;
    learnFromLease(lease);
    this.lease = lease;
    this.state = "found";
    this.changed();
  }

  #readLease(): void {
    const { tenant, name } = this;
    get<Lease>("/v1/lease", { tenant, name }, this.#closed.signal).then(
      (lease) => {
        this.error = null;
        this.#show(lease);
      },
      (error: unknown) => this.#failed(error),
    );
  }

  #readQueue(): void {
    const { tenant, name } = this;
    get<Queue>("/v1/queue", { tenant, name }, this.#closed.signal).then(
      (queue) => {
        this.queue = queue;
        this.queueAtMs = Date.now();
        this.changed();
      },
      () => undefined,
    );
  }

  #readHome(): void {
    const { tenant, name } = this;
    get<Replicas>("/v1/replicas", { tenant, name }, this.#closed.signal).then(
      ({ home, self, replicas }) => {
        const url = replicas.find(({ nodeId }) => nodeId === home)?.url;
        this.home = home === null || home === undefined || url === undefined ? null : { home, self, url };
        this.changed();
      },
      () => undefined,
    );
  }

  #readHistory(): void {
    const { tenant, name } = this;
    const { signal } = this.#closed;
    const asked = HISTORY.map((kind) => queryAudit({ tenant, name, order: "newest-first", ...kind }, signal));
    Promise.all(asked).then(
      (answers) => this.#remember(answers.flat()),
      (error: unknown) => {
        if (error instanceof ProblemError && error.problem.status === 403) this.history = "forbidden";
        this.changed();
      },
    );
  }

  /** The stream and the trail bring the same entries, in any order. */
  #remember(events: readonly AuditEvent[]): void {
    for (const event of events) {
      const { traceId, action, at, reason, fence = "" } = event;
      const id = `${traceId} ${action} ${at} ${reason} ${fence}`;
      // What comes from the trail has its place in the chain: it is worth more.
      if ("sequence" in event || !this.#seen.has(id)) this.#seen.set(id, event);
    }
    if (this.#seen.size > MOST_DECISIONS) this.#forget();
    this.history = [...this.#seen.values()].sort((a, b) => b.at - a.at);
    this.changed();
  }

  /** The newest half of what may be there stays, and of the rest what says who held it, as long as that is possible. */
  #forget(): void {
    const oldest = [...this.#seen].sort(([, a], [, b]) => a.at - b.at).slice(0, -MOST_DECISIONS / 2);
    const minor = oldest.filter(
      ([, { action, allowed }]) => !allowed || action === "renew" || action === "use",
    );
    for (const [id] of minor.length > 0 ? minor : oldest) this.#seen.delete(id);
  }

  #failed(error: unknown): void {
    if (this.#closed.signal.aborted) return;
    const status = error instanceof ProblemError ? error.problem.status : 0;
    this.error = error;
    if (status === 404) this.state = "missing";
    else if (status === 409) this.state = "damaged";
    else if (this.lease === null || status === 403) this.state = "failed";
    this.changed();
  }
}
