/**
 * LeaseService in the words of document 000: grant, renew, useLease, revoke, get, activeCount, and a decision for every
 * attempt. Thin: each method is one command of the pipeline (audit, quota, `decide`, conditional write).
 *
 * A grant without a name gets a name of its own, so a holder may have many leases. Grants with the same name exclude each
 * other. A method that is not allowed throws a LeaseServiceError with the document's LS_ code; nothing has changed then.
 */
import { type AuditTrail, MemoryAuditTrail } from "../audit/index.ts";
import {
  DEFAULT_TENANT,
  fenceGeneration,
  type LeaseKey,
  type LeaseOp,
  type LeasePolicy,
  type LeaseServiceCode,
  leaseIdOf,
  type Purpose,
  parseFence,
  REASONS,
} from "../core/index.ts";
import { type Env, randomId, realEnv } from "../env/index.ts";
import { type CommandOutcome, type LeaseRequest, type LeaseView, StoreExecutor } from "../executor/index.ts";
import { LeaseService as LayeredService, serviceCodeOf } from "../layers/index.ts";
import { type LeaseStore, MemoryStore } from "../store/index.ts";
import { BoundedMap } from "../support/bounded-map.ts";
import { given } from "../support/given.ts";
import { type LeaseDecision, LeaseServiceError } from "./lease-service-types.ts";
import { seedValue } from "./seed-json.ts";
import { LEASE_SERVICE_POLICY } from "./seed-policies.ts";

/** A lease of document 000. Instants are epoch seconds by the store's clock. */
export interface ServiceLease {
  /** `tenant/name@fence`: every grant has its own. */
  readonly leaseId: string;
  readonly holder: string;
  /** Fixed at the grant. */
  readonly purpose: Purpose;
  readonly ttlSecs: number;
  readonly grantedAt: number;
  readonly renewedAt: number;
  readonly revoked: boolean;
}

/** What `grant` returns. The token proves ownership to another process; keep it secret. It is not printed as JSON. */
export interface GrantedLease extends ServiceLease {
  readonly token: string;
}

/** The lease, or its id. By id alone only leases of this very object can be renewed and used: ids prove nothing. */
export type LeaseReference = string | GrantedLease;

export interface LeaseServiceOptions {
  /** Default: a new store in memory. */
  readonly store?: LeaseStore;
  /** Default: the last 10,000 decisions, in memory. */
  readonly audit?: AuditTrail;
  /** Clocks and randomness. Default: the real ones. */
  readonly env?: Env;
  /** Default "default". */
  readonly tenant?: string;
  /** More live leases are refused with LS_CAPACITY_EXCEEDED. Default 1,000,000. */
  readonly maxLeases?: number;
  /** Over LEASE_SERVICE_POLICY. */
  readonly policy?: Partial<LeasePolicy>;
}

export interface TracedCall {
  /** Names the attempt in `decisions`. Random when not given. */
  readonly traceId?: string;
}

export interface GrantOptions extends TracedCall {
  /** What is leased. Random when not given: then nothing else can be in its way. */
  readonly name?: string;
}

interface Ownership {
  readonly key: LeaseKey;
  readonly holder: string;
  readonly token: string;
  readonly ttlMs: number | null;
  readonly fence: bigint | null;
}

const SECOND_MS = 1_000;
const KEPT_DECISIONS = 10_000;
const KEPT_TOKENS = 100_000;
/** Sent for leases whose token is not known here: no grant has it, so the command is decided and audited as anybody's. */
const NO_TOKEN = "none";
const STRANGER = "unknown";

export class LeaseService {
  readonly #service: LayeredService;
  readonly #audit: AuditTrail;
  readonly #env: Env;
  readonly #tenant: string;
  readonly #granted = new BoundedMap<Ownership>(KEPT_TOKENS);

  constructor(options: LeaseServiceOptions = {}) {
    const { env = realEnv, tenant = DEFAULT_TENANT, maxLeases } = options;
    const { store = new MemoryStore({ env }), audit = new MemoryAuditTrail({ capacity: KEPT_DECISIONS }) } =
      options;
    const executor = new StoreExecutor({
      store,
      env,
      policy: { ...LEASE_SERVICE_POLICY, ...options.policy },
    });
    const limits = given({ maxLiveLeases: maxLeases });
    this.#service = new LayeredService({ executor, audit, env, ...limits });
    this.#audit = audit;
    this.#env = env;
    this.#tenant = tenant;
  }

