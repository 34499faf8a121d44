/**
 * LeaseManager in the words of document 001: which node owns an actor. Over any store; `MemoryLeaseManager` over one in
 * memory. Thin: each method is one command of the pipeline. A node proves ownership by the token that its manager keeps,
 * so a manager that did not acquire a lease cannot renew or release it, whatever node it names.
 */
import {
  DEFAULT_TENANT,
  keyId,
  type LeaseKey,
  type LeasePhase,
  type LeasePolicy,
  phaseAt,
  REASONS,
  type Reason,
  recordFence,
} from "../core/index.ts";
import type { Env } from "../env/index.ts";
import { type CommandOutcome, type LeaseRequest, type LeaseView, StoreExecutor } from "../executor/index.ts";
import { type LeaseStore, MAX_LIST_LIMIT, MemoryStore, pagesOf } from "../store/index.ts";
import { given } from "../support/given.ts";
import { seedValue } from "./seed-json.ts";
import { LEASE_MANAGER_POLICY } from "./seed-policies.ts";

/** An actor, or its id in the default namespace. The same id in two namespaces is two actors. */
export type ActorId = string | { readonly namespace: string; readonly id: string };

/** The lease of document 001. */
export interface ActorLease {
  /** The node that holds it. */
  readonly holder: string;
  /** Epoch milliseconds by the store's clock; dead at exactly this instant. */
  readonly expiry: number;
  readonly namespace: string;
  readonly actorId: string;
  /** 1 at the first grant, one more at each further one, unchanged by renewals. */
  readonly fencingToken: bigint;
  readonly renewals: number;
  /** "grace" in the last part of the lease, in which only its holder may act. */
  readonly phase: LeasePhase;
}

export interface LeaseManager {
  /** Throws LeaseHeldByOther, with its holder and expiry, while another node has it. */
  acquire(nodeId: string, actorId: ActorId): Promise<ActorLease>;
  /** Sets the expiry to now + the lease duration. Throws NotFound, NotLeaseHolder or LeaseExpired, in this order. */
  renew(nodeId: string, actorId: ActorId): Promise<ActorLease>;
  /** Works on an expired lease that nobody took. */
  release(nodeId: string, actorId: ActorId): Promise<void>;
  /** Whether this node's lease is alive now. */
  isValid(nodeId: string, actorId: ActorId): Promise<boolean>;
  /** The current lease, live or expired; null when there is none. */
  getLease(actorId: ActorId): Promise<ActorLease | null>;
  /** Its live leases in a namespace, by actor id. */
  getLeasesForNode(nodeId: string, namespace?: string): Promise<readonly ActorLease[]>;
}

export type LeaseManagerErrorKind =
  | "LeaseHeldByOther"
  | "AlreadyHeld"
  | "NotLeaseHolder"
  | "LeaseExpired"
  | "NotFound"
  | "Refused";

export class LeaseManagerError extends Error {
  override readonly name = "LeaseManagerError";
  readonly kind: LeaseManagerErrorKind;
  /** Who holds it, where somebody does. */
  readonly holder: string | null;
  readonly expiry: number | null;

  constructor(kind: LeaseManagerErrorKind, message: string, holder: string | null, expiry: number | null) {
    super(`${kind}: ${message}`);
    this.kind = kind;
    this.holder = holder;
    this.expiry = expiry;
  }
}

export interface LeaseManagerOptions {
  /** 1,000 to 300,000. Default 30,000. */
  readonly leaseDurationMs?: number;
  /** The last part of a lease, in which its phase is "grace". Default 0. */
  readonly graceMs?: number;
  /** Clocks and randomness. Default: the real ones. */
  readonly env?: Env;
  /** Over LEASE_MANAGER_POLICY. */
  readonly policy?: Partial<LeasePolicy>;
}

export class StoreLeaseManager implements LeaseManager {
  readonly #executor: StoreExecutor;
  /** By node and actor: what this manager was granted. */
  readonly #tokens = new Map<string, string>();

  constructor(store: LeaseStore, options: LeaseManagerOptions = {}) {
    const { leaseDurationMs, graceMs, env } = options;
    const own = given({ defaultTtlMs: leaseDurationMs, graceMs });
    const policy = { ...LEASE_MANAGER_POLICY, ...own, ...options.policy };
    this.#executor = new StoreExecutor({ store, policy, ...given({ env }) });
  }

  async acquire(nodeId: string, actorId: ActorId): Promise<ActorLease> {
    const key = keyOf(actorId);
    const { outcome, lease } = await this.#run({ op: "acquire", key, holder: nodeId });
    this.#tokens.set(claimOf(nodeId, key), outcome.token);
    return lease;
  }

