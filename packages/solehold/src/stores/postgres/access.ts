/**
 * Reads and conditional writes of records: one statement for a read, one for a batch of writes, and a second one for
 * those that found another version.
 */
import { encodeRecord, keyId, type LeaseKey } from "../../core/index.ts";
import {
  ABSENT,
  type ApplyReply,
  type ConditionalWrite,
  type FailedOutcome,
  type ReadReply,
  StoreError,
  type StoreReply,
  type WriteResult,
} from "../../store/index.ts";
import { storedFromText } from "../support/stored-text.ts";
import type { Announcer } from "./announcer.ts";
import type { Behind, Calls } from "./calls.ts";
import type { Change } from "./changes.ts";
import { isTrue, type Row } from "./driver.ts";
import type { ServerIdentity } from "./identity.ts";
import { arrayLiteral, type Statements, timeMsOf } from "./statements.ts";

const VERSION = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** In place of a version that is none of this store's: the database could not compare it. No row has it. */
const NO_VERSION = "00000000-0000-0000-0000-000000000000";

const UNANSWERED: WriteResult = {
  kind: "unknown",
  cause: new Error("the store gave no answer for this write"),
};

/** What became of the writes that were not done, by the ids of their keys; without a reply nobody could look. */
interface Settled {
  readonly reply: StoreReply | null;
  readonly results: ReadonlyMap<string, WriteResult>;
}

export interface RecordAccessOptions {
  readonly calls: Calls;
  readonly statements: Statements;
  readonly identity: ServerIdentity;
  readonly announcer: Announcer;
  readonly place: string;
}

export class RecordAccess {
  readonly #options: RecordAccessOptions;

  constructor(options: RecordAccessOptions) {
    this.#options = options;
  }

  /** One statement, one snapshot. */
  async read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    const { calls, statements } = this.#options;
    const rows = await calls.query(statements.read, [
      arrayLiteral(keys.map(({ tenant }) => tenant)),
      arrayLiteral(keys.map(({ name }) => name)),
    ]);
    const serverChangedAtMs = await this.#observed(rows, "not-applied");
    const byPlace = new Map(rows.map((row) => [Number(row[2]), row]));
    const records = keys.map((key, index) => {
      const [, , , version, value] = byPlace.get(index + 1) ?? [];
      return storedFromText(key, value ?? null, version ?? "");
    });
    return { storeTimeMs: timeMsOf(rows[0]), serverChangedAtMs, records };
  }

  async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    const rows = writes.some(isWrite) ? await this.#write(writes) : [];
    const serverChangedAtMs = rows.length === 0 ? null : await this.#observed(rows, "unknown");
    const versions = versionsIn(rows);
    const open = writes.filter(({ key }) => !versions.has(keyId(key)));
    const settled = rows.length > 0 && open.length === 0 ? null : await this.#settle(open, rows.length);
    const results = writes.map(({ key }): WriteResult => {
      const version = versions.get(keyId(key));
      if (version !== undefined) return { kind: "applied", version };
      return settled?.results.get(keyId(key)) ?? UNANSWERED;
    });
    return settled?.reply == null
      ? { storeTimeMs: timeMsOf(rows[0]), serverChangedAtMs, results }
      : { ...settled.reply, results };
  }

  async #write(writes: readonly ConditionalWrite[]): Promise<readonly Row[]> {
    const { announcer, calls, statements } = this.#options;
    const column = (value: (write: ConditionalWrite) => string | null): string =>
      arrayLiteral(writes.map(value));
    const values = [
      column(({ key }) => key.tenant),
      column(({ key }) => key.name),
      column(({ expected }) => (expected === null || VERSION.test(expected) ? expected : NO_VERSION)),
      column(({ next }) => (next === null ? null : encodeRecord(next))),
    ];
    try {
      return await calls.query(statements.write, values, (rows) => this.#announcement(writes, rows));
    } catch (error) {
      const isUnknown = error instanceof StoreError && error.outcome === "unknown";
      if (isUnknown) announcer.keep(writes.filter(isWrite).map(({ key }) => key));
      throw error;
    }
  }

  #announcement(writes: readonly ConditionalWrite[], rows: readonly Row[]): Behind | null {
    if (!rows.some((row) => isTrue(row[2]))) return null;
    const versions = versionsIn(rows);
    const changes = writes.flatMap(({ key, next }): Change[] => {
      const version = versions.get(keyId(key));
      if (version === undefined) return [];
      const isFound = next !== null && version !== null;
      return [{ key, stored: isFound ? { kind: "found", record: next, version } : ABSENT }];
    });
    return this.#options.announcer.announcementOf(changes);
  }

  /** Looks what is there for writes that were not done and never will be. `done`: how many others of the call were. */
  async #settle(open: readonly ConditionalWrite[], done: number): Promise<Settled> {
    try {
      const { records, ...reply } = await this.read(open.map(({ key }) => key));
      const results = open.map((write, index): [string, WriteResult] => {
        const current = records[index] ?? ABSENT;
        const isRight = !isWrite(write) && current.kind === "absent";
        return [
          keyId(write.key),
          isRight ? { kind: "applied", version: null } : { kind: "conflict", current },
        ];
      });
      return { reply, results: new Map(results) };
    } catch (cause) {
      if (!(cause instanceof StoreError)) throw cause;
      if (done > 0 && cause.kind !== "data-loss")
        return {
          reply: null,
          results: new Map(open.map(({ key }) => [keyId(key), { kind: "unknown", cause }])),
        };
      const outcome = done > 0 ? "unknown" : "not-applied";
      throw new StoreError(cause.kind, cause.message, { outcome, cause });
    }
  }

  /** When the server last changed. Rejects once if acknowledged data is gone. */
  async #observed(rows: readonly Row[], outcome: FailedOutcome): Promise<number | null> {
    const { identity, place } = this.#options;
    const [first = []] = rows;
    const transaction = outcome === "unknown" ? (first[3] ?? undefined) : undefined;
    const loss = await identity.observe(first[1] ?? "", transaction);
    if (loss === null) return identity.changedAtMs;
    const meaning =
      "leases that were granted or renewed shortly before may be granted again while their holders still believe in them";
    throw new StoreError(
      "data-loss",
      `PostgreSQL at ${place}: ${loss} (a failover to a standby that lagged behind, or a restored backup): ${meaning}`,
      { outcome },
    );
  }
}

/** What expects nothing and writes nothing only asks whether the key is absent. */
function isWrite({ expected, next }: ConditionalWrite): boolean {
  return expected !== null || next !== null;
}

/** By the ids of their keys, the versions of the writes that were done; null after a delete. */
function versionsIn(rows: readonly Row[]): ReadonlyMap<string, string | null> {
  return new Map(rows.map((row) => [`${row[4]}/${row[5]}`, row[6] ?? null]));
}
