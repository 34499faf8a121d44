/**
 * One command on its way: read -> decide -> conditional write on exactly that snapshot -> outcome.
 * The numbers of steps are those of docs/protocol.md.
 *
 * A write whose fate is unknown is settled by reading again. The record carries the nonce of the attempt
 * that wrote it, so an own write is recognised. If the old version still stands, the lost request may yet
 * arrive; writing again on that same version makes the late one fail. Only when the version has moved is
 * "not applied" true.
 *
 * Most commands guess right what is in the store, and their first write is applied: that way from the call
 * to its answer needs a single promise. Whatever else happens goes on in `#proceed`, step by step.
 */
import {
  type AcquireCommand,
  type ClockReading,
  commandProblem,
  type Decided,
  type decide,
  type GrantedDecision,
  type LeaseCommand,
  type LeasePolicy,
  type LeaseRecord,
  type StoreInstant,
} from "../core/index.ts";
import { delay, type Env, jittered, type RandomIds, readClocks } from "../env/index.ts";
import { asStoreError, type StoredRecord, StoreError, type WriteResult } from "../store/index.ts";
import type { KeyMemory, SnapshotSource } from "./cached-record.ts";
import type { AnsweredCall, StoreCalls, WriteJob } from "./call-batcher.ts";
import { type CommandOutcome, refusedBeforehand } from "./outcome.ts";
import type { KnownState, OwnWrite } from "./record-cache.ts";

export interface ExecutionContext {
  readonly env: Env;
  readonly ids: RandomIds;
  readonly policy: LeasePolicy;
  readonly calls: StoreCalls;
  readonly known: KnownState;
  readonly decide: typeof decide;
  /** Hears how an acquire ended before its caller does; it must not throw. */
  readonly acquireEnded: (command: AcquireCommand, token: string, outcome: CommandOutcome) => void;
}

/** A conditional write on its way, as the store is given it. */
interface Attempt extends WriteJob, OwnWrite {
  readonly source: SnapshotSource;
  readonly nonce: string;
  readonly reading: ClockReading;
  readonly now: StoreInstant;
  readonly decision: GrantedDecision;
  readonly execution: Execution;
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
  /** What is known of the key; null where there was nothing yet. */
  readonly #memory: KeyMemory | null;
  readonly #token: string;
  readonly #startedAt: ClockReading;
  readonly #deadlineMs: number;
  /** Attempts whose fate is unknown. */
  #unknown: Attempt[] | null = null;
  #steps = 0;
  #conflicts = 0;
  #resolve: (outcome: CommandOutcome) => void = () => undefined;

  /** The command is given up, with its outcome as it then stands, after `timeoutMs`. */
  constructor(
    context: ExecutionContext,
    command: LeaseCommand,
    id: string,
    memory: KeyMemory | null,
    token: string,
    timeoutMs: number,
  ) {
    this.#context = context;
    this.#command = command;
    this.#id = id;
    this.#memory = memory;
    this.#token = token;
    this.#startedAt = readClocks(context.env);
    this.#deadlineMs = this.#startedAt.monotonicMs + timeoutMs;
  }

  /** Never rejects. */
  run(): Promise<CommandOutcome> {
    return new Promise((resolve) => {
      this.#resolve = resolve;
      this.#start();
    });
  }