  async renew(nodeId: string, actorId: ActorId): Promise<ActorLease> {
    const key = keyOf(actorId);
    const ttlMs = this.#executor.policy.defaultTtlMs;
    const token = this.#tokenOf(nodeId, key);
    return (await this.#run({ op: "renew", key, holder: nodeId, token, ttlMs })).lease;
  }

  async release(nodeId: string, actorId: ActorId): Promise<void> {
    const key = keyOf(actorId);
    await this.#run({ op: "release", key, holder: nodeId, token: this.#tokenOf(nodeId, key) });
    this.#tokens.delete(claimOf(nodeId, key));
  }

  async isValid(nodeId: string, actorId: ActorId): Promise<boolean> {
    const view = await this.#executor.read(keyOf(actorId));
    return view?.holder === nodeId && view.live;
  }

  async getLease(actorId: ActorId): Promise<ActorLease | null> {
    const view = await this.#executor.read(keyOf(actorId));
    return view === null || view.state !== "held" ? null : leaseOf(view);
  }

  async getLeasesForNode(nodeId: string, namespace = DEFAULT_TENANT): Promise<readonly ActorLease[]> {
    const found: ActorLease[] = [];
    const held = {
      tenant: namespace,
      prefix: "",
      holder: nodeId,
      state: "held",
      limit: MAX_LIST_LIMIT,
    } as const;
    for await (const { leases } of pagesOf((query) => this.#executor.list(query), held))
      found.push(...leases.filter(({ live }) => live).map(leaseOf));
    return found;
  }

  /** Closes the store, too. */
  async close(): Promise<void> {
    await this.#executor.close();
  }

  async #run(request: LeaseRequest) {
    const outcome = await this.#executor.execute(request);
    if (outcome.kind !== "applied") throw errorOf(request.op, outcome);
    const { lease } = outcome.decision;
    const phase = phaseAt(lease, outcome.storeTimeMs, this.#executor.policy.graceMs);
    return { outcome, lease: leaseOf({ ...lease, fence: recordFence(lease), phase }) };
  }

  /** No grant has the token of a manager that acquired nothing: the command is then decided as a stranger's. */
  #tokenOf(nodeId: string, key: LeaseKey): string {
    return this.#tokens.get(claimOf(nodeId, key)) ?? "none";
  }
}

/** Leases in this process's memory. */
export class MemoryLeaseManager extends StoreLeaseManager {
  constructor(options: LeaseManagerOptions = {}) {
    super(new MemoryStore(given({ env: options.env })), options);
  }
}

function keyOf(actorId: ActorId): LeaseKey {
  return typeof actorId === "string"
    ? { tenant: DEFAULT_TENANT, name: actorId }
    : { tenant: actorId.namespace, name: actorId.id };
}

function claimOf(nodeId: string, key: LeaseKey): string {
  return `${keyId(key)}\n${nodeId}`;
}

type LeaseSource = Pick<LeaseView, "key" | "holder" | "expiresAtMs" | "fence" | "renewals" | "phase">;

function leaseOf({ key, holder, expiresAtMs, fence, renewals, phase }: LeaseSource): ActorLease {
  return seedValue({
    holder,
    expiry: expiresAtMs,
    namespace: key.tenant,
    actorId: key.name,
    fencingToken: fence,
    renewals,
    phase,
  });
}

const KINDS: { readonly [reason in Reason]?: LeaseManagerErrorKind } = {
  LEASE_HELD_BY_SELF: "AlreadyHeld",
  LEASE_TOKEN_INVALID: "NotLeaseHolder",
  LEASE_EXPIRED: "LeaseExpired",
  LEASE_NOT_FOUND: "NotFound",
};

function errorOf(op: string, outcome: Exclude<CommandOutcome, { kind: "applied" }>): LeaseManagerError {
  if (outcome.kind === "unsettled")
    return new LeaseManagerError("Refused", outcome.cause.message, null, null);
  const { decision } = outcome;
  const { reason } = decision;
  if (decision.kind === "refused")
    return new LeaseManagerError("Refused", `${decision.field} ${decision.message}`, null, null);
  const isHeld = reason === "LEASE_HELD_BY_OTHER";
  const kind = isHeld
    ? op === "acquire"
      ? "LeaseHeldByOther"
      : "NotLeaseHolder"
    : (KINDS[reason] ?? "Refused");
  const { heldBy, heldUntilMs } = decision;
  const by =
    heldBy === null ? "" : `, held by ${heldBy}${heldUntilMs === null ? "" : ` until ${heldUntilMs}`}`;
  return new LeaseManagerError(kind, `${REASONS[reason].sentence}${by}`, heldBy, heldUntilMs);
}
