/**
 * Leases as objects: one object a key, written on condition of its ETag. The server's Date header is the
 * clock, to the second.
 *
 * A failed condition is a conflict, and the current record is read to show it. An answer that leaves it
 * open (a 5xx, a timeout) is settled here when that is certain: our nonce is there, so it was applied; or
 * the record that is there says that it replaced the very version we wanted to replace, so ours was not
 * and never will be. Anything else is handed up as unknown.
 */
import type { LeaseKey } from "../../core/index.ts";
import {
  ABSENT,
  type ApplyReply,
  type ConditionalWrite,
  type LeaseStore,
  type ListPage,
  type ListQuery,
  type ReadReply,
  type StoreCapabilities,
  type StoredRecord,
  StoreError,
  type WriteResult,
} from "../../store/index.ts";
import { Dates } from "./dates.ts";
import { type LeaseObjects, versionIn } from "./lease-objects.ts";
import { listObjects } from "./listing.ts";
import { inParallel } from "./parallel.ts";
import type { PutOutcome } from "./port.ts";
import { encodeWire } from "./wire.ts";

export interface ObjectStoreParts {
  /** "s3", "azblob", "https+etag". */
  readonly name: string;
  readonly objects: LeaseObjects;
  readonly conditionalDelete: boolean;
}

/** Requests in flight per call. */
const WIDTH = 16;

export class ObjectStore implements LeaseStore {
  readonly name: string;
  readonly capabilities: StoreCapabilities;
  readonly #objects: LeaseObjects;
  #closed = false;

  /** Use `openObjectStore`. */
  constructor({ name, objects, conditionalDelete }: ObjectStoreParts) {
    this.name = name;
    this.#objects = objects;
    this.capabilities = Object.freeze({
      durable: true,
      clock: "reply",
      clockGranularityMs: 1_000,
      watch: false,
      conditionalDelete,
      maxBatch: 1_000,
      maxConcurrentCalls: 16,
    });
  }

  async read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    this.#assertOpen();
    const dates = new Dates();
    const records = await inParallel(keys, WIDTH, async (key) => (await this.#look(key, dates)).stored);
    return { storeTimeMs: dates.latestMs, records };
  }

  async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    this.#assertOpen();
    const dates = new Dates();
    const results = await inParallel(writes, WIDTH, async (write): Promise<WriteResult> => {
      try {
        return await this.#applyOne(write, dates);
      } catch (error) {
        // Each write of a batch fails on its own: the others may have been applied.
        if (writes.length === 1 || !(error instanceof StoreError)) throw error;
        return { kind: "unknown", cause: error };
      }
    });
    return { storeTimeMs: dates.latestMs, results };
  }

  async list(query: ListQuery): Promise<ListPage> {
    this.#assertOpen();
    return await listObjects(this.#objects, query, WIDTH);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#objects.close();
  }

  async #applyOne(write: ConditionalWrite, dates: Dates): Promise<WriteResult> {
    if (write.next === null && write.expected === null) return await this.#confirmAbsence(write.key, dates);
    const outcome = dates.noting(await this.#send(write));
    if (outcome.kind === "unknown") return await this.#settle(write, outcome.cause, dates);
    if (outcome.kind === "applied" && (write.next === null || outcome.etag !== null))
      return { kind: "applied", version: outcome.etag };
    if (outcome.kind === "applied")
      return await this.#settle(write, new Error("the server did not name the new ETag"), dates);
    return { kind: "conflict", current: await this.#currentAfterConflict(write, dates) };
  }

  async #send({ key, expected, next }: ConditionalWrite): Promise<PutOutcome> {
    const objects = this.#objects;
    if (next === null) {
      if (!this.capabilities.conditionalDelete || expected === null)
        throw new StoreError(
          "config",
          `the ${this.name} store cannot delete conditionally: keep the record`,
          {
            outcome: "not-applied",
          },
        );
      return noEtag(await objects.delete(key, expected));
    }
    const text = encodeWire(next, { previous: expected, epoch: 1 });
    return expected === null ? await objects.create(key, text) : await objects.replace(key, expected, text);
  }

  /** To delete what must not exist changes nothing: it is enough to look. */
  async #confirmAbsence(key: LeaseKey, dates: Dates): Promise<WriteResult> {
    const { stored } = await this.#look(key, dates);
    return stored.kind === "absent"
      ? { kind: "applied", version: null }
      : { kind: "conflict", current: stored };
  }

  /** The condition failed for certain; if the reason cannot be read, the next read will show it. */
  async #currentAfterConflict(write: ConditionalWrite, dates: Dates): Promise<StoredRecord> {
    try {
      return (await this.#look(write.key, dates)).stored;
    } catch (error) {
      const message = `the write was refused, and what is there could not be read: ${(error as Error).message}`;
      throw new StoreError("unreachable", message, { outcome: "not-applied", cause: error });
    }
  }

  async #settle(write: ConditionalWrite, cause: Error, dates: Dates): Promise<WriteResult> {
    const unknown: WriteResult = { kind: "unknown", cause };
    if (cause instanceof StoreError || write.next === null) return unknown;
    try {
      const { stored, previous } = await this.#look(write.key, dates);
      if (stored.kind !== "found") return unknown;
      if (stored.record.nonce === write.next.nonce) return { kind: "applied", version: stored.version };
      // After a delete a key can be created again, so two creates prove nothing about each other.
      const sameStep =
        previous === write.expected && !(previous === null && this.capabilities.conditionalDelete);
      return sameStep && versionIn(stored) !== write.expected
        ? { kind: "conflict", current: stored }
        : unknown;
    } catch {
      return unknown;
    }
  }

  /** `previous` is undefined when the object does not say what it replaced. */
  async #look(
    key: LeaseKey,
    dates: Dates,
  ): Promise<{ readonly stored: StoredRecord; readonly previous: string | null | undefined }> {
    const { stored, previous, dateMs } = await this.#objects.read(key);
    dates.note(dateMs);
    return { stored: stored ?? ABSENT, previous };
  }

  #assertOpen(): void {
    if (this.#closed)
      throw new StoreError("closed", `the ${this.name} store was closed`, { outcome: "not-applied" });
  }
}

function noEtag(outcome: PutOutcome): PutOutcome {
  return outcome.kind === "applied" ? { ...outcome, etag: null } : outcome;
}
