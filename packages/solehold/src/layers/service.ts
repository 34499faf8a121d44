/**
 * LeaseService: leases for many callers, as one composition of layers over a store:
 * audit -> approvals -> quota -> StoreExecutor (read, decide, conditional write).
 *
 * Allowed or not, known key or not, every attempt is one entry in the audit, with its reason and trace id.
 */
import type { ApprovalRules } from "../approvals/approval-policy.ts";
import type { AuditEvent, AuditTrail } from "../audit/index.ts";
import type { LeaseKey, LeaseRecord } from "../core/index.ts";
import { type Env, randomId } from "../env/index.ts";
import {
  type CallContext,
  ExecutorLayer,
  type Explanation,
  type LeaseRequest,
  type StoreExecutor,
} from "../executor/index.ts";
import { StoreError } from "../store/index.ts";
import { ApprovalCheck } from "./approval-check.ts";
import { withApprovals } from "./approvals.ts";
import { unauditedError, withAudit } from "./audit.ts";
import { expiryEvent, explainEvent, repairEvent } from "./audit-entry.ts";
import { LiveLeases } from "./live-leases.ts";
import { withQuota } from "./quota.ts";

export interface LeaseServiceOptions {
  readonly executor: StoreExecutor;
  readonly audit: AuditTrail;
  readonly env: Env;
  /** Per tenant; more are denied with CAPACITY_EXCEEDED. Default 1,000,000. */
  readonly maxLiveLeases?: number;
  /** How many tenants' leases are kept counted; more cost a listing at their next use. Default 10,000. */
  readonly rememberedTenants?: number;
  /** Keys that need approvals; none without it. */
  readonly approvalPolicy?: ApprovalRules;
}

const DEFAULT_MAX_LIVE_LEASES = 1_000_000;
const DEFAULT_REMEMBERED_TENANTS = 10_000;

export class LeaseService extends ExecutorLayer {
  /** What decides, below all layers. */
  readonly executor: StoreExecutor;
  readonly audit: AuditTrail;
  readonly #env: Env;
  readonly #live: LiveLeases;
  readonly #expiryListeners: Set<(record: LeaseRecord) => void>;

  constructor(options: LeaseServiceOptions) {
    const { executor, audit, env, approvalPolicy: policy } = options;
    const expiryListeners = new Set<(record: LeaseRecord) => void>();
    const nowMs = (): number => executor.storeNowMs();
    const live = new LiveLeases({
      env,
      executor,
      maxLiveLeases: options.maxLiveLeases ?? DEFAULT_MAX_LIVE_LEASES,
      rememberedTenants: options.rememberedTenants ?? DEFAULT_REMEMBERED_TENANTS,
      onExpired: (record) => {
        appendExpiry(audit, record).catch(() => undefined);
        for (const listener of expiryListeners) listener(record);
      },
    });
    const limited = withQuota(live)(executor);
    const approved =
      policy === undefined
        ? limited
        : withApprovals(new ApprovalCheck({ policy, store: executor.store, env, nowMs }))(limited);
    super(withAudit({ trail: audit, env, nowMs })(approved));
    this.executor = executor;
    this.audit = audit;
    this.#env = env;
    this.#live = live;
    this.#expiryListeners = expiryListeners;
  }

  /** What would be decided now, and why. Nothing is carried out, but that it was asked is in the audit. */
  async explain(request: LeaseRequest, context: CallContext = {}): Promise<Explanation> {
    const explained = await this.executor.explain(request, context);
    const traced = { ...context, traceId: context.traceId ?? randomId(this.#env) };
    await this.record(explainEvent(request, explained, traced, this.executor.storeNowMs()));
    return explained;
  }

  /** How many leases of the tenant are alive now. Costs no scan after the tenant's first use. */
  async activeCount(tenant: string): Promise<number> {
    return await this.#live.count(tenant);
  }

  /** Tenants of requests to this service, and of the store's events, since it started; at most `rememberedTenants`. */
  tenants(): readonly string[] {
    return this.#live.tenants;
  }

  /** Live leases of all tenants that were used through this service. */
  liveLeases(): number {
    return this.#live.total;
  }

  /**
   * Replaces a damaged record by a tombstone of this generation, which must be no lower than any that was ever
   * granted under the key: see `repairGeneration`. False when the record is not damaged (any more). Rejects with a
   * StoreError, also when the audit cannot be written.
   */
  async repair(key: LeaseKey, generation: bigint, context: CallContext = {}): Promise<boolean> {
    const ended = await this.executor.repair(key, generation).catch((error: unknown) => {
      if (error instanceof StoreError) return error;
      throw error;
    });
    const traced = { ...context, traceId: context.traceId ?? randomId(this.#env) };
    await this.record(repairEvent(key, generation, ended, traced, this.executor.storeNowMs()));
    if (typeof ended !== "boolean") throw ended;
    return ended;
  }

  /** An entry for what is no command on a lease. Rejects with a StoreError when it cannot be written. */
  async record(event: AuditEvent): Promise<void> {
    try {
      await this.audit.append(event);
    } catch (failure) {
      throw unauditedError(failure);
    }
  }

  /** Calls back when a lease expires without having been ended. */
  onExpired(listener: (record: LeaseRecord) => void): () => void {
    this.#expiryListeners.add(listener);
    return () => void this.#expiryListeners.delete(listener);
  }

  /** Stops watching the store, and makes the audit durable. The store's executor is its owner's to close. */
  override async close(): Promise<void> {
    await this.#live.close();
    await this.audit.flush();
  }
}

/** Nobody waits for this entry; a trail that cannot take it fails the next command. */
async function appendExpiry(audit: AuditTrail, record: LeaseRecord): Promise<void> {
  await audit.append(expiryEvent(record));
}
