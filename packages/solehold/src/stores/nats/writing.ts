/** Writing records: all writes of a call are in flight at once, each on condition of its own key's sequence. */
import { encodeRecord, isReservedName } from "../../core/index.ts";
import {
  ABSENT,
  type ApplyReply,
  type ConditionalWrite,
  StoreError,
  type WriteResult,
} from "../../store/index.ts";
import type { Answer, NatsCalls, Proof } from "./calls.ts";
import { EXPECTED_SEQUENCE, type Joined, type NatsDataSet } from "./data-set.ts";
import { asUnknown, storeErrorFrom } from "./errors.ts";
import { lastMessages, readJoined } from "./reading.ts";
import { expectedSequence, parseVersion, storedFrom, toFollow, type Version, versionOf } from "./records.ts";
import {
  type KeptMessage,
  NO_RESPONDERS,
  RefusedRequest,
  sequenceOf,
  WRONG_LAST_SEQUENCE,
} from "./replies.ts";

/** How often a deleted key may change hands while it is being created. */
const MAX_CREATE_ATTEMPTS = 5;
const NONE: readonly ConditionalWrite[] = [];
/** For a key that was created and deleted again each time it was looked at. */
const CONFLICT_WITH_NOTHING: WriteResult = Object.freeze({ kind: "conflict", current: ABSENT });

/** A write, where it goes, and the sequence that the key's last message must have. */
interface Attempt {
  readonly write: ConditionalWrite;
  readonly subject: string;
  readonly sequence: number;
}

export async function applyWrites(
  calls: NatsCalls,
  writes: readonly ConditionalWrite[],
): Promise<ApplyReply> {
  return new Batch(calls, calls.data.current ?? (await calls.data.join())).apply(writes);
}

class Batch {
  readonly #calls: NatsCalls;
  readonly #data: NatsDataSet;
  readonly #joined: Joined;
  readonly #done = new Map<ConditionalWrite, WriteResult>();

  constructor(calls: NatsCalls, joined: Joined) {
    this.#calls = calls;
    this.#data = calls.data;
    this.#joined = joined;
  }

