/** Writing records: all writes of a call are in flight at once, each on condition of its own key's sequence. */
import { encodeRecord, isReservedName } from "../../core/index.ts";
import { ABSENT, type ApplyReply, type ConditionalWrite, StoreError, type WriteResult } from "../contract.ts";
import type { Answer, NatsCalls } from "./calls.ts";
import { EXPECTED_SEQUENCE, type Joined, type NatsDataSet } from "./data-set.ts";
import { asUnknown, storeErrorFrom } from "./errors.ts";
import { lastMessages, readJoined } from "./reading.ts";
import { parseVersion, storedFrom, toFollow, type Version, versionOf } from "./records.ts";
import {
  type KeptMessage,
  NO_RESPONDERS,
  RefusedRequest,
  sequenceOf,
  WRONG_LAST_SEQUENCE,
} from "./replies.ts";

/** How often a deleted key may change hands while it is being created. */
const MAX_CREATE_ATTEMPTS = 5;
/** For a key that was created and deleted again each time it was looked at. */
const CONFLICT_WITH_NOTHING: WriteResult = Object.freeze({ kind: "conflict", current: ABSENT });

/** A write, and the sequence that the key's last message must have. */
interface Attempt {
  readonly write: ConditionalWrite;
  readonly sequence: number;
}

export async function applyWrites(
  calls: NatsCalls,
  writes: readonly ConditionalWrite[],
): Promise<ApplyReply> {
  return new Batch(calls, await calls.data.join()).apply(writes);
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
    const doubtful = writes.filter((write) => this.#isTooLow(write) || this.#isSuspect(write));
    // Read before writing: once something was written, nothing may fail any more.
    const readAtMs = doubtful.length === 0 ? null : await this.#refuse(doubtful);
    const attempts = writes
      .filter((write) => !this.#done.has(write))
      .map((write) => ({ write, sequence: parseVersion(write.expected).sequence }));
    const storeTimeMs =
      attempts.length === 0 && readAtMs !== null ? readAtMs : await this.#attemptAndSettle(attempts);
    const results = writes.map((write) => this.#done.get(write) ?? CONFLICT_WITH_NOTHING);
    return { storeTimeMs, results };
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

  /** The server's time; rejects unless what was written is proven. */
  async #attemptAndSettle(attempts: readonly Attempt[]): Promise<number> {
    const { lost, writtenAtMs } = await this.#attempt(attempts);
    const failures = [...this.#done.values()].filter(({ kind }) => kind === "unknown");
    const [failure] = failures.length === attempts.length ? failures : [];
    if (failure?.kind === "unknown") throw failure.cause;
    const provenAtMs = lost.length === 0 ? writtenAtMs : await this.#settle(lost, writtenAtMs);
    return provenAtMs ?? (await this.#proof());
  }

  /** Notes all results but those of writes that another version stood in the way of. */
  async #attempt(
    attempts: readonly Attempt[],
  ): Promise<{ readonly lost: readonly Attempt[]; readonly writtenAtMs: number | null }> {
    const last = attempts.at(-1);
    if (last === undefined) return { lost: [], writtenAtMs: null };
    const { value, storeTimeMs } = await this.#calls.write(
      this.#joined,
      {
        subject: this.#subjectOf(last.write),
        state: attempts.every(({ sequence }) => sequence > 0) ? "implied" : "needed",
        sequenceIn: (outcomes) => sequenceIn(outcomes.at(-1)),
      },
      () => Promise.allSettled(attempts.map((attempt) => this.#put(attempt))),
    );
    return {
      lost: attempts.filter((attempt, index) => !this.#note(attempt, value[index])),
      writtenAtMs: storeTimeMs,
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
  async #put({ write, sequence }: Attempt): Promise<number> {
    const { wire } = this.#joined;
    const condition = { [EXPECTED_SEQUENCE]: String(sequence) };
    const marker = { ...condition, "KV-Operation": "DEL" };
    const subject = this.#subjectOf(write);
    return sequenceOf(
      write.next === null
        ? await wire.request(subject, "", marker)
        : await wire.request(subject, encodeRecord(write.next), condition),
    );
  }

  /**
   * What stands in the way of writes that were refused. A key that was deleted is absent, but its marker has a
   * sequence: a write that wants an absent key is sent again with that. The time of the last proof.
   */
  async #settle(lost: readonly Attempt[], writtenAtMs: number | null): Promise<number | null> {
    let open = lost;
    let provenAtMs = writtenAtMs;
    try {
      for (let attempt = 0; attempt < MAX_CREATE_ATTEMPTS && open.length > 0; attempt += 1) {
        const keys = open.map(({ write }) => write.key);
        const reply = await lastMessages(this.#calls, this.#joined, keys);
        provenAtMs = reply.storeTimeMs;
        const again = this.#conflicts(open, reply);
        const sent = await this.#attempt(again);
        if (again.length > 0) provenAtMs = sent.writtenAtMs;
        open = sent.lost;
      }
    } catch (error) {
      const cause =
        error instanceof StoreError ? error : storeErrorFrom(error, this.#data.address, "unknown");
      // Without a proof nothing that this call wrote counts.
      if (provenAtMs === null) throw asUnknown(cause);
      // Otherwise these fail alone, and their cause says whether they may be done.
      for (const { write } of open)
        if (!this.#done.has(write)) this.#done.set(write, { kind: "unknown", cause });
    }
    return provenAtMs;
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
        again.push({ write, sequence: kept?.sequence ?? 0 });
      else this.#done.set(write, { kind: "conflict", current });
    }
    return again;
  }

  /** For what was written without a witness. */
  async #proof(): Promise<number> {
    try {
      return (await this.#calls.send(this.#joined, "unknown", () => Promise.resolve())).storeTimeMs;
    } catch (error) {
      throw asUnknown(storeErrorFrom(error, this.#data.address, "unknown"));
    }
  }

  #subjectOf({ key }: ConditionalWrite): string {
    return this.#data.layout.recordSubject(this.#joined.id, key);
  }
}

/**
 * The generation counts, too: a lease that is over is shown with the raised one, and a renewal that arrives late
 * must not bring it back under the old.
 */
function isSameVersion(one: Version, other: Version): boolean {
  return one.sequence === other.sequence && one.nonce === other.nonce && one.generation === other.generation;
}

function sequenceIn(outcome: PromiseSettledResult<number> | undefined): number | null {
  if (outcome?.status === "fulfilled") return outcome.value;
  const reason: unknown = outcome?.reason;
  if (reason instanceof RefusedRequest && reason.code === NO_RESPONDERS) throw reason;
  return null;
}
