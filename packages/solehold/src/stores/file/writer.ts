/**
 * Writing: under the lock compare the versions, write the new contents beside the old ones and sync them,
 * then rename. A process that dies leaves whole files only. All writes of a call share the lock and its syncs.
 */
import { existsSync } from "node:fs";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import type { LeaseKey } from "../../core/index.ts";
import type { Env } from "../../env/index.ts";
import type { ConditionalWrite, WriteResult } from "../../store/index.ts";
import { encodeWire } from "../object/wire.ts";
import type { EpochClock } from "../support/epoch-clock.ts";
import { fileFailure } from "../support/file-failure.ts";
import { removeIfThere, replaceFile, syncFolder, writeTemporary } from "../support/files.ts";
import type { FolderLock } from "../support/folder-lock.ts";
import { writeMark } from "./clock.ts";
import { type LeaseFiles, versionOf } from "./lease-files.ts";
import { isHashedStem, KEY_SUFFIX, printKey, stemOf } from "./names.ts";

export interface FileWriterParts {
  /** Where unfinished files lie: on the file system of the leases, so that a rename is atomic. */
  readonly folder: string;
  readonly files: LeaseFiles;
  readonly lock: FolderLock;
  readonly clock: EpochClock;
  readonly env: Env;
}

/** A write that was compared. `content` is safe on disk under that name; null for a delete or a conflict. */
interface Prepared {
  readonly result: WriteResult;
  readonly path: string;
  readonly content: string | null;
}

export class FileWriter {
  readonly #parts: FileWriterParts;
  #last: Promise<unknown> = Promise.resolve();

  constructor(parts: FileWriterParts) {
    this.#parts = parts;
  }

  /** One call after the other: within a process they need not meet at the lock. */
  apply(writes: readonly ConditionalWrite[]): Promise<readonly WriteResult[]> {
    const turn = this.#last.then(() => this.#parts.lock.hold(() => this.#applyLocked(writes)));
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  /** Resolves when everything that was begun has ended. */
  async idle(): Promise<void> {
    await this.#last;
  }

  async #applyLocked(writes: readonly ConditionalWrite[]): Promise<readonly WriteResult[]> {
    const markMs = this.#parts.clock.now();
    // All of them end, also when one fails: nobody else may write meanwhile.
    const ended = await Promise.allSettled(writes.map((write) => this.#prepare(write)));
    const prepared = ended.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    try {
      for (const each of ended) if (each.status === "rejected") throw each.reason;
      await this.#commit(prepared, markMs);
    } catch (error) {
      const contents = prepared.flatMap(({ content }) => content ?? []);
      for (const content of contents) await removeIfThere(content).catch(() => undefined);
      throw error;
    }
    return prepared.map(({ result }) => result);
  }

  async #prepare({ key, expected, next }: ConditionalWrite): Promise<Prepared> {
    const { files, folder, clock, env } = this.#parts;
    const path = files.pathOf(key);
    const current = await files.read(key);
    if ((current.kind === "absent" ? null : current.version) !== expected)
      return { result: { kind: "conflict", current }, path, content: null };
    if (next === null) return { result: { kind: "applied", version: null }, path, content: null };
    await this.#keepName(key);
    const text = encodeWire(next, { previous: expected, epoch: clock.epoch });
    const content = await writeTemporary(folder, text, env);
    return { result: { kind: "applied", version: versionOf(text) }, path, content };
  }

  /** Before the lease, so that there never is a hashed file whose key nobody knows. */
  async #keepName(key: LeaseKey): Promise<void> {
    const { files } = this.#parts;
    const path = join(files.folder, `${stemOf(key)}${KEY_SUFFIX}`);
    if (!isHashedStem(stemOf(key)) || existsSync(path)) return;
    await replaceFile(path, printKey(key), this.#parts);
    await syncFolder(files.folder);
  }

  async #commit(prepared: readonly Prepared[], markMs: number): Promise<void> {
    const { files } = this.#parts;
    const applied = prepared.filter(({ result }) => result.kind === "applied");
    if (applied.length === 0) return;
    await writeMark(this.#parts, markMs);
    try {
      for (const { path, content } of applied) {
        if (content === null) await removeIfThere(path);
        else await rename(content, path);
      }
      await syncFolder(files.folder);
    } catch (error) {
      throw fileFailure(`the file store in '${files.folder}'`, error, "unknown");
    }
  }
}
