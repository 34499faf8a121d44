/**
 * LeaseService: leases for many callers, with purposes, limits and a trail of every attempt.
 *
 * The way of a request: limits -> manager (read, decide, conditional write) -> audit -> reply. Allowed or
 * not, known key or not, every attempt is one decision in the audit, with its reason and trace id.
 */

import type { ApprovalPolicy, QuorumVerification } from "../approvals/index.ts";
import type { AuditTrail } from "../audit/index.ts";
import type { LeaseKey, LeaseRecord } from "../core/index.ts";
import { type Env, randomId } from "../env/index.ts";
import {
  type AcquireRequest,
  acquireCommand,
  type BreakRequest,
  type CommandOutcome,
  type HandoffRequest,
  type LeaseListing,
  type LeaseRequest,
  type LeaseView,
  type ReleaseRequest,
  type RenewRequest,
  type ResumeRequest,
  type RevokeRequest,
  requestProblem,
  type StoreLeaseManager,
  type UseRequest,
} from "../executor/index.ts";
import { asStoreError, type ListQuery, StoreError } from "../store/index.ts";
import { barredBy, guardedCommandOf } from "./approval-outcome.ts";
import { auditEventOf, entryOf, expiryEvent, type LeaseDecisionEntry, repairEvent } from "./audit-entry.ts";
import { HandOver } from "./handover.ts";
import { ApprovalGuard, type GuardVerdict } from "./index.ts";
import { LiveLeases } from "./live-leases.ts";
import { full, unaudited, unauditedError } from "./outcomes.ts";
import { sendTo } from "./send.ts";

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
  /** The same write granted the lease to the next: what this reply tells never stood in the store. */
  readonly superseded?: true;
}

/** A request with who makes it. */
export interface Asking<Request extends LeaseRequest> {
  readonly request: Without<Request>;
  readonly context: CallContext;
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

/** The verdict where nothing is guarded. */
const OPEN: GuardVerdict = Object.freeze({ kind: "open" });

/** Who calls a method need not name the operation again; but a request that does is not copied. */
type Without<Request extends LeaseRequest> = Omit<Request, "op" | "caller"> & { readonly op?: Request["op"] };

export class LeaseService {
  readonly manager: StoreLeaseManager;
  readonly audit: AuditTrail;
  readonly #env: Env;
  readonly #guard: ApprovalGuard | null;
  readonly #live: LiveLeases;
  readonly #expiryListeners = new Set<(record: LeaseRecord) => void>();

