/**
 * StoreExecutor: leases over any store. It reads, asks `decide`, and writes on condition that what it read still stands;
 * it settles lost replies; it never decides anything itself.
 */
import {
  type AcquireCommand,
  checkedDrift,
  commandProblem,
  createPolicy,
  DEFAULT_DRIFT,
  type DriftBound,
  decide,
  findMark,
  keyId,
  type LeaseKey,
  type LeasePolicy,
  type LeaseRecord,
} from "../core/index.ts";
import { type Env, RandomIds, readClocks, realEnv } from "../env/index.ts";
import {
  asStoreError,
  type LeaseStore,
  type ListQuery,
  MemoryStore,
  type StoredRecord,
  StoreError,
  type StoreWatch,
  type WatchListener,
  type WatchScope,
  withTimeouts,
} from "../store/index.ts";
import { BoundedMap } from "../support/bounded-map.ts";
import { CallBatcher } from "./call-batcher.ts";
import { CommandRun } from "./command-run.ts";
import { CorruptRecordError } from "./corrupt-record-error.ts";
import type { CallContext, Feature, LeaseExecutor, LeaseListing } from "./executor.ts";
import { type Explanation, explainRequest } from "./explain.ts";
import { type CommandOutcome, invalidRequest } from "./outcome.ts";
import type { ExecutorParts } from "./parts.ts";
import { RecordCache } from "./record-cache.ts";
import { repairRecord } from "./repair.ts";
import {
  type AcquireRequest,
  clockProblem,
  commandOf,
  type LeaseRequest,
  requestProblem,
} from "./request.ts";
import { chooseSlot } from "./slot-choice.ts";
import { StoreClock } from "./store-time.ts";
import { hashIdempotencyKey, unsealToken } from "./tokens.ts";
import { type CollectionReport, collectTenant } from "./tombstone-gc.ts";
import { type LeaseView, viewOf } from "./view.ts";
import { WaitTickets } from "./wait-tickets.ts";

export interface StoreExecutorOptions {
  readonly store: LeaseStore;
  readonly env?: Env;
  readonly policy?: Partial<LeasePolicy>;
  readonly drift?: DriftBound;
  /** A store call without an answer counts as unknown after this. Default 5,000. */
  readonly callTimeoutMs?: number;
  /** A command is given up after this; what it did may then be unknown. Default 10,000. */
  readonly commandTimeoutMs?: number;
  /** How many keys' records are cached. Default 100,000. */
  readonly cacheSize?: number;
  /** Ended records are kept at least this long; see tombstone-gc.ts. Default one day. */
  readonly retentionMs?: number;
  /** What decides. Core's `decide` outside of tests and simulations that plant mistakes to see them found. */
  readonly decide?: typeof decide;
}

const DEFAULT_RETENTION_MS = 24 * 3_600_000;
const MAX_UNSETTLED_TOKENS = 10_000;
const MIN_TIMEOUT_MS = 5;
const NO_FEATURES: ReadonlySet<Feature> = new Set();
const NO_CONTEXT: CallContext = Object.freeze({});

export class StoreExecutor implements LeaseExecutor {
  readonly policy: LeasePolicy;
  readonly drift: DriftBound;
  readonly features = NO_FEATURES;
  readonly store: LeaseStore;
  readonly tickets?: WaitTickets;
  readonly #env: Env;
  readonly #parts: ExecutorParts;
  readonly #clock: StoreClock;
  readonly #commandTimeoutMs: number;
  /** Tokens drawn here for acquires whose outcome is unknown: the same call again finds the same grant. */
  readonly #unsettledTokens = new BoundedMap<string>(MAX_UNSETTLED_TOKENS);

