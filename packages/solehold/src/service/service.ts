/**
 * LeaseService: leases for many callers, with purposes, limits and a trail of every attempt.
 *
 * The way of a request: limits -> manager (read, decide, conditional write) -> audit -> reply. Allowed or
 * not, known key or not, every attempt is one decision in the audit, with its reason and trace id.
 */

import type { QuorumVerification } from "../coordinator/index.ts";
import type { LeaseKey, LeaseRecord } from "../core/index.ts";
import { delay, type Env, randomId } from "../env/index.ts";
import { BoundedMap } from "../manager/bounded-map.ts";
import type {
  AcquireRequest,
  BreakRequest,
  CommandOutcome,
  HandoffRequest,
  LeaseListing,
  LeaseRequest,
  LeaseView,
  ReleaseRequest,
  RenewRequest,
  ResumeRequest,
  RevokeRequest,
  StoreLeaseManager,
  UseRequest,
} from "../manager/index.ts";
import type { ListQuery, StoreEvent, StoreWatch } from "../stores/index.ts";
import { barredBy, guardedCommandOf } from "./approvals/barrier.ts";
import { ApprovalGuard, type ApprovalPolicy, type GuardVerdict } from "./approvals/index.ts";
import type { AuditTrail } from "./audit/index.ts";
import { auditEventOf, entryOf, expiryEvent, type LeaseDecisionEntry } from "./decision-entry.ts";
import { LiveIndex } from "./live-index.ts";
import { asStoreError, full, unaudited } from "./outcomes.ts";

/** Who asks, and under which trace. */
export interface CallContext {
  readonly traceId?: string;
  /** The authenticated caller: idempotency keys are bound to it. */
  readonly caller?: string;
}

export interface ServiceReply {
  readonly outcome: CommandOutcome;
  readonly entry: LeaseDecisionEntry;
  /** How the approvals were judged, where a rule asked for some. */
  readonly quorum: QuorumVerification | null;
}

export interface LeaseServiceOptions {
  readonly manager: StoreLeaseManager;
  readonly audit: AuditTrail;
  readonly env: Env;
  /** Per tenant; more are denied with CAPACITY_EXCEEDED. */
  readonly maxLiveLeases?: number;
  /** How many tenants are known to be read; more cost a read at their next use. */
  readonly rememberedTenants?: number;
  /** Keys that need approvals; none without it. */
  readonly approvalPolicy?: ApprovalPolicy;
}

const DEFAULT_MAX_LIVE_LEASES = 1_000_000;
const DEFAULT_REMEMBERED_TENANTS = 10_000;
const LIST_PAGE = 1_000;
/** How long a grant waits for its tenant's leases to be counted. */
const LONGEST_COUNT_MS = 250;

/** How long the audit waits for a grant that follows the end of another. */
const LONGEST_HOLD_MS = 5;

/** What some commands come with. */
interface Special {
  /** A release gives back this grant, and nothing that was written since. */
  readonly granted?: LeaseRecord | null;
  /** The audit is held until this is called. */
  readonly letGo?: (() => void) | null;
}

interface Loading {
  readonly finished: Promise<void>;
  state: "under way" | "finished";
}

/** The verdict where nothing is guarded. */
const OPEN: GuardVerdict = Object.freeze({ kind: "open" });

type Without<Request extends LeaseRequest> = Omit<Request, "op" | "caller">;

export class LeaseService {
  readonly manager: StoreLeaseManager;
  readonly audit: AuditTrail;
  readonly #env: Env;
  readonly #maxLiveLeases: number;
  readonly #guard: ApprovalGuard | null;
  readonly #index: LiveIndex;
  readonly #expiryListeners = new Set<(record: LeaseRecord) => void>();
  /** Bounded, because anybody can name tenants; one that was forgotten is read again at its next use. */
  #loadedTenants: BoundedMap<Loading>;
  readonly #rememberedTenants: number;
  /** Grants under way, so that a burst cannot slip past the limit together. */
  readonly #grantsUnderWay = new Map<string, number>();
  #watch: Promise<StoreWatch | null> | null = null;