  async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    const doubtful = this.#doubtful(writes);
    // Read before writing: once something was written, nothing may fail any more.
    const readAtMs = doubtful.length === 0 ? null : await this.#refuse(doubtful);
    const open = doubtful.length === 0 ? writes : writes.filter((write) => !this.#done.has(write));
    const attempts = open.map((write) => this.#attemptOf(write, expectedSequence(write.expected)));
    // Who is shown another's record is told the time of that look, if no later one was.
    const storeTimeMs =
      attempts.length === 0 && readAtMs !== null
        ? readAtMs
        : ((await this.#attemptAndSettle(attempts)) ?? readAtMs);
    const results = writes.map((write) => this.#done.get(write) ?? CONFLICT_WITH_NOTHING);
    return { storeTimeMs, results };
  }

  /** Where nothing was ever lost there are none. */
  #doubtful(writes: readonly ConditionalWrite[]): readonly ConditionalWrite[] {
    if (this.#data.lineage.raised === 0n && this.#data.suspectUpTo === 0) return NONE;
    return writes.filter((write) => this.#isTooLow(write) || this.#isSuspect(write));
  }

  /** Whether this is a new grant whose generation may have been handed out by data that is lost. */
  #isTooLow({ key, expected, next }: ConditionalWrite): boolean {
    const { raised } = this.#data.lineage;
    if (raised === 0n || next === null || next.generation > raised || isReservedName(key.name)) return false;
    if (expected === null) return true;
    const before = parseVersion(expected).generation;
    return before !== null && before !== next.generation;
  }

  #isSuspect({ expected }: ConditionalWrite): boolean {
    const { suspectUpTo } = this.#data;
    if (suspectUpTo === 0 || expected === null) return false;
    const { sequence } = parseVersion(expected);
    return sequence > 0 && sequence <= suspectUpTo;
  }

  /** Notes the results of those writes that must not be sent. */
  async #refuse(writes: readonly ConditionalWrite[]): Promise<number | null> {
    const keys = writes.map(({ key }) => key);
    const { records, storeTimeMs } = await readJoined(this.#calls, this.#joined, keys);
    for (const [index, write] of writes.entries()) {
      const current = records[index] ?? ABSENT;
      const expected = parseVersion(write.expected);
      const standing = parseVersion(current.kind === "absent" ? null : current.version);
      if (!isSameVersion(expected, standing)) {
        this.#done.set(write, { kind: "conflict", current });
      } else if (this.#isTooLow(write)) {
        const followed = toFollow(write.key, current, this.#data.lineage.raised);
        this.#done.set(write, { kind: "conflict", current: followed });
      }
    }
    return storeTimeMs;
  }

  /** The server's time if it was told; rejects unless what was written is proven. */
  async #attemptAndSettle(attempts: readonly Attempt[]): Promise<number | null> {
    const { lost, proof } = await this.#attempt(attempts);
    const failures = [...this.#done.values()].filter(({ kind }) => kind === "unknown");
    const [failure] = failures.length === attempts.length ? failures : [];
    if (failure?.kind === "unknown") throw failure.cause;
    const last = lost.length === 0 ? proof : await this.#settle(lost, proof);
    return (last ?? (await this.#proof())).storeTimeMs;
  }

  /** Notes all results but those of writes that another version stood in the way of. */
  async #attempt(
    attempts: readonly Attempt[],
  ): Promise<{ readonly lost: readonly Attempt[]; readonly proof: Proof | null }> {
    const last = attempts.at(-1);
    if (last === undefined) return { lost: [], proof: null };
    const { value, proof } = await this.#calls.write(
      this.#joined,
      {
        subject: last.subject,
        state: attempts.every(({ sequence }) => sequence > 0) ? "implied" : "needed",
        sequenceIn: (outcomes) => sequenceIn(outcomes.at(-1)),
      },
      () => Promise.allSettled(attempts.map((attempt) => this.#put(attempt))),
    );
    return {
      lost: attempts.filter((attempt, index) => !this.#note(attempt, value[index])),
      proof,
    };
  }

  /** False for a write that another version stood in the way of. */
  #note({ write }: Attempt, outcome: PromiseSettledResult<number> | undefined): boolean {
    if (outcome?.status === "fulfilled") {
      const version = write.next === null ? null : versionOf(outcome.value, write.next);
      this.#done.set(write, { kind: "applied", version });
      return true;
    }
    const reason: unknown = outcome?.reason;
    if (reason instanceof RefusedRequest && reason.code === WRONG_LAST_SEQUENCE) return false;
    this.#done.set(write, { kind: "unknown", cause: storeErrorFrom(reason, this.#data.address, "unknown") });
    return true;
  }

  /** The sequence of the written message. Sent at once. */
  #put({ write, subject, sequence }: Attempt): Promise<number> {
    const { wire } = this.#joined;
    const { next } = write;
    const expected = String(sequence);
    const sent =
      next === null
        ? wire.request(subject, "", { [EXPECTED_SEQUENCE]: expected, "KV-Operation": "DEL" })
        : wire.request(subject, encodeRecord(next), { [EXPECTED_SEQUENCE]: expected });
    return sent.then(sequenceOf);
  }

  /**
   * What stands in the way of writes that were refused. A key that was deleted is absent, but its marker has a
   * sequence: a write that wants an absent key is sent again with that. The last proof, with the time of the look.
   */
  async #settle(lost: readonly Attempt[], writtenProof: Proof | null): Promise<Proof | null> {
    let open = lost;
    let proof = writtenProof;
    try {
      for (let attempt = 0; attempt < MAX_CREATE_ATTEMPTS && open.length > 0; attempt += 1) {
        const keys = open.map(({ write }) => write.key);
        const reply = await lastMessages(this.#calls, this.#joined, keys);
        proof = reply;
        const again = this.#conflicts(open, reply);
        const sent = await this.#attempt(again);
        if (again.length > 0) proof = sent.proof === null ? null : { storeTimeMs: later(reply, sent.proof) };
        open = sent.lost;
      }
    } catch (error) {
      const cause =
        error instanceof StoreError ? error : storeErrorFrom(error, this.#data.address, "unknown");
      // Without a proof nothing that this call wrote counts.
      if (proof === null) throw asUnknown(cause);
      // Otherwise these fail alone, and their cause says whether they may be done.
      for (const { write } of open)
        if (!this.#done.has(write)) this.#done.set(write, { kind: "unknown", cause });
    }
    return proof;
  }

  /** Notes what stands in the way; those that want an absent key, and have one, are to be tried again. */
  #conflicts(
    open: readonly Attempt[],
    { value, storeTimeMs }: Answer<readonly (KeptMessage | null)[]>,
  ): readonly Attempt[] {
    const again: Attempt[] = [];
    for (const [index, { write }] of open.entries()) {
      const kept = value[index] ?? null;
      const isGone = kept === null || kept.isMarker;
      const current = storedFrom(write.key, kept, this.#data.lineage, storeTimeMs);
      if (isGone && parseVersion(write.expected).sequence === 0)
        again.push(this.#attemptOf(write, kept?.sequence ?? 0));
      else this.#done.set(write, { kind: "conflict", current });
    }
    return again;
  }

  /** For what was written without a witness. */
  async #proof(): Promise<Proof> {
    try {
      return await this.#calls.send(this.#joined, "unknown", () => Promise.resolve());
    } catch (error) {
      throw asUnknown(storeErrorFrom(error, this.#data.address, "unknown"));
    }
  }

  #attemptOf(write: ConditionalWrite, sequence: number): Attempt {
    return { write, sequence, subject: this.#data.layout.recordSubject(this.#joined.id, write.key) };
  }
}

/**
 * The generation counts, too: a lease that is over is shown with the raised one, and a renewal that arrives late
 * must not bring it back under the old.
 */
function isSameVersion(one: Version, other: Version): boolean {
  return one.sequence === other.sequence && one.nonce === other.nonce && one.generation === other.generation;
}

/** What stood in the way may be somebody else's: its time is told, whether or not a later write told one. */
function later(look: Answer<unknown>, write: Proof): number {
  return write.storeTimeMs ?? look.storeTimeMs;
}

function sequenceIn(outcome: PromiseSettledResult<number> | undefined): number | null {
  if (outcome?.status === "fulfilled") return outcome.value;
  const reason: unknown = outcome?.reason;
  if (reason instanceof RefusedRequest && reason.code === NO_RESPONDERS) throw reason;
  return null;
}
