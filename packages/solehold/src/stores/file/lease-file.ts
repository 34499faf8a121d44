/** One key's file: reading it without a lock, and what its bytes say. The version is the content's hash. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { LeaseKey } from "../../core/index.ts";
import { ABSENT, type StoredRecord } from "../../store/index.ts";
import type { StoreClock } from "../embedded/clock.ts";
import { decodeWire } from "../object/wire.ts";
import { codeOf } from "./failures.ts";
import { LEASE_SUFFIX, stemOf } from "./names.ts";

export class LeaseFiles {
  readonly #folder: string;
  readonly #clock: StoreClock;

  constructor(folder: string, clock: StoreClock) {
    this.#folder = folder;
    this.#clock = clock;
  }

  pathOf(key: LeaseKey): string {
    return join(this.#folder, `${stemOf(key)}${LEASE_SUFFIX}`);
  }

  /** A rename replaces a file whole, so a reader sees one write or the next, never a part. */
  async read(key: LeaseKey): Promise<StoredRecord> {
    try {
      return this.#stored(await readFile(this.pathOf(key)), key);
    } catch (error) {
      if (codeOf(error) === "ENOENT") return ABSENT;
      throw error;
    }
  }

  readNow(key: LeaseKey): StoredRecord {
    try {
      return this.#stored(readFileSync(this.pathOf(key)), key);
    } catch (error) {
      if (codeOf(error) === "ENOENT") return ABSENT;
      throw error;
    }
  }

  #stored(bytes: Buffer, key: LeaseKey): StoredRecord {
    const version = versionOf(bytes);
    const decoded = decodeWire(bytes.toString("utf8"), key);
    if (!decoded.ok) return { kind: "corrupt", version, detail: decoded.detail };
    const { record, origin } = decoded;
    const shown = origin === null ? record : this.#clock.translate(record, origin.epoch);
    return { kind: "found", record: shown, version };
  }
}

/** Every record has a nonce, so equal content is the same write. */
export function versionOf(content: Buffer | string): string {
  return createHash("sha256").update(content).digest("hex").slice(0, 32);
}
