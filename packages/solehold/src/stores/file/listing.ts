/** Pages of a folder: the names first, as they are cheap; then the files, until the page is full. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { LeaseKey, LeaseRecord } from "../../core/index.ts";
import type { ListPage, ListQuery } from "../../store/index.ts";
import { nameIsListed, recordIsListed } from "../../store/index.ts";
import { inParallel } from "../object/parallel.ts";
import type { LeaseFiles } from "./lease-file.ts";
import { isHashedStem, KEY_SUFFIX, keyOfStem, LEASE_SUFFIX, parseKey } from "./names.ts";

const WIDTH = 8;

export async function listFiles(
  folder: string,
  files: LeaseFiles,
  query: ListQuery,
): Promise<Omit<ListPage, "storeTimeMs">> {
  const names = await namesIn(folder, query);
  const records: LeaseRecord[] = [];
  const corrupt: { key: LeaseKey; version: string; detail: string }[] = [];
  let done = 0;
  while (done < names.length && records.length < query.limit) {
    const part = names.slice(done, done + query.limit - records.length);
    const keys = part.map((name) => ({ tenant: query.tenant, name }));
    const read = await inParallel(keys, WIDTH, (key) => files.read(key));
    for (const [index, stored] of read.entries()) {
      const key = keys[index];
      if (stored.kind === "found" && recordIsListed(query, stored.record)) records.push(stored.record);
      if (stored.kind === "corrupt" && key !== undefined)
        corrupt.push({ key, version: stored.version, detail: stored.detail });
    }
    done += part.length;
  }
  return { records, corrupt, next: done < names.length ? (names[done - 1] ?? null) : null };
}

async function namesIn(folder: string, query: ListQuery): Promise<readonly string[]> {
  const stems = (await readdir(folder))
    .filter((file) => file.endsWith(LEASE_SUFFIX))
    .map((file) => file.slice(0, -LEASE_SUFFIX.length));
  const keys = await inParallel(stems, WIDTH, async (stem) => await keyOf(folder, stem));
  return keys
    .filter((key) => key?.tenant === query.tenant)
    .map((key) => key?.name ?? "")
    .filter((name) => nameIsListed(query, name) && (query.after === undefined || name > query.after))
    .sort((a, b) => (a < b ? -1 : 1));
}

/** Null for a file that is no key's. */
export async function keyOf(folder: string, stem: string): Promise<LeaseKey | null> {
  if (!isHashedStem(stem)) return keyOfStem(stem);
  try {
    return parseKey(await readFile(join(folder, `${stem}${KEY_SUFFIX}`), "utf8"), stem);
  } catch {
    return null;
  }
}