  constructor(options: StoreExecutorOptions) {
    const { env = realEnv, drift = DEFAULT_DRIFT, cacheSize = 100_000 } = options;
    const { callTimeoutMs = 5_000, commandTimeoutMs = 10_000, retentionMs = DEFAULT_RETENTION_MS } = options;
    const store = withTimeouts(options.store, env, callTimeoutMs);
    const policy = createPolicy(options.policy);
    // Without a clock there is nothing to take generations from but the store's revision and the last one.
    this.policy =
      store.capabilities.clock === "none" ? createPolicy({ ...policy, generations: "count" }) : policy;
    this.drift = checkedDrift(drift);
    this.store = store;
    this.#env = env;
    this.#commandTimeoutMs = commandTimeoutMs;
    const { clockGranularityMs: granularityMs, clockSkewMs: skewMs } = store.capabilities;
    const clock = new StoreClock({ drift, granularityMs, skewMs, observeForMs: policy.maxTtlMs });
    this.#clock = clock;
    const onDataLoss = (): void => cache.onDataLoss(env.monotonicMs());
    const calls = new CallBatcher({ store, env, clock, callTimeoutMs, onDataLoss });
    const cache = new RecordCache({
      ...{ env, store, calls, clock, drift, cacheSize, retentionMs },
      policy: this.policy,
    });
    const ids = new RandomIds(env);
    this.#parts = {
      ...{ env, ids, store, calls, cache, retentionMs },
      ...{ policy: this.policy, decide: options.decide ?? decide },
    };
    if (WaitTickets.areSupportedBy(store)) this.tickets = new WaitTickets(this.#parts);
  }

  /** The store's time as far as it is known here, for people, counts and timers: never for a decision. */
  storeNowMs(): number {
    return this.#parts.cache.time(readClocks(this.#env)).latestMs;
  }

  /** How often the store's clock was seen to jump. */
  get clockJumps(): number {
    return this.#clock.jumps;
  }

  execute(request: LeaseRequest, context: CallContext = NO_CONTEXT): Promise<CommandOutcome> {
    const given = "token" in request ? request.token : undefined;
    const problem =
      requestProblem(request, given, context) ?? clockProblem(request, this.store.capabilities.clock);
    if (problem !== null) return Promise.resolve(invalidRequest(problem));
    return request.op === "acquire"
      ? this.#acquire(request, given, context)
      : this.#run(request, given ?? "", context);
  }