  constructor(options: LeaseServiceOptions) {
    this.manager = options.manager;
    this.audit = options.audit;
    this.#env = options.env;
    this.#maxLiveLeases = options.maxLiveLeases ?? DEFAULT_MAX_LIVE_LEASES;
    this.#rememberedTenants = options.rememberedTenants ?? DEFAULT_REMEMBERED_TENANTS;
    this.#loadedTenants = new BoundedMap(this.#rememberedTenants);
    const { approvalPolicy: policy, manager, env } = options;
    const nowMs = (): number => manager.storeNowMs();
    this.#guard =
      policy === undefined ? null : new ApprovalGuard({ policy, store: manager.store, env, nowMs });
    this.#index = new LiveIndex({
      env,
      nowMs,
      onExpired: (record) => this.#announceExpiry(record),
    });
  }

  /** For the next in line the end of the last lease and this grant become safe in the audit together. */
  async grant(
    request: Without<AcquireRequest>,
    context: CallContext = {},
    place: "alone" | "next in line" = "alone",
  ): Promise<ServiceReply> {
    const { tenant } = request.key;
    const loading = this.#load(tenant);
    if (loading.state === "under way") await this.#awhile(loading);
    const asked: AcquireRequest = { ...request, op: "acquire" };
    if (this.#isFull(request.key)) {
      return await this.#record(asked, full(this.#nowMs()), this.#traceOf(context), OPEN);
    }
    this.#grantsUnderWay.set(tenant, (this.#grantsUnderWay.get(tenant) ?? 0) + 1);
    const letGo = place === "alone" ? null : this.#holdAudit();
    try {
      return await this.#perform(asked, context, { letGo });
    } finally {
      letGo?.();
      const left = (this.#grantsUnderWay.get(tenant) ?? 1) - 1;
      if (left > 0) this.#grantsUnderWay.set(tenant, left);
      else this.#grantsUnderWay.delete(tenant);
    }
  }

  renew(request: Without<RenewRequest>, context: CallContext = {}): Promise<ServiceReply> {
    return this.#perform({ ...request, op: "renew" }, context);
  }

  release(request: Without<ReleaseRequest>, context: CallContext = {}): Promise<ServiceReply> {
    return this.#perform({ ...request, op: "release" }, context);
  }

  /** Releases a grant that nobody heard of, if nothing was written since. */
  giveBack(
    request: Without<ReleaseRequest>,
    granted: LeaseRecord,
    context: CallContext = {},
  ): Promise<ServiceReply> {
    return this.#perform({ ...request, op: "release" }, context, { granted });
  }

  use(request: Without<UseRequest>, context: CallContext = {}): Promise<ServiceReply> {
    return this.#perform({ ...request, op: "use" }, context);
  }

  resume(request: Without<ResumeRequest>, context: CallContext = {}): Promise<ServiceReply> {
    return this.#perform({ ...request, op: "resume" }, context);
  }

  handOff(request: Without<HandoffRequest>, context: CallContext = {}): Promise<ServiceReply> {
    return this.#perform({ ...request, op: "handoff" }, context);
  }

  revoke(request: Without<RevokeRequest>, context: CallContext = {}): Promise<ServiceReply> {
    return this.#perform({ ...request, op: "revoke" }, context);
  }

  break(request: Without<BreakRequest>, context: CallContext = {}): Promise<ServiceReply> {
    return this.#perform({ ...request, op: "break" }, context);
  }

  get(key: LeaseKey): Promise<LeaseView | null> {
    return this.manager.get(key);
  }

  list(query: ListQuery): Promise<LeaseListing> {
    return this.manager.list(query);
  }

  /** How many leases of the tenant are alive now. Costs no scan after the tenant's first use. */
  async activeCount(tenant: string): Promise<number> {
    await this.#load(tenant).finished;
    return this.#index.count(tenant);
  }

  /** Alive leases of all tenants that were used through this service. */
  liveLeases(): number {
    return this.#index.total();
  }

  /** Calls back when a lease runs out without having been ended. */
  onExpired(listener: (record: LeaseRecord) => void): () => void {
    this.#expiryListeners.add(listener);
    return () => void this.#expiryListeners.delete(listener);
  }

  /** Stops following the store, and makes the audit safe. The manager is its owner's to close. */
  async close(): Promise<void> {
    this.#index.close();
    const watch = this.#watch === null ? null : await this.#watch.catch(() => null);
    await watch?.close();
    await this.audit.flush();
  }

  async #perform(
    request: LeaseRequest,
    context: CallContext,
    { granted = null, letGo = null }: Special = {},
  ): Promise<ServiceReply> {
    const traceId = this.#traceOf(context);
    const bound = context.caller === undefined ? request : { ...request, caller: context.caller };
    // Most services guard nothing: they do not pay for asking.
    const verdict = this.#guard === null ? OPEN : await this.#guardVerdict(this.#guard, request, traceId);
    const barred = verdict === OPEN ? null : barredBy(verdict, this.#nowMs());
    const outcome = barred ?? (await this.#command(bound, granted));
    if (outcome.kind === "applied") this.#index.learn(outcome.decision.lease);
    else if (outcome.kind === "refused") await this.#guard?.withdraw(verdict);
    return await this.#record(request, outcome, traceId, verdict, letGo);
  }

  /** What waits for a store that does not answer must not wait for long. */
  #holdAudit(): (() => void) | null {
    const letGo = this.audit.hold?.();
    if (letGo === undefined) return null;
    const timer = this.#env.timer(LONGEST_HOLD_MS, letGo);
    return () => {
      timer.cancel();
      letGo();
    };
  }

  #command(request: LeaseRequest, granted: LeaseRecord | null): Promise<CommandOutcome> {
    const { manager } = this;
    switch (request.op) {
      case "acquire":
        return manager.acquire(request);
      case "renew":
        return manager.renew(request);
      case "release":
        return granted === null ? manager.release(request) : manager.giveBack(request, granted);
      case "use":
        return manager.use(request);
      case "resume":
        return manager.resume(request);
      case "handoff":
        return manager.handOff(request);
      case "revoke":
        return manager.revoke(request);
      case "break":
        return manager.break(request);
    }
  }

  #traceOf({ traceId }: CallContext): string {
    return traceId ?? randomId(this.#env);
  }

  async #guardVerdict(guard: ApprovalGuard, request: LeaseRequest, traceId: string): Promise<GuardVerdict> {
    const command = guardedCommandOf(request, this.manager.policy.defaultTtlMs);
    if (command === null) return OPEN;
    try {
      return await guard.check(command, request.approval, traceId);
    } catch (cause) {
      return { kind: "unavailable", cause: asStoreError(cause) };
    }
  }

  /** The attempt enters the audit before its answer leaves. */
  async #record(
    request: LeaseRequest,
    outcome: CommandOutcome,
    traceId: string,
    verdict: GuardVerdict,
    letGo: (() => void) | null = null,
  ): Promise<ServiceReply> {
    const quorum = "verification" in verdict ? verdict.verification : null;
    const entry = entryOf(request, outcome, traceId, this.#whenDecided(outcome));
    try {
      const safe = this.audit.append(auditEventOf(request, outcome, entry, quorum));
      letGo?.();
      await safe;
    } catch (cause) {
      return {
        outcome: unaudited(cause),
        entry: { ...entry, allowed: false, code: "LS_UNAVAILABLE" },
        quorum,
      };
    }
    return { outcome, entry, quorum };
  }

  /** A refusal without the store, and what the store never settled, is stamped here. */
  #whenDecided(outcome: CommandOutcome): number {
    return outcome.kind !== "unsettled" && outcome.storeTimeMs > 0 ? outcome.storeTimeMs : this.#nowMs();
  }

  #announceExpiry(record: LeaseRecord): void {
    this.#appendQuietly(record).catch(() => undefined);
    for (const listener of this.#expiryListeners) listener(record);
  }

  /** Nobody waits for this entry; a trail that cannot take it says so at the next command. */
  async #appendQuietly(record: LeaseRecord): Promise<void> {
    await this.audit.append(expiryEvent(record));
  }

  #isFull(key: LeaseKey): boolean {
    const wanted = (this.#grantsUnderWay.get(key.tenant) ?? 0) + 1;
    return !this.#index.hasRoom(key.tenant, wanted, this.#maxLiveLeases) && !this.#index.has(key);
  }

  /** The first use of a tenant reads what is alive; from then on decisions and news keep it current. */
  #load(tenant: string): Loading {
    const known = this.#loadedTenants.get(tenant);
    if (known !== undefined) return known;
    const finished = this.#loadNow(tenant).then(() => {
      loading.state = "finished";
    });
    const loading: Loading = { finished, state: "under way" };
    this.#loadedTenants.set(tenant, loading);
    return loading;
  }

  /** A million leases take longer to count than a caller has patience; until then the limit may be exceeded. */
  async #awhile(loading: Loading): Promise<void> {
    const enough = new AbortController();
    await Promise.race([loading.finished, delay(this.#env, LONGEST_COUNT_MS, enough.signal)]);
    enough.abort();
  }

  async #loadNow(tenant: string): Promise<void> {
    try {
      await this.#follow();
      let after: string | null = null;
      do {
        const cursor: { after?: string } = after === null ? {} : { after };
        const query: ListQuery = { tenant, prefix: "", state: "held", limit: LIST_PAGE, ...cursor };
        const page = await this.manager.store.list(query);
        for (const record of page.records) this.#index.learn(record);
        after = page.next;
      } while (after !== null);
    } catch {
      // The index only serves counts and limits: a store that is down now is asked again at the next use.
      this.#loadedTenants.delete(tenant);
    }
  }

  async #follow(): Promise<void> {
    this.#watch ??= this.manager.watch({ tenant: null, prefix: "" }, (event) => this.#onNews(event));
    await this.#watch.catch(() => {
      this.#watch = null;
    });
  }

  #onNews(event: StoreEvent): void {
    if (event.kind === "reset") {
      this.#loadedTenants = new BoundedMap(this.#rememberedTenants);
      return;
    }
    if (event.record !== null) this.#index.learn(event.record);
    else this.#index.remove(event.key);
  }

  #nowMs(): number {
    return this.manager.storeNowMs();
  }
}
