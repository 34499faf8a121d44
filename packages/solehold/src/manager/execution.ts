/**
 * One command on its way: read -> decide -> conditional write on exactly that snapshot -> outcome.
 * The steps are those of docs/protocol.md.
 *
 * A write whose fate is unknown is settled by reading again. The record carries the nonce of the attempt
 * that wrote it, so an own write is recognised. If the old version still stands, the lost request may yet
 * arrive; writing again on that same version makes the late one fail. Only when the version has moved is
 * "not applied" true.
 */
import {
  type ClockReading,
  commandProblem,
  type Decided,
  type decide,
  type GrantedDecision,
  keyId,
  type LeaseCommand,
  type LeasePolicy,
  type LeaseRecord,
  type LeaseSnapshot,
  type StoreInstant,
} from "../core/index.ts";
import { delay, type Env, jittered, randomId, readClocks } from "../env/index.ts";
import { type StoredRecord, StoreError, type WriteResult } from "../stores/index.ts";
import type { KnownState, SnapshotSource } from "./known-state.ts";
import { type CommandOutcome, refusedBeforehand } from "./outcome.ts";
import { withNonce } from "./requests.ts";
import type { Answered, StoreCalls } from "./store-calls.ts";

export interface ExecutionContext {
  readonly env: Env;
  readonly policy: LeasePolicy;
  readonly calls: StoreCalls;
  readonly known: KnownState;
  readonly decide: typeof decide;
}

interface Attempt {
  readonly nonce: string;
  readonly reading: ClockReading;
  readonly now: StoreInstant;
  readonly decision: GrantedDecision;
}

const MAX_ATTEMPTS = 64;
const PATIENT_CONFLICTS = 3;
const BACKOFF_MS = 2;
const MAX_BACKOFF_MS = 50;
const REREAD_EVERY_MS = 50;
const MIN_PATIENCE_MS = 5;

export class Execution {
  readonly #context: ExecutionContext;
  readonly #command: LeaseCommand;
  /** Of the command's key, for maps. */
  readonly #id: string;
  readonly #token: string;
  readonly #startedAt: ClockReading;
  readonly #deadlineMs: number;
  /** Attempts whose fate is unknown. */
  readonly #unknown: Attempt[] = [];
  #conflicts = 0;

  /** The command is given up, with its outcome as it then stands, after `timeoutMs`. */
  constructor(context: ExecutionContext, command: LeaseCommand, token: string, timeoutMs: number) {
    this.#context = context;
    this.#command = command;
    this.#id = keyId(command.key);
    this.#token = token;
    this.#startedAt = readClocks(context.env);
    this.#deadlineMs = this.#startedAt.monotonicMs + timeoutMs;
  }

  async run(): Promise<CommandOutcome> {
    try {
      // Belief counts from before the write: the reading of the start is as good as a newer one, and free.
      const guess = this.#context.known.guess(this.#command, this.#id, this.#startedAt);
      return await this.#settle(guess, this.#startedAt);
    } catch (error) {
      return this.#unsettled(error);
    }
  }

  async #settle(guess: SnapshotSource | null, startedAt: ClockReading): Promise<CommandOutcome> {
    const { known, env } = this.#context;
    let source = guess;
    let reading = startedAt;
    if (source === null) {
      // A request that is wrong in itself is not worth asking a store about, which may not even take its key.
      const problem = commandProblem(this.#command);
      if (problem !== null) return refusedBeforehand(problem);
      source = await this.#read();
      reading = readClocks(env);
    }
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const own = this.#ownWrite(source.stored);
      if (own !== null) return own;
      if (attempt > 0) reading = readClocks(env);
      if (!known.knowsTime(reading)) {
        // This machine slept: what it knew of the store's time is of no use any more.
        source = await this.#read();
        continue;
      }
      const now = known.instant(source.stored, reading);
      const broken = known.brokenPromise(this.#command, source);
      if (broken !== null) return { kind: "refused", decision: broken, storeTimeMs: now.stampMs };
      const command = this.#commandFor(attempt);
      const { decide, policy } = this.#context;
      const decided = decide(command, snapshotOf(source), now, policy);
      if (decided.effect.kind === "none" || decided.decision.kind !== "granted") {
        // A guess may lead to a write, which checks it; it must never lead to an answer by itself. What is
        // wrong with the request alone needs no store to say so.
        if (source.callNumber !== null || decided.bundle.problem !== null)
          return this.#answer(decided, now, reading);
        source = await this.#read();
        continue;
      }
      const next = decided.effect.kind === "write" ? decided.effect.record : null;
      const attempted: Attempt = { nonce: command.nonce, reading, now, decision: decided.decision };
      const settled = await this.#write(source, next, attempted);
      if (settled === "applied") return this.#applied(attempted);
      source = settled;
    }
    throw new StoreError("timeout", `gave up after ${MAX_ATTEMPTS} attempts against other writers`, {
      outcome: "not-applied",
    });
  }