  /** Grants a lease of `ttlSecs` seconds for one purpose. */
  async grant(
    holder: string,
    purpose: Purpose,
    ttlSecs: number,
    options: GrantOptions = {},
  ): Promise<GrantedLease> {
    const key = { tenant: this.#tenant, name: options.name ?? randomId(this.#env) };
    const request = { op: "acquire", key, holder, purpose, ttlMs: ttlSecs * SECOND_MS } as const;
    const { outcome } = await this.#run(request, `${key.tenant}/${key.name}`, options);
    const { lease } = outcome.decision;
    const { ttlMs } = lease;
    const fence = parseFence(leaseIdOf(lease).split("@").at(-1) ?? "");
    this.#granted.set(leaseIdOf(lease), { key, holder, token: outcome.token, ttlMs, fence });
    return seedValue({ ...leaseFields(lease, leaseIdOf(lease)), token: outcome.token });
  }

  /** Sets the expiry to now + its own ttl. LS_EXPIRED once it has expired, LS_ALREADY_REVOKED once it was revoked. */
  async renew(lease: LeaseReference, options: TracedCall = {}): Promise<ServiceLease> {
    const { leaseId, owner } = this.#find(lease);
    const { key, holder, token, ttlMs } = owner;
    const request = { op: "renew", key, holder, token, ...(ttlMs === null ? {} : { ttlMs }) } as const;
    const { outcome } = await this.#run(request, leaseId, options);
    return seedValue(leaseFields(outcome.decision.lease, leaseId));
  }

  /** Resolves if the lease may be used for `purpose` now; it never renews. LS_STALE_USE, then LS_PURPOSE_MISMATCH. */
  async useLease(lease: LeaseReference, purpose: Purpose, options: TracedCall = {}): Promise<ServiceLease> {
    const { leaseId, owner } = this.#find(lease);
    const { key, holder, token } = owner;
    const { outcome } = await this.#run({ op: "use", key, holder, token, purpose }, leaseId, options);
    return seedValue(leaseFields(outcome.decision.lease, leaseId));
  }

  /** Ends it, live or expired. A second time: LS_ALREADY_REVOKED. */
  async revoke(lease: LeaseReference, options: TracedCall = {}): Promise<void> {
    const { leaseId, owner } = this.#find(lease);
    const generation = owner.fence === null ? {} : { generation: fenceGeneration(owner.fence) };
    await this.#run({ op: "revoke", key: owner.key, ...generation }, leaseId, options);
  }

  /** Null when no such lease was granted, or another grant has replaced it. */
  async get(leaseId: string): Promise<ServiceLease | null> {
    const { owner } = this.#find(leaseId);
    const view = await this.#service.read(owner.key);
    if (view === null || (owner.fence !== null && owner.fence !== view.fence)) return null;
    return seedValue(leaseFields(view, leaseId));
  }

  /** How many leases are alive now. */
  async activeCount(): Promise<number> {
    return await this.#service.activeCount(this.#tenant);
  }

  /** Every attempt so far, allowed or not, in order. */
  async decisions(): Promise<readonly LeaseDecision[]> {
    const entries = await this.#audit.query({ tenant: this.#tenant, limit: KEPT_DECISIONS });
    // An expiry is in the trail, but nobody attempted it.
    const attempts = entries.filter(({ action }) => action !== "expire");
    return attempts.map(({ leaseId, action, allowed, reason, traceId, at, code = "LS_OK", detail = {} }) => {
      const { expected, actual } = detail;
      const mismatch = expected === undefined || actual === undefined ? {} : { expected, actual };
      const timestamp = new Date(at).toISOString();
      return seedValue({ leaseId, action, allowed, reason, traceId, timestamp, code, ...mismatch });
    }) as readonly LeaseDecision[];
  }

  /** Closes the store, too. */
  async close(): Promise<void> {
    await this.#service.close();
    await this.#service.executor.close();
  }

  async #run(request: LeaseRequest, leaseId: string, { traceId }: TracedCall) {
    const outcome = await this.#service.execute(request, traceId === undefined ? {} : { traceId });
    if (outcome.kind === "applied") return { outcome };
    const { op } = request;
    const isDenied = outcome.kind === "refused" && outcome.decision.kind === "denied";
    const mismatch = isDenied ? outcome.decision.mismatch : undefined;
    throw new LeaseServiceError(serviceCodeOf(op, outcome), leaseId, sentenceOf(op, outcome), mismatch);
  }

  #find(lease: LeaseReference): { readonly leaseId: string; readonly owner: Ownership } {
    const leaseId = typeof lease === "string" ? lease : lease.leaseId;
    const known = this.#granted.get(leaseId);
    if (known !== undefined) return { leaseId, owner: known };
    const { key, fence } = this.#parse(leaseId);
    if (typeof lease === "string") {
      const owner = { key, fence, holder: STRANGER, token: NO_TOKEN, ttlMs: null };
      return { leaseId, owner };
    }
    const { holder, token, ttlSecs } = lease;
    return { leaseId, owner: { key, fence, holder, token, ttlMs: ttlSecs * SECOND_MS } };
  }

  /** A text that is no id of ours is asked for as a name, so that the attempt is decided and audited. */
  #parse(leaseId: string): Pick<Ownership, "key" | "fence"> {
    const [, tenant, name, fence] = /^([^/]+)\/(.+?)(?:@(\d+))?$/s.exec(leaseId) ?? [];
    if (tenant === undefined || name === undefined)
      return { key: { tenant: this.#tenant, name: leaseId }, fence: null };
    return { key: { tenant, name }, fence: fence === undefined ? null : parseFence(fence) };
  }
}

type LeaseSource = Pick<LeaseView, "holder" | "purpose" | "ttlMs" | "grantedAtMs" | "renewedAtMs" | "state">;

function leaseFields(source: LeaseSource, leaseId: string): ServiceLease {
  const { holder, purpose, ttlMs, grantedAtMs, renewedAtMs, state } = source;
  return {
    leaseId,
    holder,
    purpose,
    ttlSecs: ttlMs / SECOND_MS,
    grantedAt: Math.floor(grantedAtMs / SECOND_MS),
    renewedAt: Math.floor(renewedAtMs / SECOND_MS),
    revoked: state === "revoked",
  };
}

function sentenceOf(op: LeaseOp, outcome: Exclude<CommandOutcome, { kind: "applied" }>): string {
  if (outcome.kind === "unsettled") return `${op}: ${outcome.cause.message}`;
  const { decision } = outcome;
  if (decision.kind === "refused") return `${op}: ${decision.field} ${decision.message}`;
  return `${op}: ${REASONS[decision.reason].sentence}`;
}

export type { LeaseServiceCode };
