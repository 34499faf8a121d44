/**
 * Reads and conditional writes of records: one statement for a read, one for a batch of writes, and a second one for
 * those that found another version.
 */
import { encodeRecord, keyId, type LeaseKey } from "../../core/index.ts";
import { jittered, type Timer } from "../../env/index.ts";
import {
  ABSENT,
  type ApplyReply,
  type ConditionalWrite,
  type FailedOutcome,
  type ReadReply,
  StoreError,
  type StoreReply,
  storedFromText,
  type WriteResult,
} from "../../store/index.ts";
import { endedAs, lossError } from "../support/failures.ts";
import type { FollowUp } from "./calls.ts";
import { ANYTHING_CHANGED, payloadOf } from "./changes.ts";
import { isTrue, type Row } from "./driver.ts";
import type { ServerIdentity } from "./identity.ts";
import type { StoreContext } from "./options.ts";
import { arrayLiteral, timeMsOf } from "./statements.ts";

const VERSION = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** In place of a version that is none of this store's, which the database could not compare. No row has it. */
const NO_VERSION = "00000000-0000-0000-0000-000000000000";
const ANNOUNCE_AGAIN_MS = 1_000;

export class RecordAccess {
  readonly #context: StoreContext;
  readonly #identity: ServerIdentity;
  #announcingAgain: Timer | null = null;
  #closed = false;

  constructor(context: StoreContext, identity: ServerIdentity) {
    this.#context = context;
    this.#identity = identity;
  }

  /** One statement, one snapshot. */
  async read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    const { calls, statements } = this.#context;
    const columns = [keys.map(({ tenant }) => tenant), keys.map(({ name }) => name)];
    const rows = await calls.query(statements.read, columns.map(arrayLiteral)).catch(endedAs("not-applied"));
    const reply = await this.#replyOf(rows, "not-applied");
    const byPlace = new Map(rows.map((row) => [Number(row[2]), row]));
    const records = keys.map((key, index) => {
      const [, , , version = "", value = ""] = byPlace.get(index + 1) ?? [];
      return storedFromText(key, value || null, version);
    });
    return { ...reply, records };
  }

  async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    const rows = writes.some(isWrite) ? await this.#write(writes) : [];
    const versions = versionsIn(rows);
    const open = writes.filter(({ key }) => !versions.has(keyId(key)));
    if (rows.length === 0) return this.#settle(open);
    const reply = await this.#replyOf(rows, "unknown");
    const settled = open.length === 0 ? { results: [] } : await this.#settle(open).catch(unknownFor(open));
    const results = writes.map((write): WriteResult => {
      const rest = settled.results[open.indexOf(write)];
      return rest ?? { kind: "applied", version: versions.get(keyId(write.key)) || null };
    });
    return { ...reply, ...settled, results };
  }

  close(): void {
    this.#closed = true;
    this.#announcingAgain?.cancel();
  }

  async #write(writes: readonly ConditionalWrite[]): Promise<readonly Row[]> {
    const { calls, statements } = this.#context;
    const column = (value: (write: ConditionalWrite) => string | null): string =>
      arrayLiteral(writes.map(value));
    const values = [
      column(({ key }) => key.tenant),
      column(({ key }) => key.name),
      column(({ expected }) => (expected === null || VERSION.test(expected) ? expected : NO_VERSION)),
      column(({ next }) => (next === null ? null : encodeRecord(next))),
    ];
    try {
      return await calls.query(statements.write, values, (rows) => this.#announcementOf(writes, rows));
    } catch (error) {
      if (error instanceof StoreError && error.outcome === "unknown") this.#announceAgain();
      throw error;
    }
  }

  /** Looks at what is there instead, for writes that were not done and never will be. */
  async #settle(open: readonly ConditionalWrite[]): Promise<ApplyReply> {
    const { records, ...reply } = await this.read(open.map(({ key }) => key));
    const results = open.map((write, index): WriteResult => {
      const current = records[index] ?? ABSENT;
      const isRight = !isWrite(write) && current.kind === "absent";
      return isRight ? { kind: "applied", version: null } : { kind: "conflict", current };
    });
    return { ...reply, results };
  }

  #announcementOf(writes: readonly ConditionalWrite[], rows: readonly Row[]): FollowUp | null {
    if (!rows.some((row) => isTrue(row[2]))) return null;
    const versions = versionsIn(rows);
    const payloads = writes.flatMap(({ key, next }) => {
      const version = versions.get(keyId(key));
      return version === undefined ? [] : [payloadOf(key, version || null, next)];
    });
    const { notify } = this.#context.statements;
    return { statement: notify, values: [arrayLiteral(payloads)], onFailure: () => this.#announceAgain() };
  }

  /** Something may have changed unannounced: a write of unknown outcome, or one whose announcement failed. */
  #announceAgain(): void {
    const { calls, env, statements } = this.#context;
    if (this.#announcingAgain !== null || this.#closed) return;
    this.#announcingAgain = env.timer(jittered(env, ANNOUNCE_AGAIN_MS, 0.5), () => {
      this.#announcingAgain = null;
      calls.query(statements.notify, [arrayLiteral([ANYTHING_CHANGED])]).catch(() => this.#announceAgain());
    });
  }

  /** Rejects once for each loss of acknowledged data. */
  async #replyOf(rows: readonly Row[], outcome: FailedOutcome): Promise<StoreReply> {
    const [, stamp = "", , position = ""] = rows[0] ?? [];
    const written = outcome === "unknown" ? position : null;
    const loss = await this.#identity.observe(stamp, written).catch(endedAs(outcome));
    if (loss !== null) throw lossError(`PostgreSQL at ${this.#context.driver.place}`, loss, outcome);
    return { storeTimeMs: timeMsOf(rows), serverChangedAtMs: this.#identity.changedAtMs };
  }
}

/** What expects nothing and writes nothing only asks whether the key is absent. */
function isWrite({ expected, next }: ConditionalWrite): boolean {
  return expected !== null || next !== null;
}

/** By the ids of their keys, the versions of the writes that were done; empty after a delete. */
function versionsIn(rows: readonly Row[]): ReadonlyMap<string, string> {
  return new Map(rows.map((row) => [`${row[4]}/${row[5]}`, row[6] ?? ""]));
}

/** Where others of the call were done, and nobody could look at what is there for these. */
function unknownFor(open: readonly ConditionalWrite[]): (cause: Error) => Pick<ApplyReply, "results"> {
  return (cause) => {
    if (cause instanceof StoreError && cause.kind === "data-loss") return endedAs("unknown")(cause);
    return { results: open.map(() => ({ kind: "unknown", cause })) };
  };
}
