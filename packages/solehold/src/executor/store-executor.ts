/**
 * LeaseManager: leases over any store. It reads, asks `decide`, and writes on condition that what it read
 * still stands; it settles lost replies; it never decides anything itself.
 */
import {
  createPolicy,
  DEFAULT_DRIFT,
  type DriftBound,
  decide,
  type GrantedDecision,
  keyId,
  type LeaseCommand,
  type LeaseKey,
  type LeasePolicy,
  type LeaseRecord,
  type LeaseSnapshot,
  type StoreInstant,
} from "../core/index.ts";
import { type Env, RandomIds, readClocks, realEnv } from "../env/index.ts";
import {
  type LeaseStore,
  type ListQuery,
  MemoryStore,
  type QueueTicket,
  type StoredRecord,
  StoreError,
  type StoreWatch,
  type WatchListener,
  type WatchScope,
  withTimeouts,
} from "../store/index.ts";
import { BoundedMap } from "../support/bounded-map.ts";
import { mapId } from "./cache-key.ts";
import type { KeyMemory, SnapshotSource } from "./cached-record.ts";
import { StoreCalls } from "./call-batcher.ts";
import { Execution, type ExecutionContext } from "./command-run.ts";
import { CorruptRecordError } from "./corrupt-record-error.ts";
import { type CommandOutcome, refusedBeforehand } from "./outcome.ts";
import { KnownState } from "./record-cache.ts";
import { repairRecord } from "./repair.ts";
import {
  type AcquireRequest,
  acquireCommand,
  type BreakRequest,
  breakCommand,
  type CommandParts,
  type HandoffRequest,
  handoffCommand,
  type LeaseRequest,
  type ReleaseRequest,
  type RenewRequest,
  type RequestOf,
  type ResumeRequest,
  type RevokeRequest,
  releaseCommand,
  renewCommand,
  requestProblem,
  resumeCommand,
  revokeCommand,
  type UseRequest,
  useCommand,
} from "./request.ts";
import { StoreClock } from "./store-time.ts";
import { unsealToken } from "./tokens.ts";
import { type CollectionReport, collectTenant } from "./tombstone-gc.ts";
import { type LeaseView, viewOf } from "./view.ts";

export type Decide = typeof decide;

/** Whether a grant on this base would keep what fences promise. */
export type IsIntact = (command: LeaseCommand, found: LeaseSnapshot, now: StoreInstant) => boolean;

type AnyRequest = RequestOf<LeaseRequest>;

export interface LeaseListing {
  readonly leases: readonly LeaseView[];
  readonly corrupt: readonly { readonly key: LeaseKey; readonly detail: string }[];
  readonly next: string | null;
}

/** How long an acquire may wait in a line that the manager itself keeps. */
export interface WaitInLine {
  readonly waitMs: number;
  readonly signal?: AbortSignal;
}

/** Seed 001's interface, widened. Every method is safe to call from many places at once; commands never reject. */
export interface LeaseManager {
  readonly policy: LeasePolicy;
  readonly drift: DriftBound;
  /** "server": acquires wait in a line that a server keeps for all its clients, first come, first served. */
  readonly line: "none" | "server";
  acquire(request: RequestOf<AcquireRequest>, wait?: WaitInLine): Promise<CommandOutcome>;
  renew(request: RequestOf<RenewRequest>): Promise<CommandOutcome>;
  release(request: RequestOf<ReleaseRequest>): Promise<CommandOutcome>;
  use(request: RequestOf<UseRequest>): Promise<CommandOutcome>;
  resume(request: RequestOf<ResumeRequest>): Promise<CommandOutcome>;
  handOff(request: RequestOf<HandoffRequest>): Promise<CommandOutcome>;
  revoke(request: RequestOf<RevokeRequest>): Promise<CommandOutcome>;
  break(request: RequestOf<BreakRequest>): Promise<CommandOutcome>;
  /**
   * Null when nothing was ever granted under the key, or its record was collected. Rejects with StoreError, or
   * with CorruptRecordError.
   */
  get(key: LeaseKey): Promise<LeaseView | null>;
  /** Whether this holder's lease is alive now, by the store's clock. */
  isValid(key: LeaseKey, holder: string): Promise<boolean>;
  list(query: ListQuery): Promise<LeaseListing>;
  /** Null when the store cannot announce changes. */
  watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch | null>;
  /** Null when the store keeps no line. */
  joinQueue?(key: LeaseKey, listener: WatchListener): Promise<QueueTicket> | null;
  /** The store's news showed this. Like all news it is a hint: it may save a look before the next attempt. */
  heard?(key: LeaseKey, stored: StoredRecord): void;
  close(): Promise<void>;
}

