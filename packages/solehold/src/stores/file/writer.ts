/**
 * Writing: under the lock compare the versions, write the new contents beside the old ones and sync them,
 * then rename. A process that dies leaves whole files only. All writes of a call share the syncs.
 */
import { existsSync } from "node:fs";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import type { LeaseRecord } from "../../core/index.ts";
import type { Env } from "../../env/index.ts";
import type { ConditionalWrite, StoredRecord, WriteResult } from "../../store/index.ts";
import type { StoreClock } from "../embedded/clock.ts";
import { inParallel } from "../object/parallel.ts";
import { encodeWire } from "../object/wire.ts";
import { writeMark } from "./clock-file.ts";
import { fileFailure } from "./failures.ts";
import { removeIfThere, replaceFile, type StoreFolders, syncFolder, writeTemporary } from "./folder.ts";
import { type LeaseFiles, versionOf } from "./lease-file.ts";
import type { FolderLock } from "./lock.ts";
import { isHashedStem, KEY_SUFFIX, printKey, stemOf } from "./names.ts";

export interface FileWriterParts {
  readonly folders: StoreFolders;
  readonly lock: FolderLock;
  readonly clock: StoreClock;
  readonly files: LeaseFiles;
  readonly env: Env;
}

/** A write whose version is current, with its content safe on disk under another name. */
interface Prepared {
  readonly path: string;
  readonly temporary: string | null;
}

const WIDTH = 8;

export class FileWriter {
  readonly #parts: FileWriterParts;
  #last: Promise<unknown> = Promise.resolve();

  constructor(parts: FileWriterParts) {
    this.#parts = parts;
  }

  /** One call after the other: within a process they need not meet at the lock. */
  apply(writes: readonly ConditionalWrite[]): Promise<readonly WriteResult[]> {
    const turn = this.#last.then(() => this.#apply(writes));
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  /** Resolves when everything that was begun has ended. */
  async idle(): Promise<void> {
    await this.#last;
  }

  async #apply(writes: readonly ConditionalWrite[]): Promise<readonly WriteResult[]> {
    if (writes.length === 0) return [];
    try {
      return await this.#parts.lock.hold(() => this.#applyLocked(writes));
    } catch (error) {
      // What could have been renamed already reports itself as unknown.
      throw fileFailure(this.#parts.folders.root, error, "not-applied");
    }
  }

  async #applyLocked(writes: readonly ConditionalWrite[]): Promise<readonly WriteResult[]> {
    const { files, clock } = this.#parts;
    const markMs = clock.now();
    const currents = await inParallel(writes, WIDTH, ({ key }) => files.read(key));
    const prepared: Prepared[] = [];
    try {
      const results = await inParallel(writes, WIDTH, async (write, index): Promise<WriteResult> => {
        const current = currents[index] as StoredRecord;
        if (versionIn(current) !== write.expected) return { kind: "conflict", current };
        const { step, version } = await this.#prepare(write);
        prepared.push(step);
        return { kind: "applied", version };
      });
      if (prepared.length > 0) await this.#commit(prepared, markMs);
      return results;
    } catch (error) {
      await this.#discard(prepared);
      throw error;
    }
  }

  async #prepare(
    write: ConditionalWrite,
  ): Promise<{ readonly step: Prepared; readonly version: string | null }> {
    const { files, folders, env } = this.#parts;
    const path = files.pathOf(write.key);
    if (write.next === null) return { step: { path, temporary: null }, version: null };
    await this.#keepName(write.next);
    const text = encodeWire(write.next, { previous: write.expected, epoch: this.#parts.clock.epoch });
    const temporary = await writeTemporary(folders.internal, text, env);
    return { step: { path, temporary }, version: versionOf(text) };
  }

  /** Before the lease, so that there never is a hashed file whose key nobody knows. */
  async #keepName({ key }: LeaseRecord): Promise<void> {
    const { folders, env } = this.#parts;
    const stem = stemOf(key);
    if (!isHashedStem(stem)) return;
    const path = join(folders.leases, `${stem}${KEY_SUFFIX}`);
    if (existsSync(path)) return;
    await replaceFile(folders.internal, path, printKey(key), env);
    await syncFolder(folders.leases);
  }

  async #commit(prepared: readonly Prepared[], markMs: number): Promise<void> {
    const { folders, env } = this.#parts;
    await writeMark(folders.internal, markMs, env);
    try {
      for (const { path, temporary } of prepared) {
        if (temporary === null) await removeIfThere(path);
        else await rename(temporary, path);
      }
      await syncFolder(folders.leases);
    } catch (error) {
      throw fileFailure(folders.root, error, "unknown");
    }
  }

  async #discard(prepared: readonly Prepared[]): Promise<void> {
    for (const { temporary } of prepared) {
      if (temporary !== null) await removeIfThere(temporary).catch(() => undefined);
    }
  }
}

function versionIn(stored: StoredRecord): string | null {
  return stored.kind === "absent" ? null : stored.version;
}