  /**
   * Every attempt has a nonce of its own. An operator's command speaks of the grant that it found: once it may
   * have been done, trying again must not strike the grant that came after.
   */
  #commandFor(attempt: number): LeaseCommand {
    if (attempt === 0) return this.#command;
    const command = withNonce(this.#command, randomId(this.#context.env));
    const [first] = this.#unknown;
    if (first === undefined || (command.op !== "revoke" && command.op !== "break")) return command;
    return { ...command, generation: first.decision.lease.generation };
  }

  /** "applied", or what stands in the store now, to decide again. */
  async #write(
    source: SnapshotSource,
    next: LeaseRecord | null,
    attempt: Attempt,
  ): Promise<"applied" | SnapshotSource> {
    const { known, calls } = this.#context;
    const { key } = this.#command;
    const expected = source.stored.kind === "found" ? source.stored.version : null;
    let answer: Answered<WriteResult>;
    try {
      answer = await calls.write(this.#id, { key, expected, next }, this.#patienceMs());
    } catch (error) {
      return await this.#reread(attempt, asStoreError(error));
    }
    if (answer.value.kind === "unknown") return await this.#reread(attempt, asStoreError(answer.value.cause));
    const { value } = answer;
    if (value.kind === "applied") {
      known.wrote(this.#id, next, value.version, answer.receivedMs);
      return "applied";
    }
    // Somebody on the way repeated the request: the repeat met what the first had written.
    if (value.current.kind === "found" && value.current.record.nonce === attempt.nonce) {
      known.learn(this.#id, value.current, source.floor, answer);
      return "applied";
    }
    await this.#backOff();
    // An absence is only usable with a floor that was read after it.
    if (value.current.kind === "absent") return await this.#read();
    return known.learn(this.#id, value.current, source.floor, answer);
  }

  /** Nobody knows whether the attempt was done; what stands in the store now will tell. */
  async #reread(attempt: Attempt, cause: StoreError): Promise<SnapshotSource> {
    if (cause.outcome === "not-applied") throw cause;
    this.#unknown.push(attempt);
    return await this.#readUntilDeadline(cause);
  }

  /** A single call may take what is left of the command's time. */
  #patienceMs(): number {
    return Math.max(MIN_PATIENCE_MS, this.#deadlineMs - this.#context.env.monotonicMs());
  }

  async #read(): Promise<SnapshotSource> {
    return await this.#context.known.read(this.#command.key, this.#patienceMs());
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
    if (this.#conflicts <= PATIENT_CONFLICTS) return;
    const backoffMs = Math.min(MAX_BACKOFF_MS, BACKOFF_MS * 2 ** (this.#conflicts - PATIENT_CONFLICTS));
    await delay(env, jittered(env, backoffMs, 0.9));
  }

  /** An attempt of this command whose reply was lost, found in the store. */
  #ownWrite(stored: StoredRecord): CommandOutcome | null {
    if (this.#unknown.length === 0 || stored.kind !== "found") return null;
    const { record } = stored;
    const byNonce = this.#unknown.find((attempt) => attempt.nonce === record.nonce);
    if (byNonce !== undefined) return this.#applied(byNonce, record);
    // Broken by an operator since, but the token is of this command alone: the grant is ours, though it cannot
    // be prolonged any more. In all other cases deciding again prolongs it, and that write makes it certain:
    // a server may be about to give back what an earlier request with this token was granted.
    const [first] = this.#unknown;
    const ours =
      this.#command.op === "acquire" &&
      record.state === "held" &&
      record.breakAtMs !== null &&
      record.tokenHash === this.#command.tokenHash;
    return ours && first !== undefined ? this.#applied(first, record) : null;
  }

  #answer(decided: Decided, now: StoreInstant, reading: ClockReading): CommandOutcome {
    const { decision } = decided;
    if (decision.kind !== "granted") return { kind: "refused", decision, storeTimeMs: now.stampMs };
    // Nothing was written, so nothing was prolonged: what is left is counted by the latest possible time.
    return this.#applied({ nonce: "", reading, now: { ...now, stampMs: now.latestMs }, decision });
  }

  #applied(attempt: Attempt, found?: LeaseRecord): CommandOutcome {
    const { decision, reading, now } = attempt;
    const lease = found ?? decision.lease;
    return {
      kind: "applied",
      decision: { ...decision, lease },
      token: this.#token,
      believedFrom: reading,
      validForMs: Math.max(0, Math.min(lease.expiresAtMs, decision.lease.expiresAtMs) - now.stampMs),
      storeTimeMs: now.stampMs,
    };
  }

  #unsettled(error: unknown): CommandOutcome {
    const cause = asStoreError(error);
    // A later failure that certainly did nothing does not settle an earlier attempt that may have.
    const outcome = this.#unknown.length > 0 ? "unknown" : cause.outcome;
    return { kind: "unsettled", outcome, cause };
  }
}

function asStoreError(error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  return new StoreError("internal", `the store failed: ${String(error)}`, {
    outcome: "unknown",
    cause: error,
  });
}

function snapshotOf(source: SnapshotSource): LeaseSnapshot {
  return { record: source.stored.kind === "found" ? source.stored.record : null, floor: source.floor };
}
