/**
 * The writer lease over any store that can compare and swap: one attempt per call, no waiting, no retries
 * of lost races. It decides nothing itself: `decide` does, under the writer policy (terms, holder and
 * generation instead of tokens).
 *
 * Order of an acquire: Fenced, then Held, then the conditional write; a failed condition is read again:
 * a live other holder is Held, anything else LostRace. A write that was applied is read again, too: if another stands there,
 * the store broke its promise, and that is LostRace. A write whose answer was lost is settled by its nonce.
 *
 * A backend without compare-and-swap cannot be passed in: it does not satisfy LeaseStore, and the constructor refuses it.
 */
import {
  createPolicy,
  DEFAULT_DRIFT,
  type DriftBound,
  decide,
  exactly,
  keyNameProblem,
  type LeaseCommand,
  type LeaseKey,
  type LeasePolicy,
  type LeaseRecord,
  NO_TOKEN_HASH,
  REASONS,
  type StoreInstant,
  WRITER_POLICY,
} from "../core/index.ts";
import { type Env, randomId, realEnv } from "../env/index.ts";
import { ABSENT, type LeaseStore, type StoredRecord, StoreError, type WriteResult } from "../store/index.ts";
import {
  type BackendErrorKind,
  fencedError,
  heldError,
  lostRaceError,
  staleError,
  WriterLeaseError,
} from "./writer-errors.ts";
import { isFencedByTerm, type WriterLease, writerLeaseOf } from "./writer-lease.ts";

export interface WriterLeaseStoreOptions {
  readonly store: LeaseStore;
  readonly env?: Env;
  readonly tenant?: string;
  readonly drift?: DriftBound;
  /** "delete" lets generations restart at 1 after a release; "tombstone" keeps them growing. */
  readonly release?: LeasePolicy["release"];
  /** "set": a refresh or re-acquire ends at now + ttl, even if more was promised. "keep-longest" never ends earlier. */
  readonly shorten?: LeasePolicy["shorten"];
  /** The longest ttl that is accepted. Default: a year, the longest duration there is. */
  readonly maxTtlMs?: number;
}

interface Look {
  readonly stored: StoredRecord;
  readonly now: StoreInstant;
}

export class WriterLeaseStore {
  readonly #store: LeaseStore;
  readonly #env: Env;
  readonly #tenant: string;
  readonly #drift: DriftBound;
  readonly #policy: LeasePolicy;

  constructor(options: WriterLeaseStoreOptions) {
    const { store, env = realEnv, tenant = "default", drift = DEFAULT_DRIFT } = options;
    assertComparesAndSwaps(store);
    if (store.capabilities.clock === "none") {
      throw backendError("Config", `the ${store.name} store has no clock to judge a writer lease by`);
    }
    this.#store = store;
    this.#env = env;
    this.#tenant = tenant;
    this.#drift = drift;
    const wanted = options.release ?? WRITER_POLICY.release;
    // Deleting without a condition could delete a successor's lease.
    const release = store.capabilities.conditionalDelete ? wanted : "tombstone";
    const { shorten = WRITER_POLICY.shorten, maxTtlMs = WRITER_POLICY.maxTtlMs } = options;
    const defaultTtlMs = Math.min(WRITER_POLICY.defaultTtlMs, maxTtlMs);
    this.#policy = createPolicy({ ...WRITER_POLICY, release, shorten, maxTtlMs, defaultTtlMs });
  }

  /** What is published; null when there is none. */
  async current(databaseKey: string): Promise<WriterLease | null> {
    return this.#leaseIn((await this.#look(this.#key(databaseKey))).stored);
  }

