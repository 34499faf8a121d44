/**
 * Writes the chain into segments. The journal knows two ends: `written` (handed to the system) and
 * `durable` (on the device). Every failure takes it back to the durable end: the file is cut there before
 * anything else is written, so a half-written line never stays in the middle of a segment, and an entry
 * that was refused to its caller does not come back behind a later one.
 *
 * After a failed sync the system may have forgotten what it was given, so nothing since the last good sync
 * is trusted: the file is opened anew and the entries are written again, or refused, by the queue above.
 */

import type { AuditDisk, AuditFile } from "./disk.ts";
import type { AuditHead } from "./entry.ts";
import { AuditError } from "./error.ts";
import type { Segment } from "./folder.ts";
import { segmentAt } from "./folder.ts";
import { seal } from "./hash-chain.ts";
import type { TrailEnd } from "./recovery.ts";

interface End {
  readonly head: AuditHead;
  /** Bytes in the current segment. */
  readonly offset: number;
}

export interface JournalOptions {
  readonly disk: AuditDisk;
  readonly folder: string;
  readonly segmentBytes: number;
}

export class Journal {
  readonly #disk: AuditDisk;
  readonly #folder: string;
  readonly #segmentBytes: number;
  #segment: Segment | null;
  #file: AuditFile | null = null;
  #durable: End;
  #written: End;
  /** A write or sync failed: what lies behind the durable end is our own rest and may be cut off. */
  #uncertain = false;
  /** Someone else touched the segment: nothing is written any more, above all nothing is cut off. */
  #intruded: AuditError | null = null;

  constructor(options: JournalOptions, end: TrailEnd) {
    this.#disk = options.disk;
    this.#folder = options.folder;
    this.#segmentBytes = options.segmentBytes;
    this.#segment = end.segment === null ? null : segmentAt(options.folder, end.segment.firstSequence);
    this.#durable = { head: end.head, offset: end.segment?.bytes ?? 0 };
    this.#written = this.#durable;
    if (this.segmentFull) this.#segment = null;
  }

  get durableHead(): AuditHead {
    return this.#durable.head;
  }

  /** The segment has its size: the next commit ends it. */
  get segmentFull(): boolean {
    return this.#segment !== null && this.#written.offset >= this.#segmentBytes;
  }

  /** Writes as many of the encoded events as the segment takes, at least one, and says how many. */
  async write(events: readonly string[]): Promise<number> {
    const file = this.#file ?? (await this.#reopen());
    await this.#refuseIntruder(file);
    const { offset } = this.#written;
    const { data, head, count } = this.#sealed(events);
    await file.write(data, offset);
    this.#written = { head, offset: offset + data.length };
    return count;
  }

  #sealed(events: readonly string[]): {
    readonly data: Buffer;
    readonly head: AuditHead;
    readonly count: number;
  } {
    let { head } = this.#written;
    const room = this.#segmentBytes - this.#written.offset;
    const lines: string[] = [];
    let bytes = 0;
    for (const event of events) {
      if (lines.length > 0 && bytes >= room) break;
      const { line, hash } = seal(event, head);
      head = { sequence: head.sequence + 1, hash };
      lines.push(line);
      bytes += Buffer.byteLength(line) + 1;
    }
    return { data: Buffer.from(`${lines.join("\n")}\n`), head, count: lines.length };
  }

  /** Makes durable what was written, and ends the segment if it has its size. */
  async commit(): Promise<"segment kept" | "segment ended"> {
    if (this.#file === null) return "segment kept";
    await this.#file.sync();
    this.#durable = this.#written;
    if (!this.segmentFull) return "segment kept";
    const finished = this.#file;
    this.#file = null;
    this.#segment = null;
    // Its content is safe already, so a complaint on closing changes nothing.
    await finished.close().catch(() => undefined);
    return "segment ended";
  }

  /** After a failed write or commit: forgets what is not durable and cuts it off. */
  async rollBack(): Promise<void> {
    this.#written = this.#durable;
    this.#uncertain = true;
    const broken = this.#file;
    this.#file = null;
    await broken?.close().catch(() => undefined);
    // If the disk does not even take this now, the next write does it first.
    if (this.#segment !== null) this.#file = await this.#openSegment(this.#segment).catch(() => null);
  }

  async close(): Promise<void> {
    const file = this.#file;
    this.#file = null;
    await file?.close();
  }

  async #reopen(): Promise<AuditFile> {
    if (this.#segment === null) {
      this.#segment = segmentAt(this.#folder, this.#durable.head.sequence + 1);
      this.#durable = { head: this.#durable.head, offset: 0 };
      this.#written = this.#durable;
      this.#uncertain = false;
    }
    this.#file = await this.#openSegment(this.#segment);
    return this.#file;
  }

  /** Opens it, and cuts off at the durable end what a failure of ours left there. */
  async #openSegment(segment: Segment): Promise<AuditFile> {
    if (this.#intruded !== null) throw this.#intruded;
    const file = await this.#disk.open(segment.path);
    try {
      if (this.#uncertain && (await file.size()) > this.#durable.offset) {
        await file.truncate(this.#durable.offset);
        await file.sync();
      }
      await this.#refuseIntruder(file);
      if (this.#durable.offset === 0) await this.#disk.syncFolder(this.#folder);
      this.#uncertain = false;
      return file;
    } catch (cause) {
      await file.close().catch(() => undefined);
      throw cause;
    }
  }

  /** The lock keeps honest processes apart; this notices the others before mixing with them. */
  async #refuseIntruder(file: AuditFile): Promise<void> {
    const size = await file.size();
    if (size === this.#written.offset) return;
    const found = `has ${size} bytes where this process left ${this.#written.offset}`;
    const advice = "Something else changes it; stop that, keep the folder as evidence, and open a new one.";
    this.#intruded = new AuditError("AUDIT_DAMAGED", `${this.#segment?.file} ${found}. ${advice}`);
    throw this.#intruded;
  }
}
