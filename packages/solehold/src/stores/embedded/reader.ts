/** Reads of the latest snapshot, from the memory map and without I/O unless a page has to be fetched. */
import type { LeaseKey } from "../../core/index.ts";
import type { Env } from "../../env/index.ts";
import { ABSENT, type StoredRecord } from "../../store/index.ts";
import type { Databases } from "./database.ts";
import { databaseKey } from "./keys.ts";
import { Pace } from "./pace.ts";
import type { ValueCodec } from "./value.ts";

/** Decoded without a look at the clock: about a millisecond's worth. */
const RECORDS_PER_LOOK = 250;

export class Reader {
  readonly #databases: Databases;
  readonly #codec: ValueCodec;
  readonly #env: Env;

  constructor(databases: Databases, codec: ValueCodec, env: Env) {
    this.#databases = databases;
    this.#codec = codec;
    this.#env = env;
  }

  /**
   * LMDB keeps a snapshot for as long as a turn of the event loop may last. Another process's write that
   * was acknowledged meanwhile must be seen, so every call begins with the latest one.
   */
  refresh(): void {
    this.#databases.root.resetReadTxn();
  }

  async read(keys: readonly LeaseKey[]): Promise<StoredRecord[]> {
    const pace = new Pace(this.#env);
    const records: StoredRecord[] = [];
    for (const [index, key] of keys.entries()) {
      if (index % RECORDS_PER_LOOK === 0) {
        await pace.keep();
        this.refresh();
      }
      records.push(this.current(key));
    }
    return records;
  }

  /** In the snapshot that is open. */
  current(key: LeaseKey): StoredRecord {
    const entry = this.#databases.records.getEntry(databaseKey(key));
    if (entry === undefined) return ABSENT;
    return this.decode(key, entry.value, entry.version ?? 0);
  }

  decode(key: LeaseKey, text: string, revision: number): Exclude<StoredRecord, { kind: "absent" }> {
    const version = String(revision);
    const decoded = this.#codec.decode(text, key);
    if (!decoded.ok) return { kind: "corrupt", version, detail: decoded.detail };
    return { kind: "found", record: decoded.record, version };
  }
}
