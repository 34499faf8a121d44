/**
 * One command on its way: read -> decide -> conditional write on exactly that snapshot -> outcome.
 * The numbers of steps are those of docs/protocol.md.
 *
 * A write whose outcome is unknown is settled by reading again. The record carries the nonce of the attempt
 * that wrote it, so a write of this command is recognised. If the old version still stands, the lost request may
 * yet arrive; writing again on that same version makes the late one fail. Only when the version has moved is
 * "not applied" true.
 *
 * Most commands find the store as the cache has it, and their first write is applied: that path from the call
 * to its answer needs a single promise. Everything else goes on in `#proceed`, step by step.
 */
import {
  type ClockReading,
  commandProblem,
  type Decided,
  type decide,
  type GrantedDecision,
  isDecidedByRequest,
  type LeaseCommand,
  type LeasePolicy,
  type LeaseRecord,
  type StoreInstant,
} from "../core/index.ts";
import { delay, type Env, jittered, type RandomIds, readClocks } from "../env/index.ts";
import { asStoreError, type StoredRecord, StoreError, type WriteResult } from "../store/index.ts";
import type { CachedRecord, SnapshotSource } from "./cached-record.ts";
import type { AnsweredCall, CallBatcher, WriteJob } from "./call-batcher.ts";
import { type AppliedOutcome, type CommandOutcome, invalidRequest } from "./outcome.ts";
import type { OwnWrite, RecordCache } from "./record-cache.ts";

export interface CommandRunContext {
  readonly env: Env;
  readonly ids: RandomIds;
  readonly policy: LeasePolicy;
  readonly calls: CallBatcher;
  readonly cache: RecordCache;
  readonly decide: typeof decide;
}

/** One command, and what the executor already looked up for it. */
export interface CommandRunOptions {
  readonly command: LeaseCommand;
  /** The cache key of the command's key. */
  readonly id: string;
  /** What the cache had under it; null where there was nothing. */
  readonly cached: CachedRecord | null;
  readonly token: string;
  /** The token of the waiter that a release serves with its write; empty without one. */
  readonly nextToken: string;
  /** The command is given up, with its outcome as it then stands, after this. */
  readonly timeoutMs: number;
}

/** A conditional write on its way, as the store is given it. */
interface Attempt extends WriteJob, OwnWrite {
  readonly source: SnapshotSource;
  readonly nonce: string;
  readonly reading: ClockReading;
  readonly now: StoreInstant;
  readonly decision: GrantedDecision;
  readonly run: CommandRun;
}

const MAX_ATTEMPTS = 64;
const FREE_CONFLICTS = 3;
const BACKOFF_MS = 2;
const MAX_BACKOFF_MS = 50;
const REREAD_EVERY_MS = 50;
const MIN_TIMEOUT_MS = 5;

export class CommandRun {
  readonly #context: CommandRunContext;
  readonly #options: CommandRunOptions;
  readonly #startedAt: ClockReading;
  readonly #deadlineMs: number;
  /** Attempts whose outcome is unknown. */
  #unknown: Attempt[] | null = null;
  #steps = 0;
  #conflicts = 0;
  #finish: (outcome: CommandOutcome) => void = () => undefined;

  constructor(context: CommandRunContext, options: CommandRunOptions) {
    this.#context = context;
    this.#options = options;
    this.#startedAt = readClocks(context.env);
    this.#deadlineMs = this.#startedAt.monotonicMs + options.timeoutMs;
  }

  /** Never rejects. */
  run(): Promise<CommandOutcome> {
    return new Promise((resolve) => {
      this.#finish = resolve;
      this.#start();
    });
  }