  /** What would be decided now, and why. Nothing is carried out. Rejects with a StoreError. */
  async explain(request: LeaseRequest, context: CallContext = NO_CONTEXT): Promise<Explanation> {
    return await explainRequest(request, context, this.#parts);
  }

  async read(key: LeaseKey): Promise<LeaseView | null> {
    const { stored } = await this.#parts.cache.read(key);
    if (stored.kind === "corrupt") throw new CorruptRecordError(key, stored.version, stored.detail);
    return stored.kind === "absent" ? null : viewOf(stored.record, this.#nowMs(stored.record), this.policy);
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

  /** A watch event showed this record. It may save a read before the next attempt, and is never trusted for an answer. */
  onHint(key: LeaseKey, stored: StoredRecord): void {
    this.#parts.cache.onHint(keyId(key), stored, this.#env.monotonicMs());
  }

  /** One pass of collection over a tenant's ended records. */
  async collect(tenant: string): Promise<CollectionReport> {
    return await collectTenant(tenant, this.#parts);
  }

  /**
   * An operator's answer to a damaged record: replaces it by a tombstone, so that the key can be acquired
   * again above `generation`, which must be at least the highest that was ever granted under it.
   * False when the record is not damaged (any more).
   */
  async repair(key: LeaseKey, generation: bigint): Promise<boolean> {
    return await repairRecord(key, generation, this.#parts);
  }

  async close(): Promise<void> {
    await this.store.close();
    this.#parts.calls.close();
  }

  async #acquire(
    request: AcquireRequest,
    given: string | undefined,
    context: CallContext,
  ): Promise<CommandOutcome> {
    const token = given ?? this.#takeUnsettled(request) ?? this.#parts.ids.next();
    const { slots = 1 } = request;
    const run =
      slots > 1 ? this.#acquireSlot(request, slots, token, context) : this.#run(request, token, context);
    const outcome = await run;
    // A caller that chose the token repeats it by itself. Anybody else who asks in its name must not get its grant.
    const isUnknown = outcome.kind === "unsettled" && outcome.outcome === "unknown";
    if (isUnknown && given === undefined) this.#unsettledTokens.set(claimOf(request), token);
    const { idempotencyKey } = request;
    return idempotencyKey === undefined ? outcome : withReplayedToken(outcome, idempotencyKey);
  }

  /** The free slot that was chosen may be taken by another before it is acquired: then the next one is tried. */
  async #acquireSlot(
    request: AcquireRequest,
    slots: number,
    token: string,
    context: CallContext,
  ): Promise<CommandOutcome> {
    const { ids, env } = this.#parts;
    const { timeoutMs = this.#commandTimeoutMs } = request;
    const deadlineMs = env.monotonicMs() + timeoutMs;
    const command = commandOf(request, { token, nonce: ids.next(), policy: this.policy, context });
    const problem = commandProblem(command);
    if (problem !== null) return invalidRequest(problem);
    // A try that was denied may have been applied, and superseded before that was known (docs/protocol.md, step 8). After
    // it, "certainly not done" would be more than anybody knows.
    let denied: CommandOutcome | null = null;
    for (let tries = 1; ; tries += 1) {
      const leftMs = Math.max(MIN_TIMEOUT_MS, deadlineMs - env.monotonicMs());
      const choice = await chooseSlot(this.#parts, command as AcquireCommand, slots, leftMs).catch(
        asStoreFailure,
      );
      if (choice instanceof StoreError)
        return denied ?? { kind: "unsettled", outcome: "not-applied", cause: choice };
      const outcome = await this.#run({ ...request, key: choice.key, timeoutMs: leftMs }, token, context);
      if (outcome.kind === "unsettled" && outcome.outcome === "not-applied") return denied ?? outcome;
      if (outcome.kind !== "refused" || outcome.decision.kind !== "denied" || !choice.isFree) return outcome;
      denied = outcome;
      if (tries > slots || env.monotonicMs() >= deadlineMs) return denied;
    }
  }

  #run(request: LeaseRequest, token: string, context: CallContext): Promise<CommandOutcome> {
    const { ids, cache } = this.#parts;
    const id = keyId(request.key);
    const cached = cache.find(id);
    const tokenHash = request.op === "acquire" ? null : (cached?.hashOf(token) ?? null);
    const command = commandOf(request, { token, tokenHash, nonce: ids.next(), policy: this.policy, context });
    const { timeoutMs = this.#commandTimeoutMs } = request;
    const nextToken = request.op === "release" ? (request.next?.request.token ?? "") : "";
    return new CommandRun(this.#parts, { command, id, cached, token, nextToken, timeoutMs }).run();
  }

  /** Taken out while it is tried: two calls at once must not both find, and both believe, the same grant. */
  #takeUnsettled(request: AcquireRequest): string | undefined {
    if (this.#unsettledTokens.size === 0) return undefined;
    const claim = claimOf(request);
    const token = this.#unsettledTokens.get(claim);
    this.#unsettledTokens.delete(claim);
    return token;
  }

  #nowMs(record: LeaseRecord): number {
    return this.#parts.cache.instant({ record, sinceMs: null }, readClocks(this.#env)).latestMs;
  }
}

function asStoreFailure(error: unknown): StoreError {
  return asStoreError(error, "the store failed", "not-applied");
}

/** Who asks for what: an acquire by the same holder for the same key may be a repeat. */
function claimOf({ key, holder }: AcquireRequest): string {
  return `${keyId(key)}\n${holder}`;
}

/** A replayed grant carries the token of the first answer, not the one drawn for the repeat. */
function withReplayedToken(outcome: CommandOutcome, idempotencyKey: string): CommandOutcome {
  if (outcome.kind !== "applied" || !outcome.decision.replayed) return outcome;
  const { lease } = outcome.decision;
  const mark = findMark(lease, hashIdempotencyKey(lease.key.tenant, idempotencyKey));
  const token = mark === null ? null : unsealToken(mark.sealedToken, idempotencyKey, lease.tokenHash);
  return token === null ? outcome : { ...outcome, token };
}

/** Leases in this process's memory. */
export class MemoryExecutor extends StoreExecutor {
  constructor(options: Omit<StoreExecutorOptions, "store"> = {}) {
    super({ ...options, store: new MemoryStore(options.env === undefined ? {} : { env: options.env }) });
  }
}
