/**
 * Pages of leases from pages of objects. The order is the server's: by the names as they are written,
 * which is the order of the keys unless they contain signs that have to be escaped.
 *
 * A cursor is the server's own cursor of the page that was begun, and the last name that was given out.
 */
import type { LeaseKey, LeaseRecord } from "../../core/index.ts";
import {
  type ListPage,
  type ListQuery,
  nameIsListed,
  recordIsListed,
  StoreError,
} from "../../store/index.ts";
import { Dates } from "./dates.ts";
import type { LeaseObjects } from "./lease-objects.ts";
import { inParallel } from "./parallel.ts";

interface Cursor {
  readonly page: string | null;
  readonly name: string | null;
}

export async function listObjects(objects: LeaseObjects, query: ListQuery, width: number): Promise<ListPage> {
  const records: LeaseRecord[] = [];
  const corrupt: { key: LeaseKey; version: string; detail: string }[] = [];
  const dates = new Dates();
  let cursor = parseCursor(query.after);
  for (;;) {
    const page = dates.noting(await objects.list(query.tenant, query.prefix, cursor.page));
    const names = page.names
      .map((object) => objects.names.keyNameOf(query.tenant, object))
      .filter((name) => name !== null)
      .filter((name) => nameIsListed(query, name));
    let done = cursor.name === null ? 0 : names.indexOf(cursor.name) + 1;
    while (done < names.length) {
      if (records.length >= query.limit) return { ...closed(), next: printCursor(cursor) };
      const part = names.slice(done, done + query.limit - records.length);
      await read(part);
      done += part.length;
      cursor = { page: cursor.page, name: part.at(-1) ?? null };
    }
    if (page.next === null) return { ...closed(), next: null };
    cursor = { page: page.next, name: null };
    if (records.length >= query.limit) return { ...closed(), next: printCursor(cursor) };
  }

  async function read(names: readonly string[]): Promise<void> {
    const keys = names.map((name) => ({ tenant: query.tenant, name }));
    const found = await inParallel(keys, width, (key) => objects.read(key));
    for (const [index, { stored, dateMs }] of found.entries()) {
      dates.note(dateMs);
      const key = keys[index];
      if (stored.kind === "found" && recordIsListed(query, stored.record)) records.push(stored.record);
      if (stored.kind === "corrupt" && key !== undefined)
        corrupt.push({ key, version: stored.version, detail: stored.detail });
    }
  }

  function closed(): Omit<ListPage, "next"> {
    return { storeTimeMs: dates.latestMs, records, corrupt };
  }
}

function printCursor({ page, name }: Cursor): string {
  return JSON.stringify([page, name]);
}

function parseCursor(text: string | undefined): Cursor {
  if (text === undefined) return { page: null, name: null };
  try {
    const [page, name] = JSON.parse(text) as [unknown, unknown];
    const isPart = (part: unknown): part is string | null => part === null || typeof part === "string";
    if (isPart(page) && isPart(name)) return { page, name };
  } catch {
    // Reported below.
  }
  const message = `list: after must be the cursor of an earlier page, got '${text}'`;
  throw new StoreError("config", message, { outcome: "not-applied" });
}
