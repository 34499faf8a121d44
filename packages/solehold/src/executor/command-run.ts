/**
 * One command on its way: read -> decide -> conditional write on exactly that snapshot -> outcome.
 * The numbers of steps are those of docs/protocol.md.
 *
 * A write whose outcome is unknown is settled by reading again. The record carries the nonce of the attempt
 * that wrote it, so a write of this command is recognised. If the old version still stands, the lost request may
 * yet arrive; writing again on that same version makes the late one fail. Only when the version has moved is
 * "not applied" true.
 */
import {
  type ClockReading,
  commandProblem,
  type Decided,
  type GrantedDecision,
  isDecidedByRequest,
  type LeaseCommand,
  type LeaseRecord,
  type StoreInstant,
} from "../core/index.ts";
import { delay, jittered, readClocks } from "../env/index.ts";
import { asStoreError, type StoredRecord, StoreError } from "../store/index.ts";
import type { CachedRecord, SnapshotSource } from "./cached-record.ts";
import type { Answered } from "./call-batcher.ts";
import { type AppliedOutcome, type CommandOutcome, invalidRequest } from "./outcome.ts";
import type { ExecutorParts } from "./parts.ts";

/** One command, and what the executor already looked up for it. */
export interface CommandRunOptions {
  readonly command: LeaseCommand;
  /** The id of the command's key. */
  readonly id: string;
  /** What the cache had under it; null where there was nothing. */
  readonly cached: CachedRecord | null;
  readonly token: string;
  /** The token of the waiter that a release serves with its write; empty without one. */
  readonly nextToken: string;
  /** The command is given up, with its outcome as it then stands, after this. */
  readonly timeoutMs: number;
}

/** A conditional write of this command. */
interface Attempt {
  readonly source: SnapshotSource;
  readonly nonce: string;
  /** Null for a deletion. */
  readonly next: LeaseRecord | null;
  readonly reading: ClockReading;
  readonly now: StoreInstant;
  readonly decision: GrantedDecision;
}

const MAX_ATTEMPTS = 64;
const FREE_CONFLICTS = 3;
const BACKOFF_MS = 2;
const MAX_BACKOFF_MS = 50;
const REREAD_EVERY_MS = 50;
const MIN_TIMEOUT_MS = 5;

export class CommandRun {
  readonly #parts: ExecutorParts;
  readonly #options: CommandRunOptions;
  readonly #startedAt: ClockReading;
  readonly #deadlineMs: number;
  /** Attempts whose outcome is unknown. */
  readonly #unknown: Attempt[] = [];
  #steps = 0;
  #conflicts = 0;

  constructor(parts: ExecutorParts, options: CommandRunOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#startedAt = readClocks(parts.env);
    this.#deadlineMs = this.#startedAt.monotonicMs + options.timeoutMs;
  }

  /** Never rejects. */
  async run(): Promise<CommandOutcome> {
    const { env, cache } = this.#parts;
    const { command, cached } = this.#options;
    try {
      // Steps 1 and 2. Belief counts from before the write: the reading of the start is as good as a newer one, and free.
      let reading = this.#startedAt;
      let source = cache.optimisticSnapshot(command, cached, reading);
      if (source === null) {
        // A request that is wrong in itself is not worth asking a store about, which may not even take its key.
        const problem = commandProblem(command);
        if (problem !== null) return invalidRequest(problem);
        source = await this.#read();
        reading = readClocks(env);
      }
      for (;;) {
        const step = this.#step(source, reading);
        if (step !== "read" && "kind" in step) return step;
        const next = step === "read" ? await this.#read() : await this.#write(step);
        if ("kind" in next) return next;
        source = next;
        reading = readClocks(env);
      }
    } catch (error) {
      return this.#unsettled(error);
    }
  }