export interface StoreLeaseManagerOptions {
  readonly store: LeaseStore;
  readonly env?: Env;
  readonly policy?: Partial<LeasePolicy>;
  readonly drift?: DriftBound;
  /** A store call without an answer counts as unknown after this. */
  readonly callTimeoutMs?: number;
  /** A command is given up after this; what it did may then be unknown. */
  readonly commandTimeoutMs?: number;
  /** How many keys' versions are remembered. */
  readonly cacheSize?: number;
  /** Ended records are kept at least this long; see collector.ts. */
  readonly retentionMs?: number;
  /** What decides. Core's `decide` outside of tests and simulations that plant mistakes to see them found. */
  readonly decide?: typeof decide;
}

const DEFAULT_RETENTION_MS = 24 * 3_600_000;

export class StoreLeaseManager implements LeaseManager {
  readonly line = "none";
  readonly policy: LeasePolicy;
  readonly drift: DriftBound;
  readonly store: LeaseStore;
  readonly #env: Env;
  readonly #context: ExecutionContext;
  readonly #clock: StoreClock;
  readonly #retentionMs: number;
  readonly #commandTimeoutMs: number;
  /** Tokens of acquires whose fate is unknown: the same call again finds the same grant. */
  readonly #unsettledTokens = new BoundedMap<string>(10_000);

