/**
 * Leases as objects: one object a key, written on condition of its ETag. The server's Date header is the
 * clock, to the second; several servers behind one address have several clocks, hence `clockSkewMs`.
 *
 * A failed condition is a conflict, and the current record is read to show it, unless that is our own: then
 * something on the way sent the request twice. An answer that leaves it open (a 5xx) is settled here when
 * that is certain: our nonce is there, so it was applied; or the record that is there says that it replaced
 * the very version we wanted to replace, so ours was not and never will be. Anything else is unknown.
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
import { listObjects } from "./listing.ts";
import type { ObjectNames } from "./names.ts";
import type { ConditionalObjects, PutOutcome } from "./objects.ts";
import { decodeWire, encodeWire } from "./wire.ts";

/** Small calls, many at once: the time of a large call is known badly, and its slowest request holds the others. */
export const MAX_BATCH = 2;
export const MAX_CONCURRENT_CALLS = 64;

export interface ObjectStoreParts {
  /** "s3", "azblob", "https+etag". */
  readonly name: string;
  readonly objects: ConditionalObjects;
  readonly names: ObjectNames;
  readonly conditionalDelete: boolean;
  readonly clockSkewMs: number;
}

/** What an object showed. `previous` is the version that it replaced; undefined when it does not say. */
interface Look {
  readonly stored: StoredRecord;
  readonly previous: string | null | undefined;
  readonly dateMs: number;
}

/** Null where no reply came, or one without a Date. */
type Attempt = { readonly result: WriteResult; readonly dateMs: number | null };

export class ObjectStore implements LeaseStore {
  readonly name: string;
  readonly capabilities: StoreCapabilities;
  /** Absent where the protocol has no listing. */
  readonly list?: (query: ListQuery) => Promise<ListPage>;
  readonly #objects: ConditionalObjects;
  readonly #names: ObjectNames;
  #closed = false;

  /** Use `openObjectStore`. */
  constructor({ name, objects, names, conditionalDelete, clockSkewMs }: ObjectStoreParts) {
    this.name = name;
    this.#objects = objects;
    this.#names = names;
    if (objects.canList) this.list = (query) => this.#list(query);
    this.capabilities = Object.freeze({
      durable: true,
      clock: "reply",
      clockGranularityMs: 1_000,
      clockSkewMs,
      watch: false,
      conditionalDelete,
      maxBatch: MAX_BATCH,
      maxConcurrentCalls: MAX_CONCURRENT_CALLS,
    });
  }

  async read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    this.#assertOpen();
    const looks = await Promise.all(keys.map((key) => this.#look(key)));
    return { storeTimeMs: latest(looks), records: looks.map(({ stored }) => stored) };
  }

  async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    this.#assertOpen();
    const attempts = await Promise.all(writes.map((write) => this.#attempt(write)));
    const storeTimeMs = latest(attempts);
    const results = attempts.map(({ result }) => result);
    if (storeTimeMs === null && results.length > 0) throw untimed(results);
    return { storeTimeMs, results };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#objects.close();
  }

  async #list(query: ListQuery): Promise<ListPage> {
    this.#assertOpen();
    return await listObjects(
      this.#objects,
      this.#names,
      query,
      async (key) => (await this.#look(key)).stored,
    );
  }

  /** Never rejects: each write of a call fails on its own. */
  async #attempt(write: ConditionalWrite): Promise<Attempt> {
    try {
      return await this.#applyOne(write);
    } catch (error) {
      return { result: { kind: "unknown", cause: error as Error }, dateMs: null };
    }
  }

  async #applyOne(write: ConditionalWrite): Promise<Attempt> {
    const outcome = await this.#send(write);
    const { dateMs } = outcome;
    if (outcome.kind !== "applied") return await this.#settle(write, outcome);
    if (write.next === null) return { result: { kind: "applied", version: null }, dateMs };
    if (outcome.etag === null) return await this.#settle(write, outcome);
    return { result: { kind: "applied", version: outcome.etag }, dateMs };
  }

