/**
 * One page of a tenant's records, in the order of their names' UTF-8 bytes. The database is scanned from
 * the cursor on, in parts with turns of the event loop between them, and no further than the page needs.
 */
import type { LeaseKey, LeaseRecord } from "../../core/index.ts";
import type { Env } from "../../env/index.ts";
import type { ListPage, ListQuery } from "../../store/index.ts";
import { nameIsListed, recordIsListed } from "../../store/index.ts";
import type { Databases } from "./database.ts";
import { afterPrefix, keyFromBytes } from "./keys.ts";
import { Pace } from "./pace.ts";
import type { Reader } from "./reader.ts";

/** About a millisecond's worth. */
const RECORDS_PER_SCAN = 250;

type Corrupt = ListPage["corrupt"][number];

class PageBuilder {
  readonly records: LeaseRecord[] = [];
  readonly corrupt: Corrupt[] = [];
  readonly #query: ListQuery;
  #lastName: string | null = null;
  /** Set when one more record than fits was seen. */
  next: string | null = null;

  constructor(query: ListQuery) {
    this.#query = query;
  }

  add(key: LeaseKey, item: LeaseRecord | Corrupt): void {
    if (this.records.length + this.corrupt.length >= this.#query.limit) {
      this.next = this.#lastName;
      return;
    }
    if ("version" in item) this.corrupt.push(item);
    else this.records.push(item);
    this.#lastName = key.name;
  }
}

export class Listing {
  readonly #databases: Databases;
  readonly #reader: Reader;
  readonly #env: Env;

  constructor(databases: Databases, reader: Reader, env: Env) {
    this.#databases = databases;
    this.#reader = reader;
    this.#env = env;
  }

  async page(query: ListQuery): Promise<Omit<ListPage, "storeTimeMs">> {
    const pace = new Pace(this.#env);
    const builder = new PageBuilder(query);
    const prefix = Buffer.from(`${query.tenant}/${query.prefix}`);
    const end = afterPrefix(prefix);
    let { start, exclusiveStart } = startOf(query, prefix);
    for (let more = true; more && builder.next === null; ) {
      this.#reader.refresh();
      const last = this.#scan(query, builder, { start, end, exclusiveStart });
      more = last !== null;
      if (last === null) continue;
      [start, exclusiveStart] = [last, true];
      await pace.keep();
    }
    return { records: builder.records, corrupt: builder.corrupt, next: builder.next };
  }

  /** The last key that was looked at, or null when the range is at its end. */
  #scan(query: ListQuery, builder: PageBuilder, range: Range): Buffer | null {
    let scanned = 0;
    let last: Buffer | null = null;
    const entries = this.#databases.records.getRange({ ...range, versions: true, limit: RECORDS_PER_SCAN });
    for (const { key: bytes, value, version } of entries) {
      scanned += 1;
      last = bytes;
      const key = keyFromBytes(bytes);
      if (!nameIsListed(query, key.name)) continue;
      const stored = this.#reader.decode(key, value, version ?? 0);
      if (stored.kind === "corrupt")
        builder.add(key, { key, version: stored.version, detail: stored.detail });
      else if (recordIsListed(query, stored.record)) builder.add(key, stored.record);
      if (builder.next !== null) break;
    }
    return scanned < RECORDS_PER_SCAN && builder.next === null ? null : last;
  }
}

interface Range {
  readonly start: Buffer;
  readonly end: Buffer;
  readonly exclusiveStart: boolean;
}

/** After the cursor, unless that lies before the prefix. */
function startOf(query: ListQuery, prefix: Buffer): { start: Buffer; exclusiveStart: boolean } {
  const after = query.after === undefined ? prefix : Buffer.from(`${query.tenant}/${query.after}`);
  const isAfter = query.after !== undefined && after.compare(prefix) >= 0;
  return { start: isAfter ? after : prefix, exclusiveStart: isAfter };
}