  /** Under the base term, 1. */
  tryAcquire(databaseKey: string, holderId: string, ttlMs: number): Promise<WriterLease> {
    return this.tryAcquireForTerm(databaseKey, holderId, ttlMs, this.#policy.baseTerm);
  }

  async tryAcquireForTerm(
    databaseKey: string,
    holderId: string,
    ttlMs: number,
    term: bigint,
  ): Promise<WriterLease> {
    const key = this.#key(databaseKey);
    const command: LeaseCommand = {
      op: "acquire",
      key,
      holder: holderId,
      purpose: "StateWrite",
      ttlMs,
      term,
      tokenHash: NO_TOKEN_HASH,
      nonce: randomId(this.#env),
    };
    const { stored, now } = await this.#look(key);
    const { decision, effect } = this.#decide(command, stored, now);
    const observed = this.#leaseIn(stored);
    if (decision.kind !== "granted" || effect.kind !== "write") {
      if (decision.kind === "refused") throw backendError("Config", `${decision.field} ${decision.message}`);
      if (observed !== null && term < observed.term) throw fencedError(holderId, term, observed.term);
      const isHeld = observed !== null && decision.reason !== "FENCE_EXHAUSTED";
      if (isHeld) throw heldError(observed, now.latestMs);
      throw backendError("Config", `${databaseKey}: ${REASONS[decision.reason].sentence}`);
    }
    const written = await this.#write(key, stored, effect.record);
    const after = await this.#look(key);
    const winner = this.#leaseIn(after.stored);
    if (written !== null) {
      if (winner !== null && isSameWrite(after.stored, written)) return winner;
      throw lostRaceError(holderId, winner);
    }
    const held = winner !== null && winner.holderId !== holderId && winner.expiresAtMs > after.now.earliestMs;
    throw held ? heldError(winner, after.now.latestMs) : lostRaceError(holderId, winner);
  }

  /** Prolongs it; only the expiry changes. Returns the lease exactly as it is published, under the term of its grant. */
  async refresh(lease: WriterLease, ttlMs: number): Promise<WriterLease> {
    const command = { op: "renew", ...this.#owner(lease), ttlMs } as const;
    return writerLeaseOf(await this.#change(lease, command));
  }

  /** As `refresh`, but a holder behind the current term is fenced before the store is asked anything. */
  async refreshForTerm(lease: WriterLease, ttlMs: number, currentTerm: bigint): Promise<WriterLease> {
    if (isFencedByTerm(lease, currentTerm)) throw fencedError(lease.holderId, lease.term, currentTerm);
    return await this.refresh(lease, ttlMs);
  }

  async release(lease: WriterLease): Promise<void> {
    await this.#change(lease, { op: "release", ...this.#owner(lease) });
  }

  /** One conditional change of a lease that must still be this holder's, in this generation. */
  async #change(lease: WriterLease, command: LeaseCommand): Promise<LeaseRecord> {
    const { stored, now } = await this.#look(command.key);
    const { decision, effect } = this.#decide(command, stored, now);
    if (decision.kind === "refused") throw backendError("Config", `${decision.field} ${decision.message}`);
    if (decision.kind === "denied" || effect.kind === "none") throw staleError(lease, this.#leaseIn(stored));
    const written = await this.#write(command.key, stored, effect.kind === "write" ? effect.record : null);
    if (written !== null) return written;
    if (effect.kind === "delete") return decision.lease;
    throw staleError(lease, this.#leaseIn((await this.#look(command.key)).stored));
  }

  #owner(lease: WriterLease) {
    return {
      key: this.#key(lease.databaseKey),
      holder: lease.holderId,
      generation: lease.generation,
      tokenHash: NO_TOKEN_HASH,
      nonce: randomId(this.#env),
    };
  }

  #decide(command: LeaseCommand, stored: StoredRecord, now: StoreInstant) {
    const record = stored.kind === "found" ? stored.record : null;
    return decide(command, { record, floor: 0n }, now, this.#policy);
  }

  /** The record when it was written, null when the condition failed. A deletion that worked is null, too. */
  async #write(key: LeaseKey, stored: StoredRecord, next: LeaseRecord | null): Promise<LeaseRecord | null> {
    const expected = stored.kind === "found" ? stored.version : null;
    const result = await this.#apply(key, expected, next);
    if (result.kind === "applied") return next;
    if (result.kind === "conflict") {
      if (next === null) throw staleAfterDelete(stored, result.current);
      return null;
    }
    // Unknown: the write carries a nonce that nobody else has.
    const after = (await this.#look(key)).stored;
    const ours = next === null ? after.kind === "absent" : isSameWrite(after, next);
    if (ours) return next;
    const moved = (after.kind === "absent" ? null : after.version) !== expected;
    const isConflict = result.cause instanceof StoreError && result.cause.kind === "conflict";
    if ((moved || isConflict) && next !== null) return null;
    throw backendError(
      "Transport",
      "it is not known whether the write took effect: look at `current`",
      result.cause,
    );
  }

  async #apply(key: LeaseKey, expected: string | null, next: LeaseRecord | null): Promise<WriteResult> {
    try {
      const { results } = await this.#store.apply([{ key, expected, next }]);
      return results[0] ?? { kind: "unknown", cause: new Error("no answer") };
    } catch (error) {
      if (error instanceof StoreError && error.outcome === "unknown")
        return { kind: "unknown", cause: error };
      throw backendOf(error);
    }
  }

  async #look(key: LeaseKey): Promise<Look> {
    const sentMs = this.#env.monotonicMs();
    try {
      const { records, storeTimeMs } = await this.#store.read([key]);
      return { stored: records[0] ?? ABSENT, now: this.#instant(storeTimeMs, sentMs) };
    } catch (error) {
      throw backendOf(error);
    }
  }

  #instant(storeTimeMs: number | null, sentMs: number): StoreInstant {
    if (this.#store.now !== undefined) return exactly(this.#store.now());
    if (storeTimeMs === null) throw backendError("Internal", "the store's answer carries no time");
    const elapsedMs = (this.#env.monotonicMs() - sentMs) * (1 + this.#drift.driftRatio);
    const latestMs = Math.ceil(storeTimeMs + this.#store.capabilities.clockGranularityMs + elapsedMs);
    return { earliestMs: storeTimeMs, latestMs, stampMs: latestMs };
  }

  #leaseIn(stored: StoredRecord): WriterLease | null {
    if (stored.kind === "corrupt") {
      throw new WriterLeaseError(
        { kind: "InvalidFormat" },
        `the published lease cannot be read: ${stored.detail}`,
      );
    }
    return stored.kind === "found" ? writerLeaseOf(stored.record) : null;
  }

  #key(databaseKey: string): LeaseKey {
    const problem = keyNameProblem(databaseKey);
    if (problem !== null) throw backendError("Config", `the database key ${problem}`);
    return { tenant: this.#tenant, name: databaseKey };
  }
}

/** Every write has a nonce of its own. */
function isSameWrite(stored: StoredRecord, { nonce }: LeaseRecord): boolean {
  return stored.kind === "found" && stored.record.nonce === nonce;
}

/** Types do not reach callers in JavaScript. */
function assertComparesAndSwaps(store: LeaseStore | undefined): void {
  const { read, apply, capabilities } = (store ?? {}) as Partial<LeaseStore>;
  if (typeof apply === "function" && typeof read === "function" && typeof capabilities === "object") return;
  throw backendError(
    "Config",
    "the store cannot compare and swap (it has no `read`, `apply` and `capabilities`), so two writers could both win: pass a LeaseStore, as `openStore` or `openFileStore` give",
  );
}

function staleAfterDelete(before: StoredRecord, after: StoredRecord): WriterLeaseError {
  const mine = before.kind === "found" ? writerLeaseOf(before.record) : null;
  const observed = after.kind === "found" ? writerLeaseOf(after.record) : null;
  return mine === null ? backendError("PreconditionFailed", "the lease changed") : staleError(mine, observed);
}

function backendError(backend: BackendErrorKind, message: string, cause?: unknown): WriterLeaseError {
  return new WriterLeaseError({ kind: "Backend", backend }, message, cause);
}

const BACKEND_KINDS: { readonly [kind in StoreError["kind"]]: BackendErrorKind } = {
  unreachable: "Transport",
  timeout: "Transport",
  conflict: "PreconditionFailed",
  auth: "Auth",
  config: "Config",
  full: "Transport",
  closed: "Config",
  "data-loss": "Internal",
  internal: "Internal",
};

function backendOf(error: unknown): WriterLeaseError {
  if (error instanceof WriterLeaseError) return error;
  const kind = error instanceof StoreError ? BACKEND_KINDS[error.kind] : "Internal";
  return backendError(kind, error instanceof Error ? error.message : String(error), error);
}