  /** Steps 7 and 8. What stands in the store is the next snapshot, unless the command is finished. */
  async #write(attempt: Attempt): Promise<CommandOutcome | SnapshotSource> {
    const { cache, calls } = this.#parts;
    const { command, id } = this.#options;
    const { source, next } = attempt;
    const expected = source.stored.kind === "found" ? source.stored.version : null;
    let conflict: Answered<StoredRecord>;
    try {
      const answer = await calls.write({ key: command.key, expected, next }, this.#timeLeftMs());
      const { value: result } = answer;
      if (result.kind === "unknown") throw result.cause;
      if (result.kind === "applied") {
        cache.onWritten({ id, next, provenBy: this.#provenBy(next) }, result.version, answer.receivedMs);
        return this.#applied(attempt);
      }
      conflict = { ...answer, value: result.current };
      if (result.current.kind === "found" && result.current.record.nonce === attempt.nonce) {
        // The request was repeated on its way: the repeat met what the first had written.
        cache.onRead(id, result.current, source.floor, answer);
        return this.#applied(attempt);
      }
    } catch (error) {
      // It is not known whether the attempt was applied; what stands in the store now will show it. Also where a store
      // breaks its contract: whatever it answered, others' answers came with it.
      const cause = asStoreError(error, "the store failed", "unknown");
      if (cause.outcome === "not-applied") throw cause;
      this.#unknown.push(attempt);
      return await this.#readUntilDeadline(cause);
    }
    await this.#backOff();
    // The revision that belongs to an absence comes with a read, and an optimistic attempt knew none at all.
    if (conflict.value.kind === "absent") return await this.#read();
    return cache.onRead(id, conflict.value, source.floor, conflict);
  }

  /** The token whose hash the record has. A release that serves the next waiter writes a record of another's token. */
  #provenBy(next: LeaseRecord | null): string | null {
    const { command, token } = this.#options;
    return "tokenHash" in command && command.tokenHash === next?.tokenHash ? token : null;
  }

  /** Steps 3 to 6: the command is finished, or a write has to be tried, or the store to be read. */
  #step(source: SnapshotSource, reading: ClockReading): CommandOutcome | Attempt | "read" {
    const { cache, decide, policy } = this.#parts;
    const own = this.#ownWrite(source.stored);
    if (own !== null) return own;
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
    const snapshot = cache.snapshot(command, source, now, reading.monotonicMs);
    const decided = decide(command, snapshot, now, policy);
    const { decision, effect } = decided;
    if (effect.kind === "none" || decision.kind !== "granted") {
      // Step 5. An optimistic snapshot may lead to a write, which checks it; it must never lead to an answer by itself.
      const mustRead = source.callNumber === null && !isDecidedByRequest(decided.bundle);
      return mustRead ? "read" : this.#answer(decided, now, reading);
    }
    // Step 6.
    const next = effect.kind === "write" ? effect.record : null;
    return { source, nonce: command.nonce, next, reading, now, decision };
  }

  /**
   * Every attempt has a nonce of its own. An operator's command speaks of the grant that it found: once it may
   * have been done, trying again must not strike the grant that came after.
   */
  #commandForStep(): LeaseCommand {
    if (this.#steps === 1) return this.#options.command;
    const command: LeaseCommand = { ...this.#options.command, nonce: this.#parts.ids.next() };
    const [first] = this.#unknown;
    if (first === undefined || (command.op !== "revoke" && command.op !== "break")) return command;
    return { ...command, generation: first.decision.lease.generation };
  }

  async #read(): Promise<SnapshotSource> {
    return await this.#parts.cache.read(this.#options.command.key, this.#timeLeftMs());
  }

  /** A single call may take what is left of the command's time. */
  #timeLeftMs(): number {
    return Math.max(MIN_TIMEOUT_MS, this.#deadlineMs - this.#parts.env.monotonicMs());
  }

  async #readUntilDeadline(cause: unknown): Promise<SnapshotSource> {
    const { env } = this.#parts;
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

  /** One conflict is normal; after many the writers are spread out. */
  async #backOff(): Promise<void> {
    const { env } = this.#parts;
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
    if (this.#unknown.length === 0 || stored.kind !== "found") return null;
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
    const { decision } = attempt;
    const { token, nextToken } = this.#options;
    const own = appliedAs(decision, decision.lease.state === "released" ? "" : token, attempt);
    // What is found in the store by the nonce is the next waiter's grant.
    if (decision.next !== undefined) return { ...own, next: appliedAs(decision.next, nextToken, attempt) };
    if (found === undefined) return own;
    const asFound = appliedAs({ ...decision, lease: found }, own.token, attempt);
    return { ...asFound, validForMs: Math.min(asFound.validForMs, own.validForMs) };
  }

  #unsettled(error: unknown): CommandOutcome {
    const cause = asStoreError(error, "the store failed", "unknown");
    const unsettled = { kind: "unsettled", cause } as const;
    // A later failure that certainly did nothing does not settle an earlier attempt that may have.
    if (this.#unknown.length === 0) return { ...unsettled, outcome: cause.outcome };
    const unknown = { ...unsettled, outcome: "unknown" } as const;
    const mayHaveServed = this.#unknown.some(({ decision }) => decision.next !== undefined);
    return mayHaveServed ? { ...unknown, next: unknown } : unknown;
  }
}

function appliedAs(
  decision: GrantedDecision,
  token: string,
  { reading, now }: Pick<Attempt, "reading" | "now">,
): AppliedOutcome {
  const { stampMs } = now;
  const validForMs = Math.max(0, decision.lease.expiresAtMs - stampMs);
  return { kind: "applied", decision, token, believedFrom: reading, validForMs, storeTimeMs: stampMs };
}