  constructor(options: LeaseServiceOptions) {
    this.manager = options.manager;
    this.audit = options.audit;
    this.#env = options.env;
    const { approvalPolicy: policy, manager, env } = options;
    const nowMs = (): number => manager.storeNowMs();
    this.#guard =
      policy === undefined ? null : new ApprovalGuard({ policy, store: manager.store, env, nowMs });
    this.#live = new LiveLeases({
      env,
      manager,
      maxLiveLeases: options.maxLiveLeases ?? DEFAULT_MAX_LIVE_LEASES,
      rememberedTenants: options.rememberedTenants ?? DEFAULT_REMEMBERED_TENANTS,
      onExpired: (record) => this.#announceExpiry(record),
    });
  }

  grant(request: Without<AcquireRequest>, context: CallContext = {}): Promise<ServiceReply> {
    const loaded = this.#live.loaded(request.key.tenant);
    return loaded === null ? this.#grant(request, context) : loaded.then(() => this.#grant(request, context));
  }

  #grant(request: Without<AcquireRequest>, context: CallContext): Promise<ServiceReply> {
    const asked: AcquireRequest = isNamed(request) ? request : { ...request, op: "acquire" };
    if (!this.#live.isFull(request.key)) return this.#perform(asked, context);
    return this.#record(asked, full(this.#nowMs()), this.#traceOf(context), OPEN);
  }

  renew(request: Without<RenewRequest>, context: CallContext = {}): Promise<ServiceReply> {
    return this.#perform(isNamed(request) ? request : { ...request, op: "renew" }, context);
  }

  release(request: Without<ReleaseRequest>, context: CallContext = {}): Promise<ServiceReply> {
    return this.#perform(isNamed(request) ? request : { ...request, op: "release" }, context);
  }

  /** Releases a grant that nobody heard of, if nothing was written since. */
  giveBack(
    request: Without<ReleaseRequest>,
    granted: LeaseRecord,
    context: CallContext = {},
  ): Promise<ServiceReply> {
    return this.#perform({ ...request, op: "release" }, context, granted);
  }

  /**
   * Releases, and grants to who waits, with one write: see hand-over.ts. Resolves with null for the second where the
   * release was decided alone.
   */
  async handOver(
    { request, context }: Asking<ReleaseRequest>,
    next: Asking<AcquireRequest> & { readonly request: { readonly token: string } },
  ): Promise<readonly [ServiceReply, ServiceReply | null]> {
    const { tenant } = request.key;
    const { token } = next.request;
    const isSound = requestProblem(request, request.token) ?? requestProblem(next.request, token);
    const isOpen = this.#guard === null && this.#live.loaded(tenant) === null;
    if (isSound !== null || !isOpen || this.#live.isFull(request.key))
      return [await this.release(request, context), null];
    const { manager } = this;
    const release = boundTo(context, { ...request, op: "release" });
    const acquire = boundTo(next.context, { ...next.request, op: "acquire" });
    this.#live.grantBegins(tenant);
    const parts = { token, nonce: "", policy: manager.policy };
    const both = new HandOver(acquireCommand(acquire, parts), token);
    const traceId = this.#traceOf(context);
    const nextTraceId = this.#traceOf(next.context);
    const ended = both.outcomes(await manager.releaseBy(release, (...rule) => both.deciding(...rule)));
    this.#live.grantEnds(tenant);
    const [released, granted] = await Promise.all([
      this.#settle(release, ended.released, traceId, OPEN),
      ended.granted === null ? null : this.#settle(acquire, ended.granted, nextTraceId, OPEN),
    ]);
    const isSuperseded = ended.granted?.kind === "applied";
    return [isSuperseded ? { ...released, superseded: true } : released, granted];
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
    return await this.#live.count(tenant);
  }

  /** Tenants of requests to this service, and of the store's events, since it started; at most `rememberedTenants`. */
  tenants(): readonly string[] {
    return this.#live.tenants;
  }

  /**
   * Replaces a damaged record by a tombstone of this generation, which must be no lower than any that was ever
   * granted under the key: see `repairGeneration`. False when the record is not damaged (any more). Rejects with a
   * StoreError, also when the audit cannot be written.
   */
  async repair(key: LeaseKey, generation: bigint, context: CallContext = {}): Promise<boolean> {
    const ended = await this.manager.repair(key, generation).catch((error: unknown) => {
      if (error instanceof StoreError) return error;
      throw error;
    });
    const event = repairEvent(key, generation, ended, this.#traceOf(context), this.#nowMs());
    try {
      await this.audit.append(event);
    } catch (failure) {
      throw unauditedError(failure);
    }
    if (typeof ended !== "boolean") throw ended;
    return ended;
  }

  /** Alive leases of all tenants that were used through this service. */
  liveLeases(): number {
    return this.#live.total;
  }

  /** Calls back when a lease runs out without having been ended. */
  onExpired(listener: (record: LeaseRecord) => void): () => void {
    this.#expiryListeners.add(listener);
    return () => void this.#expiryListeners.delete(listener);
  }

  /** Stops following the store, and makes the audit safe. The manager is its owner's to close. */
  async close(): Promise<void> {
    await this.#live.close();
    await this.audit.flush();
  }

  /** `granted`: a release gives back this grant, and nothing that was written since. */
  async #perform(
    request: LeaseRequest,
    context: CallContext,
    granted: LeaseRecord | null = null,
  ): Promise<ServiceReply> {
    const traceId = this.#traceOf(context);
    const bound = boundTo(context, request);
    const { tenant } = request.key;
    const guard = this.#guard;
    if (request.op === "acquire") this.#live.grantBegins(tenant);
    const verdict = guard === null ? OPEN : await this.#guardVerdict(guard, bound, traceId);
    const barred = verdict === OPEN ? null : barredBy(verdict, this.#nowMs());
    const outcome = barred ?? (await sendTo(this.manager, bound, granted));
    // An approval that was not used is given back; should that fail, the answer is the same.
    if (outcome.kind === "refused") await guard?.withdraw(verdict).catch(() => undefined);
    if (request.op === "acquire") this.#live.grantEnds(tenant);
    return await this.#settle(request, outcome, traceId, verdict);
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
      return {
        kind: "unavailable",
        cause: asStoreError(cause, "the approvals could not be checked", "not-applied"),
      };
    }
  }

  #settle(
    request: LeaseRequest,
    outcome: CommandOutcome,
    traceId: string,
    verdict: GuardVerdict,
  ): Promise<ServiceReply> {
    if (outcome.kind === "applied") this.#live.learn(outcome.decision.lease);
    return this.#record(request, outcome, traceId, verdict);
  }

  /** The attempt enters the audit before its answer leaves. */
  async #record(
    request: LeaseRequest,
    outcome: CommandOutcome,
    traceId: string,
    verdict: GuardVerdict,
  ): Promise<ServiceReply> {
    const quorum = "verification" in verdict ? verdict.verification : null;
    const entry = entryOf(request, outcome, traceId, this.#whenDecided(outcome));
    try {
      await this.audit.append(auditEventOf(request, outcome, entry, quorum));
      return { outcome, entry, quorum };
    } catch (failure) {
      return unconfirmed(entry, quorum, failure);
    }
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

  #nowMs(): number {
    return this.manager.storeNowMs();
  }
}

function unconfirmed(
  entry: LeaseDecisionEntry,
  quorum: QuorumVerification | null,
  failure: unknown,
): ServiceReply {
  return {
    outcome: unaudited(failure),
    entry: { ...entry, allowed: false, code: "LS_UNAVAILABLE" },
    quorum,
  };
}

function isNamed<Request extends LeaseRequest>(
  request: Without<Request>,
): request is Without<Request> & Request {
  return request.op !== undefined;
}

/** Only what an idempotency key stands for is bound to its caller. */
function boundTo<Request extends LeaseRequest>({ caller }: CallContext, request: Request): Request {
  return caller === undefined || request.idempotencyKey === undefined ? request : { ...request, caller };
}