  #finish(outcome: CommandOutcome): void {
    const command = this.#command;
    if (command.op === "acquire") this.#context.acquireEnded(command, this.#token, outcome);
    this.#resolve(outcome);
  }

  #start(): void {
    try {
      // Steps 1 and 2. Belief counts from before the write: the reading of the start is as good as a newer one, and free.
      const guess = this.#context.known.guess(this.#command, this.#memory, this.#startedAt);
      if (guess !== null) {
        const next = this.#step(guess, this.#startedAt);
        if (next === "read") this.#proceed(() => this.#read());
        return;
      }
      // A request that is wrong in itself is not worth asking a store about, which may not even take its key.
      const problem = commandProblem(this.#command);
      if (problem !== null) this.#finish(refusedBeforehand(problem));
      else this.#proceed(() => this.#read());
    } catch (error) {
      this.#finish(this.#unsettled(error));
    }
  }

  /** Step 7: the store answered an attempt of this command. */
  answered(attempt: Attempt, result: WriteResult, call: AnsweredCall): void {
    const { known } = this.#context;
    try {
      if (result.kind === "applied") {
        known.wrote(attempt, result.version, call.receivedMs);
        this.#finish(this.#applied(attempt));
      } else if (result.kind === "unknown") this.failed(attempt, result.cause);
      else if (result.current.kind === "found" && result.current.record.nonce === attempt.nonce) {
        // Somebody on the way repeated the request: the repeat met what the first had written.
        known.learn(this.#id, result.current, attempt.source.floor, call);
        this.#finish(this.#applied(attempt));
      } else this.#proceed(() => this.#afterConflict(attempt, result.current, call));
    } catch (error) {
      // A store that breaks its contract: whatever it answered, others' answers came with it.
      this.failed(attempt, error);
    }
  }

  /** Step 8. Nobody knows whether the attempt was done; what stands in the store now will tell. */
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

  /** A release may hand over to the next: then the record is of another's token. */
  #provenBy(next: LeaseRecord | null): string | null {
    const command = this.#command;
    return "tokenHash" in command && command.tokenHash === next?.tokenHash ? this.#token : null;
  }

  /** Step 2 again: goes on, from what `look` finds, until the command is finished or its next write is on its way. */
  async #proceed(look: () => Promise<SnapshotSource>): Promise<void> {
    try {
      let source = await look();
      while (this.#step(source, readClocks(this.#context.env)) === "read") source = await this.#read();
    } catch (error) {
      this.#finish(this.#unsettled(error));
    }
  }

  /** Steps 3 to 6. Afterwards the command is finished, or a write is on its way, or the store has to be read. */
  #step(source: SnapshotSource, reading: ClockReading): "done" | "sent" | "read" {
    const { known, decide, policy, calls } = this.#context;
    const own = this.#ownWrite(source.stored);
    if (own !== null) return this.#done(own);
    if (this.#steps === MAX_ATTEMPTS) {
      throw new StoreError("timeout", `gave up after ${MAX_ATTEMPTS} attempts against other writers`, {
        outcome: "not-applied",
      });
    }
    this.#steps += 1;
    // Step 3. This machine slept: what it knew of the store's time is of no use any more.
    if (!known.knowsTime(reading)) return "read";
    const now = known.instant(source, reading);
    const violation = known.integrityViolation(this.#command, source, now, reading.monotonicMs);
    if (violation !== null)
      return this.#done({ kind: "refused", decision: violation, storeTimeMs: now.stampMs });
    // Step 4.
    const command = this.#commandForStep();
    const decided = decide(command, source, now, policy);
    const { decision, effect } = decided;
    if (effect.kind === "none" || decision.kind !== "granted") {
      // Step 5. A guess may lead to a write, which checks it; it must never lead to an answer by itself. What is
      // wrong with the request alone needs no store to say so.
      const isGuess = source.callNumber === null && decided.bundle.problem === null;
      return isGuess ? "read" : this.#done(this.#answer(decided, now, reading));
    }
    // Step 6.
    const { stored, callNumber } = source;
    // A guess about a key that was not found is made in the very turn in which it was looked for.
    const memory = this.#memory ?? (callNumber === null ? null : known.find(this.#id));
    const next = effect.kind === "write" ? effect.record : null;
    const attempt: Attempt = {
      key: command.key,
      expected: stored.kind === "found" ? stored.version : null,
      next,
      id: this.#id,
      memory: memory ?? known.begin(this.#id),
      provenBy: this.#provenBy(next),
      patienceMs: Math.max(MIN_PATIENCE_MS, this.#deadlineMs - reading.monotonicMs),
      nonce: command.nonce,
      reading,
      now,
      decision,
      source,
      execution: this,
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
    if (this.#steps === 1) return this.#command;
    const command: LeaseCommand = { ...this.#command, nonce: this.#context.ids.next() };
    const first = this.#unknown?.[0];
    if (first === undefined || (command.op !== "revoke" && command.op !== "break")) return command;
    return { ...command, generation: first.decision.lease.generation };
  }

  async #afterConflict(attempt: Attempt, current: StoredRecord, call: AnsweredCall): Promise<SnapshotSource> {
    await this.#backOff();
    // The revision that belongs to an absence comes with a read.
    if (current.kind === "absent" && attempt.source.floor > 0n) return await this.#read();
    return this.#context.known.learn(this.#id, current, attempt.source.floor, call);
  }

  /** A single call may take what is left of the command's time. */
  async #read(): Promise<SnapshotSource> {
    const { env, known } = this.#context;
    const patienceMs = Math.max(MIN_PATIENCE_MS, this.#deadlineMs - env.monotonicMs());
    return await known.read(this.#command.key, patienceMs);
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

  /** Step 8: an attempt of this command whose reply was lost, found in the store. */
  #ownWrite(stored: StoredRecord): CommandOutcome | null {
    if (this.#unknown === null || stored.kind !== "found") return null;
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

  #answer({ decision }: Decided, now: StoreInstant, reading: ClockReading): CommandOutcome {
    if (decision.kind !== "granted") return { kind: "refused", decision, storeTimeMs: now.stampMs };
    // Nothing was written, so nothing was prolonged: what is left is counted by the latest possible time.
    return this.#applied({ reading, now: { ...now, stampMs: now.latestMs }, decision });
  }

  #applied(attempt: Pick<Attempt, "decision" | "reading" | "now">, found?: LeaseRecord): CommandOutcome {
    const { decision, reading, now } = attempt;
    const lease = found ?? decision.lease;
    return {
      kind: "applied",
      decision: found === undefined ? decision : { ...decision, lease },
      token: this.#token,
      believedFrom: reading,
      validForMs: Math.max(0, Math.min(lease.expiresAtMs, decision.lease.expiresAtMs) - now.stampMs),
      storeTimeMs: now.stampMs,
    };
  }

  #unsettled(error: unknown): CommandOutcome {
    const cause = asStoreError(error, "the store failed", "unknown");
    // A later failure that certainly did nothing does not settle an earlier attempt that may have.
    const outcome = this.#unknown === null ? cause.outcome : "unknown";
    return { kind: "unsettled", outcome, cause };
  }
}

function attemptAnswered(this: Attempt, result: WriteResult, call: AnsweredCall): void {
  this.execution.answered(this, result, call);
}

function attemptFailed(this: Attempt, error: unknown): void {
  this.execution.failed(this, error);
}
