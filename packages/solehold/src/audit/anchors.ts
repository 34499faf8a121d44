/**
 * Anchors: heads written beside the segments, each after its entry was safe on disk. A crash can therefore
 * never leave an anchor above the last entry; if one is, entries were cut off. They find truncation by
 * someone who forgot this file; copies of the head kept elsewhere find it by anyone.
 */
import { join } from "node:path";
import { codeOf } from "../support/files.ts";
import type { AuditDisk, AuditFile } from "./disk.ts";
import type { AuditHead } from "./entry.ts";
import { AuditError } from "./error.ts";
import { ANCHORS_FILE } from "./folder.ts";
import { type AuditReader, realReader } from "./line-reader.ts";

const ANCHOR = /^\{"sequence":([1-9]\d{0,15}),"hash":"([0-9a-f]{64})"\}$/;

/** One line of the file; `head` is null when the line is not an anchor. */
export interface AnchorLine {
  readonly line: number;
  readonly head: AuditHead | null;
  /** The number of bytes from the start of the file to the end of this line. */
  readonly endByte: number;
}

/** The complete lines; a last one without its line feed is what a crash leaves, and says nothing. */
export async function* readAnchors(
  folder: string,
  throughByte?: number,
  reader: AuditReader = realReader,
): AsyncGenerator<AnchorLine> {
  let line = 0;
  let endByte = 0;
  for await (const batch of reader.lines(join(folder, ANCHORS_FILE), throughByte)) {
    for (const bytes of batch.lines) {
      line += 1;
      endByte += bytes.length + 1;
      const [, sequence, hash] = ANCHOR.exec(bytes.toString("latin1")) ?? [];
      const head = sequence === undefined || hash === undefined ? null : { sequence: Number(sequence), hash };
      yield { line, head, endByte };
    }
  }
}

export interface LastAnchor {
  readonly file: "present" | "missing";
  readonly head: AuditHead | null;
  readonly endByte: number;
}

/** Throws on a line that is not an anchor: a crash cannot have made it. */
export async function readLastAnchor(reader: AuditReader, folder: string): Promise<LastAnchor> {
  let last: LastAnchor = { file: "present", head: null, endByte: 0 };
  try {
    for await (const anchor of readAnchors(folder, undefined, reader)) {
      if (anchor.head === null) {
        const advice = "keep the folder as evidence and open a new one";
        throw new AuditError(
          "AUDIT_DAMAGED",
          `${ANCHORS_FILE} line ${anchor.line} is not an anchor: ${advice}`,
        );
      }
      last = { file: "present", head: anchor.head, endByte: anchor.endByte };
    }
  } catch (cause) {
    if (codeOf(cause) !== "ENOENT") throw cause;
    return { file: "missing", head: null, endByte: 0 };
  }
  return last;
}

/** Appends anchors. A failed write is cut off again before the next one. */
export class AnchorFile {
  readonly #file: AuditFile;
  #offset: number;
  #last: AuditHead | null;

  private constructor(file: AuditFile, last: LastAnchor) {
    this.#file = file;
    this.#offset = last.endByte;
    this.#last = last.head;
  }

  static async open(disk: AuditDisk, folder: string, last: LastAnchor): Promise<AnchorFile> {
    const file = await disk.open(join(folder, ANCHORS_FILE));
    try {
      await disk.syncFolder(folder);
    } catch (cause) {
      await file.close().catch(() => undefined);
      throw cause;
    }
    return new AnchorFile(file, last);
  }

  /** How many entries up to this head no anchor covers yet. */
  uncovered(head: AuditHead): number {
    return head.sequence - (this.#last?.sequence ?? 0);
  }

  async write(head: AuditHead): Promise<void> {
    if (this.uncovered(head) === 0) return;
    const data = Buffer.from(`{"sequence":${head.sequence},"hash":"${head.hash}"}\n`);
    // Whatever lies behind the last good anchor is the rest of a failed write or of a crash.
    if ((await this.#file.size()) > this.#offset) await this.#file.truncate(this.#offset);
    await this.#file.write(data, this.#offset);
    await this.#file.sync();
    this.#offset += data.length;
    this.#last = head;
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}