  constructor(options: StoreLeaseManagerOptions) {
    const { env = realEnv, drift = DEFAULT_DRIFT, cacheSize = 100_000 } = options;
    const { callTimeoutMs = 5_000, commandTimeoutMs = 10_000, retentionMs = DEFAULT_RETENTION_MS } = options;
    const store = withTimeouts(options.store, env, callTimeoutMs);
    const policy = createPolicy(options.policy);
    // Without a clock there is nothing to take generations from but the store's revision and the last one.
    this.policy =
      store.capabilities.clock === "none" ? createPolicy({ ...policy, generations: "count" }) : policy;
    this.drift = drift;
    this.store = store;
    this.#env = env;
    this.#retentionMs = retentionMs;
    const { clockGranularityMs: granularityMs, clockSkewMs: skewMs } = store.capabilities;
    const clock = new StoreClock({ drift, granularityMs, skewMs, observeForMs: policy.maxTtlMs });
    this.#clock = clock;
    const onDataLoss = (): void => known.onDataLoss(env.monotonicMs());
    const calls = new StoreCalls({ store, env, clock, callTimeoutMs, onDataLoss });
    const known = new KnownState({
      env,
      store,
      calls,
      clock,
      policy: this.policy,
      drift,
      cacheSize,
      retentionMs,
    });
    const ids = new RandomIds(env);
    const acquireEnded: ExecutionContext["acquireEnded"] = (command, token, outcome) => {
      const mayBeGranted = outcome.kind === "unsettled" && outcome.outcome === "unknown";
      if (mayBeGranted) this.#unsettledTokens.set(claimOf(command), token);
      else this.#takeUnsettled(command);
    };
    this.#context = {
      env,
      ids,
      policy: this.policy,
      calls,
      known,
      decide: options.decide ?? decide,
      acquireEnded,
    };
    this.#commandTimeoutMs = commandTimeoutMs;
  }

  /** The store's time as far as it is known here, for people, counts and timers: never for a decision. */
  storeNowMs(): number {
    return this.#context.known.time(readClocks(this.#env)).latestMs;
  }

  /** How often the store's clock was seen to jump. */
  get clockJumps(): number {
    return this.#clock.jumps;
  }

  acquire(request: RequestOf<AcquireRequest>, _wait?: WaitInLine): Promise<CommandOutcome> {
    const given = request.token;
    const problem = requestProblem(request, given);
    if (problem !== null) return Promise.resolve(refusedBeforehand(problem));
    const token = given ?? this.#takeUnsettled(request) ?? this.#context.ids.next();
    const command = acquireCommand(request, this.#parts(token, null));
    const id = mapId(request.key);
    const ended = this.#run(command, id, this.#context.known.find(id), token, request);
    const { idempotencyKey } = request;
    return idempotencyKey === undefined
      ? ended
      : ended.then((outcome) => withReplayedToken(outcome, idempotencyKey));
  }

  renew(request: RequestOf<RenewRequest>): Promise<CommandOutcome> {
    return this.#command(renewCommand, request, request.token);
  }

  release(request: RequestOf<ReleaseRequest>): Promise<CommandOutcome> {
    return this.#command(releaseCommand, request, request.token);
  }

  /**
   * Releases a grant of which nobody heard, if the record is still as the acquire wrote it. Whoever repeated
   * that acquire with its token has written it anew, and keeps it.
   */
  giveBack(request: RequestOf<ReleaseRequest>, granted: LeaseRecord): Promise<CommandOutcome> {
    return this.releaseBy(request, (inner) => onlyRecord(granted, inner));
  }

  /** Releases by a rule of its own, which is made of `decide` and of what tells a store that lost writes. */
  releaseBy(
    request: RequestOf<ReleaseRequest>,
    rule: (decide: Decide, isIntact: IsIntact) => Decide,
  ): Promise<CommandOutcome> {
    const { token } = request;
    const { known, decide } = this.#context;
    // Commands are decided on what was found, with all that is known of it.
    const isIntact: IsIntact = (command, found, now) =>
      known.integrityViolation(command, found as SnapshotSource, now, this.#env.monotonicMs()) === null;
    const context: ExecutionContext = { ...this.#context, decide: rule(decide, isIntact) };
    const id = mapId(request.key);
    const memory = known.find(id);
    const command = releaseCommand(request, this.#parts(token, memory?.hashOf(token) ?? null));
    return this.#run(command, id, memory, token, request, context);
  }

  use(request: RequestOf<UseRequest>): Promise<CommandOutcome> {
    return this.#command(useCommand, request, request.token);
  }

  resume(request: RequestOf<ResumeRequest>): Promise<CommandOutcome> {
    return this.#command(resumeCommand, request, request.token);
  }

  handOff(request: RequestOf<HandoffRequest>): Promise<CommandOutcome> {
    return this.#command(handoffCommand, request, request.token);
  }

  revoke(request: RequestOf<RevokeRequest>): Promise<CommandOutcome> {
    return this.#command(revokeCommand, request);
  }

  break(request: RequestOf<BreakRequest>): Promise<CommandOutcome> {
    return this.#command(breakCommand, request);
  }

  async get(key: LeaseKey): Promise<LeaseView | null> {
    const { stored } = await this.#context.known.read(key);
    if (stored.kind === "corrupt") throw new CorruptRecordError(key, stored.version, stored.detail);
    return stored.kind === "absent" ? null : viewOf(stored.record, this.#nowMs(stored.record), this.policy);
  }

  async isValid(key: LeaseKey, holder: string): Promise<boolean> {
    const lease = await this.get(key);
    return lease?.live === true && lease.holder === holder;
  }

  async list(query: ListQuery): Promise<LeaseListing> {
    const { name, list } = this.store;
    if (list === undefined) {
      const message = `the ${name} store cannot list its keys: ask for one by its name`;
      throw new StoreError("config", message, { outcome: "not-applied" });
    }
    const page = await list(query);
    const nowMs = page.storeTimeMs ?? Math.floor(this.#env.wallMs());
    return {
      leases: page.records.map((record) => viewOf(record, nowMs, this.policy)),
      corrupt: page.corrupt.map(({ key, detail }) => ({ key, detail })),
      next: page.next,
    };
  }

  async watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch | null> {
    return this.store.watch === undefined ? null : await this.store.watch(scope, listener);
  }

  joinQueue(key: LeaseKey, listener: WatchListener): Promise<QueueTicket> | null {
    return this.store.joinQueue?.(key, listener) ?? null;
  }

  heard(key: LeaseKey, stored: StoredRecord): void {
    this.#context.known.heard(mapId(key), stored, this.#env.monotonicMs());
  }

  /** One pass of collection over a tenant's ended records. */
  async collect(tenant: string): Promise<CollectionReport> {
    const { env, calls, known } = this.#context;
    const { store, policy } = this;
    return await collectTenant(tenant, { env, store, calls, known, policy, retentionMs: this.#retentionMs });
  }

  /**
   * An operator's answer to a damaged record: replaces it by a tombstone, so that the key can be acquired
   * again above `generation`, which must be at least the highest that was ever granted under it.
   * False when the record is not damaged (any more).
   */
  async repair(key: LeaseKey, generation: bigint): Promise<boolean> {
    return await repairRecord(key, generation, this.#context);
  }

  async close(): Promise<void> {
    await this.store.close();
    this.#context.calls.close();
  }

  /** `token` proves ownership; an operator's command has none. */
  #command<Request extends AnyRequest>(
    commandOf: (request: Request, parts: CommandParts) => LeaseCommand,
    request: Request,
    token?: string,
  ): Promise<CommandOutcome> {
    const problem = requestProblem(request, token);
    if (problem !== null) return Promise.resolve(refusedBeforehand(problem));
    const id = mapId(request.key);
    const memory = this.#context.known.find(id);
    const tokenHash = token === undefined ? null : (memory?.hashOf(token) ?? null);
    const proof = token ?? "";
    const command = commandOf(request, this.#parts(proof, tokenHash));
    return this.#run(command, id, memory, proof, request);
  }

  #run(
    command: LeaseCommand,
    id: string,
    memory: KeyMemory | null,
    token: string,
    { timeoutMs = this.#commandTimeoutMs }: AnyRequest,
    context: ExecutionContext = this.#context,
  ): Promise<CommandOutcome> {
    return new Execution(context, command, id, memory, token, timeoutMs).run();
  }

  #parts(token: string, tokenHash: string | null): CommandParts {
    return { token, tokenHash, nonce: this.#context.ids.next(), policy: this.policy };
  }

  /** Taken out while it is tried: two calls at once must not both find, and both believe, the same grant. */
  #takeUnsettled(wanted: Claim): string | undefined {
    if (this.#unsettledTokens.size === 0) return undefined;
    const claim = claimOf(wanted);
    const token = this.#unsettledTokens.get(claim);
    this.#unsettledTokens.delete(claim);
    return token;
  }

  #nowMs(record: LeaseRecord): number {
    return this.#context.known.instant({ record, sinceMs: null }, readClocks(this.#env)).latestMs;
  }
}

/** Leases in this process's memory. */
export class MemoryLeaseManager extends StoreLeaseManager {
  constructor(options: Omit<StoreLeaseManagerOptions, "store"> = {}) {
    super({ ...options, store: new MemoryStore(options.env === undefined ? {} : { env: options.env }) });
  }
}

/** Decides as if there were no record but the one that this very attempt wrote. */
function onlyRecord({ nonce }: LeaseRecord, inner: Decide): Decide {
  return (command, snapshot, now, policy) => {
    const record = snapshot.record?.nonce === nonce ? snapshot.record : null;
    return inner(command, { ...snapshot, record }, now, policy);
  };
}

type Claim = Pick<AcquireRequest, "key" | "holder">;

/** Who asks for what: an acquire by the same holder for the same key may be a repeat. */
function claimOf({ key, holder }: Claim): string {
  return `${keyId(key)}\n${holder}`;
}

/** A replayed grant carries the token of the first answer, not the one drawn for the repeat. */
function withReplayedToken(outcome: CommandOutcome, idempotencyKey: string): CommandOutcome {
  if (outcome.kind !== "applied" || !outcome.decision.replayed) return outcome;
  const token = tokenOfReplay(outcome.decision, idempotencyKey);
  return token === null ? outcome : { ...outcome, token };
}

function tokenOfReplay({ lease }: GrantedDecision, idempotencyKey: string): string | null {
  if (lease.idempotency === null) return null;
  return unsealToken(lease.idempotency.sealedToken, idempotencyKey, lease.tokenHash);
}
