/** The files of the keys: reading them without a lock, and what their bytes say. The version is the content's hash. */
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { LeaseKey } from "../../core/index.ts";
import { ABSENT, type ListPage, type ListQuery, type StoredRecord } from "../../store/index.ts";
import { firstPage, listRecords, type StoredPage } from "../../store/paging.ts";
import { codeOf } from "../../support/files.ts";
import { LEASE_SUFFIX } from "../object/names.ts";
import { decodeWire } from "../object/wire.ts";
import type { EpochClock } from "../support/epoch-clock.ts";
import { isHashedStem, KEY_SUFFIX, keyOfStem, parseKey, stemOf } from "./names.ts";

export class LeaseFiles {
  readonly folder: string;
  readonly #clock: EpochClock;

  constructor(folder: string, clock: EpochClock) {
    this.folder = folder;
    this.#clock = clock;
  }

  pathOf(key: LeaseKey): string {
    return join(this.folder, `${stemOf(key)}${LEASE_SUFFIX}`);
  }

  /** A rename replaces a file whole, so a reader sees one write or the next, never a part. */
  async read(key: LeaseKey): Promise<StoredRecord> {
    const bytes = await readOrNull(this.pathOf(key));
    if (bytes === null) return ABSENT;
    const version = versionOf(bytes);
    const decoded = decodeWire(bytes.toString("utf8"), key);
    if (!decoded.ok) return { kind: "corrupt", version, detail: decoded.detail };
    const { record, origin } = decoded;
    const shown = origin === null ? record : this.#clock.translate(record, origin.epoch);
    return { kind: "found", record: shown, version };
  }

  /** Null for a file that is no key's lease. */
  async keyOf(file: string): Promise<LeaseKey | null> {
    if (!file.endsWith(LEASE_SUFFIX)) return null;
    const stem = file.slice(0, -LEASE_SUFFIX.length);
    if (!isHashedStem(stem)) return keyOfStem(stem);
    return parseKey(String(await readOrNull(join(this.folder, `${stem}${KEY_SUFFIX}`))), stem);
  }

  /** In order of name: the names first, as they are cheap. */
  async list(query: ListQuery): Promise<Omit<ListPage, "storeTimeMs">> {
    return await listRecords(query, async ({ tenant, prefix, after, limit }) => {
      const found: { key: LeaseKey }[] = [];
      for (const file of await readdir(this.folder)) {
        const key = await this.keyOf(file);
        if (key?.tenant !== tenant || !key.name.startsWith(prefix)) continue;
        if (after === null || key.name > after.name) found.push({ key });
      }
      found.sort((a, b) => (a.key.name < b.key.name ? -1 : 1));
      const page = firstPage(found, limit);
      const items: StoredPage["items"][number][] = [];
      // One by one: a process may have only so many files open.
      for (const { key } of page.items) items.push({ key, stored: await this.read(key) });
      return { ...page, items };
    });
  }
}

/** Every record has a nonce, so equal content is the same write. */
export function versionOf(content: Buffer | string): string {
  return createHash("sha256").update(content).digest("hex").slice(0, 32);
}

async function readOrNull(path: string): Promise<Buffer | null> {
  try {
    return await readFile(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}