  #start(): void {
    try {
      const { command, cached } = this.#options;
      // Steps 1 and 2. Belief counts from before the write: the reading of the start is as good as a newer one, and free.
      const snapshot = this.#context.cache.optimisticSnapshot(command, cached, this.#startedAt);
      if (snapshot !== null) {
        const next = this.#step(snapshot, this.#startedAt);
        if (next === "read") this.#proceed(() => this.#read());
        return;
      }
      // A request that is wrong in itself is not worth asking a store about, which may not even take its key.
      const problem = commandProblem(command);
      if (problem !== null) this.#finish(invalidRequest(problem));
      else this.#proceed(() => this.#read());
    } catch (error) {
      this.#finish(this.#unsettled(error));
    }
  }

  /** Step 7: the store answered an attempt of this command. */
  answered(attempt: Attempt, result: WriteResult, call: AnsweredCall): void {
    const { cache } = this.#context;
    try {
      if (result.kind === "applied") {
        cache.onWritten(attempt, result.version, call.receivedMs);
        this.#finish(this.#applied(attempt));
      } else if (result.kind === "unknown") this.failed(attempt, result.cause);
      else if (result.current.kind === "found" && result.current.record.nonce === attempt.nonce) {
        // The request was repeated on its way: the repeat met what the first had written.
        cache.onRead(this.#options.id, result.current, attempt.source.floor, call);
        this.#finish(this.#applied(attempt));
      } else this.#proceed(() => this.#afterConflict(attempt, result.current, call));
    } catch (error) {
      // A store that breaks its contract: whatever it answered, others' answers came with it.
      this.failed(attempt, error);
    }
  }

  /** Step 8. It is not known whether the attempt was applied; what stands in the store now will show it. */
  failed(attempt: Attempt, error: unknown): void {
    const cause = asStoreError(error, "the store failed", "unknown");
    if (cause.outcome === "not-applied") {
      this.#finish(this.#unsettled(cause));
      return;
    }
    this.#unknown ??= [];
    this.#unknown.push(attempt);
    this.#proceed(() => this.#readUntilDeadline(cause));
  }

  /** The token whose hash the record has. A release that serves the next waiter writes a record of another's token. */
  #provenBy(next: LeaseRecord | null): string | null {
    const { command, token } = this.#options;
    return "tokenHash" in command && command.tokenHash === next?.tokenHash ? token : null;
  }

  /** Step 2 again: goes on from a snapshot, until the command is finished or its next write is on its way. */
  async #proceed(read: () => Promise<SnapshotSource>): Promise<void> {
    try {
      let source = await read();
      while (this.#step(source, readClocks(this.#context.env)) === "read") source = await this.#read();
    } catch (error) {
      this.#finish(this.#unsettled(error));
    }
  }

  /** Steps 3 to 6. Afterwards the command is finished, or a write is on its way, or the store has to be read. */
  #step(source: SnapshotSource, reading: ClockReading): "done" | "sent" | "read" {
    const { cache, decide, policy, calls } = this.#context;
    const own = this.#ownWrite(source.stored);
    if (own !== null) return this.#done(own);
    if (this.#steps === MAX_ATTEMPTS) {
      throw new StoreError("timeout", `gave up after ${MAX_ATTEMPTS} attempts against other writers`, {
        outcome: "not-applied",
      });
    }
    this.#steps += 1;
    // Step 3. This machine slept: what it knew of the store's time is of no use any more.
    if (!cache.knowsTime(reading)) return "read";
    const now = cache.instant(source, reading);
    // Step 4.
    const command = this.#commandForStep();
    const violation = cache.violation(command, source, now, reading.monotonicMs);
    const snapshot = violation === null ? source : { ...source, violation };
    const decided = decide(command, snapshot, now, policy);
    const { decision, effect } = decided;
    if (effect.kind === "none" || decision.kind !== "granted") {
      // Step 5. An optimistic snapshot may lead to a write, which checks it; it must never lead to an answer by itself.
      const mustRead = source.callNumber === null && !isDecidedByRequest(decided.bundle);
      return mustRead ? "read" : this.#done(this.#answer(decided, now, reading));
    }
    // Step 6.
    const { stored, callNumber } = source;
    const { id } = this.#options;
    // An optimistic snapshot of a key that was not in the cache is used in the very turn of that lookup.
    const cached = this.#options.cached ?? (callNumber === null ? null : cache.find(id));
    const next = effect.kind === "write" ? effect.record : null;
    const attempt: Attempt = {
      key: command.key,
      expected: stored.kind === "found" ? stored.version : null,
      next,
      id,
      cached: cached ?? cache.begin(id),
      provenBy: this.#provenBy(next),
      timeoutMs: Math.max(MIN_TIMEOUT_MS, this.#deadlineMs - reading.monotonicMs),
      nonce: command.nonce,
      reading,
      now,
      decision,
      source,
      run: this,
      answered: attemptAnswered,
      failed: attemptFailed,
    };
    calls.submit(attempt);
    return "sent";
  }

  #done(outcome: CommandOutcome): "done" {
    this.#finish(outcome);
    return "done";
  }

  /**
   * Every attempt has a nonce of its own. An operator's command speaks of the grant that it found: once it may
   * have been done, trying again must not strike the grant that came after.
   */
  #commandForStep(): LeaseCommand {
    if (this.#steps === 1) return this.#options.command;
    const command: LeaseCommand = { ...this.#options.command, nonce: this.#context.ids.next() };
    const first = this.#unknown?.[0];
    if (first === undefined || (command.op !== "revoke" && command.op !== "break")) return command;
    return { ...command, generation: first.decision.lease.generation };
  }

  async #afterConflict(attempt: Attempt, current: StoredRecord, call: AnsweredCall): Promise<SnapshotSource> {
    await this.#backOff();
    // The revision that belongs to an absence comes with a read, and an optimistic attempt knew none at all.
    if (current.kind === "absent") return await this.#read();
    return this.#context.cache.onRead(this.#options.id, current, attempt.source.floor, call);
  }

  /** A single call may take what is left of the command's time. */
  async #read(): Promise<SnapshotSource> {
    const { env, cache } = this.#context;
    const timeoutMs = Math.max(MIN_TIMEOUT_MS, this.#deadlineMs - env.monotonicMs());
    return await cache.read(this.#options.command.key, timeoutMs);
  }

  async #readUntilDeadline(cause: unknown): Promise<SnapshotSource> {
    const { env } = this.#context;
    let last = cause;
    while (env.monotonicMs() < this.#deadlineMs) {
      try {
        return await this.#read();
      } catch (error) {
        last = error;
        await delay(env, jittered(env, REREAD_EVERY_MS, 0.5));
      }
    }
    throw last;
  }

  /** One conflict is normal; many mean a crowd, and a crowd needs spreading. */
  async #backOff(): Promise<void> {
    const { env } = this.#context;
    this.#conflicts += 1;
    if (env.monotonicMs() >= this.#deadlineMs) {
      throw new StoreError("timeout", "too many other writers on this key", { outcome: "not-applied" });
    }
    if (this.#conflicts <= FREE_CONFLICTS) return;
    const backoffMs = Math.min(MAX_BACKOFF_MS, BACKOFF_MS * 2 ** (this.#conflicts - FREE_CONFLICTS));
    await delay(env, jittered(env, backoffMs, 0.9));
  }

  /** Step 8: an attempt of this command whose reply was lost, found in the store. */
  #ownWrite(stored: StoredRecord): CommandOutcome | null {
    if (this.#unknown === null || stored.kind !== "found") return null;
    const { record } = stored;
    const byNonce = this.#unknown.find((attempt) => attempt.nonce === record.nonce);
    if (byNonce !== undefined) return this.#applied(byNonce, record);
    // Broken by an operator since, but the token is of this command alone: the grant is ours, though it cannot
    // be extended any more. In all other cases deciding again extends it, and that write makes it certain:
    // a server may be about to release what an earlier request with this token was granted.
    const [first] = this.#unknown;
    const { command } = this.#options;
    const ours =
      command.op === "acquire" &&
      record.state === "held" &&
      record.breakAtMs !== null &&
      record.tokenHash === command.tokenHash;
    return ours && first !== undefined ? this.#applied(first, record) : null;
  }

  #answer({ decision }: Decided, now: StoreInstant, reading: ClockReading): CommandOutcome {
    if (decision.kind !== "granted") return { kind: "refused", decision, storeTimeMs: now.stampMs };
    // Nothing was written, so nothing was prolonged: what is left is counted by the latest possible time.
    return this.#applied({ reading, now: { ...now, stampMs: now.latestMs }, decision });
  }

  #applied(attempt: Pick<Attempt, "decision" | "reading" | "now">, found?: LeaseRecord): AppliedOutcome {
    const { decision, reading, now } = attempt;
    const { next } = decision;
    const common = { kind: "applied", believedFrom: reading, storeTimeMs: now.stampMs } as const;
    const left = (lease: LeaseRecord): number => Math.max(0, lease.expiresAtMs - now.stampMs);
    const { nextToken } = this.#options;
    const token = decision.lease.state === "released" ? "" : this.#options.token;
    if (next !== undefined) {
      // What is found in the store by the nonce is the next waiter's grant.
      const granted = { ...common, decision: next, token: nextToken, validForMs: left(next.lease) };
      return { ...common, decision, token, validForMs: left(decision.lease), next: granted };
    }
    if (found === undefined) return { ...common, decision, token, validForMs: left(decision.lease) };
    const validForMs = Math.min(left(found), left(decision.lease));
    return { ...common, decision: { ...decision, lease: found }, token, validForMs };
  }

  #unsettled(error: unknown): CommandOutcome {
    const cause = asStoreError(error, "the store failed", "unknown");
    const unsettled = { kind: "unsettled", cause } as const;
    // A later failure that certainly did nothing does not settle an earlier attempt that may have.
    if (this.#unknown === null) return { ...unsettled, outcome: cause.outcome };
    const unknown = { ...unsettled, outcome: "unknown" } as const;
    const mayHaveServed = this.#unknown.some(({ decision }) => decision.next !== undefined);
    return mayHaveServed ? { ...unknown, next: unknown } : unknown;
  }
}

function attemptAnswered(this: Attempt, result: WriteResult, call: AnsweredCall): void {
  this.run.answered(this, result, call);
}

function attemptFailed(this: Attempt, error: unknown): void {
  this.run.failed(this, error);
}