  async #send({ key, expected, next }: ConditionalWrite): Promise<PutOutcome> {
    const name = this.#names.nameOf(key);
    if (next !== null) {
      const bytes = Buffer.from(encodeWire(next, { previous: expected, epoch: 1 }));
      const options = { contentType: "application/json" };
      return expected === null
        ? await this.#objects.putIfAbsent(name, bytes, options)
        : await this.#objects.putIfMatch(name, expected, bytes, options);
    }
    // To delete what must not exist changes nothing: it is enough to look.
    if (expected === null) return { kind: "precondition-failed", dateMs: null };
    if (this.capabilities.conditionalDelete) return await this.#objects.deleteIfMatch(name, expected);
    const message = `the ${this.name} store cannot delete conditionally: keep the record`;
    throw new StoreError("config", message, { outcome: "not-applied" });
  }

  /**
   * What became of a write that was not confirmed, as far as what is there now can tell. A refused condition is no
   * proof by itself: a proxy that repeats requests has the first copy applied and the second refused.
   */
  async #settle(write: ConditionalWrite, outcome: PutOutcome): Promise<Attempt> {
    const { expected, next } = write;
    const cause = outcome.kind === "unknown" ? outcome.cause : new Error("what is there could not be read");
    const unknown: Attempt = { result: { kind: "unknown", cause }, dateMs: outcome.dateMs };
    // Without a reply another question would hang, too; and nothing tells whose delete it was.
    if (outcome.kind === "unknown" && (outcome.dateMs === null || next === null)) return unknown;
    const look = await this.#look(write.key).catch(() => null);
    if (look === null) return unknown;
    const { stored, previous, dateMs } = look;
    if (stored.kind === "found" && stored.record.nonce === next?.nonce)
      return { result: { kind: "applied", version: stored.version }, dateMs };
    if (stored.kind === "absent" && next === null && expected === null)
      return { result: { kind: "applied", version: null }, dateMs };
    // After a delete a key can be created again, so two creates prove nothing about each other.
    const isSameStep = previous === expected && (expected !== null || !this.capabilities.conditionalDelete);
    if (outcome.kind !== "precondition-failed" && !isSameStep) return unknown;
    return { result: { kind: "conflict", current: stored }, dateMs };
  }

  async #look(key: LeaseKey): Promise<Look> {
    const { object, dateMs } = await this.#objects.get(this.#names.nameOf(key));
    if (object === null) return { stored: ABSENT, previous: undefined, dateMs };
    const decoded = decodeWire(object.bytes.toString("utf8"), key);
    const version = object.etag;
    if (!decoded.ok)
      return { stored: { kind: "corrupt", version, detail: decoded.detail }, previous: undefined, dateMs };
    const { record, origin } = decoded;
    return { stored: { kind: "found", record, version }, previous: origin?.previous, dateMs };
  }

  #assertOpen(): void {
    if (this.#closed)
      throw new StoreError("closed", `the ${this.name} store was closed`, { outcome: "not-applied" });
  }
}

/** Not later than the end of the call, and not earlier than its beginning, to the second. */
function latest(dated: readonly { readonly dateMs: number | null }[]): number | null {
  const dates = dated.map(({ dateMs }) => dateMs).filter((dateMs) => dateMs !== null);
  return dates.length === 0 ? null : Math.max(...dates);
}

/** No reply told the time. "not-applied" only if that is certain of every write. */
function untimed(results: readonly WriteResult[]): StoreError {
  const causes = results.flatMap((result) => (result.kind === "unknown" ? [result.cause] : []));
  const notApplied = causes.filter((cause) => cause instanceof StoreError && cause.outcome === "not-applied");
  const outcome = notApplied.length === results.length ? "not-applied" : "unknown";
  const [cause = new Error("the server sent no Date header")] = causes;
  const kind = cause instanceof StoreError ? cause.kind : "internal";
  return new StoreError(kind, cause.message, { outcome, cause });
}
