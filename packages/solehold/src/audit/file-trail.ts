/**
 * The durable trail: JSON lines in segments, chained, one writer at a time.
 *
 * "before-reply": `append` resolves once the entry is on the device, together with all others of its round;
 * what was acknowledged survives kill -9 and loss of power. "background": `append` returns at once; a crash
 * of the process loses what had not reached the system yet, a loss of power up to about 1,000 entries more.
 * In both, a failing disk never damages the trail, and a reopened trail goes on where it ended.
 *
 * When the disk fails for so long in the background that `maxPending` events wait, further ones are counted
 * and dropped; the trail then says so itself with an "audit-gap" entry as soon as it can.
 */

import { AnchorFile } from "./anchors.ts";
import type { AuditQuery, AuditTrail, InvalidEvents } from "./audit-trail.ts";
import { acceptEvent } from "./audit-trail.ts";
import type { AuditEntry, AuditEvent, AuditHead } from "./entry.ts";
import { AuditError, describeCause } from "./error.ts";
import { createFolder, listSegments, readTrailId, TRAIL_FILE, writeTrailId } from "./folder.ts";
import type { AuditDurability } from "./group-commit.ts";
import { CommitQueue } from "./group-commit.ts";
import { encodeEvent } from "./hash-chain.ts";
import { type AuditReader, realReader } from "./line-reader.ts";
import { lockFolder, type WriterLock } from "./lock.ts";
import type { CheckedOptions, FileAuditOptions } from "./options.ts";
import { checkOptions } from "./options.ts";
import { queryFolder } from "./query.ts";
import type { RecoveredTail } from "./recovery.ts";
import { recoverTrail } from "./recovery.ts";
import { Journal } from "./segment-writer.ts";
import { checkAuditEvent } from "./validate.ts";

/** A folder that is there, has its trail's id, and that nobody else writes to. */
export interface TrailPlace {
  readonly trailId: string;
  readonly lock: WriterLock;
  readonly reader: AuditReader;
}

interface Parts extends TrailPlace {
  readonly folder: string;
  readonly durability: AuditDurability;
  readonly invalidEvents: InvalidEvents;
  readonly maxPending: number;
  readonly journal: Journal;
  readonly anchors: AnchorFile;
  readonly queue: CommitQueue;
  readonly recovered: RecoveredTail | null;
}

export class FileAuditTrail implements AuditTrail {
  readonly #parts: Parts;
  #dropped = 0;
  /** Dropped events that no "audit-gap" entry speaks of yet. */
  #gap: Gap | null = null;
  #closing: Promise<void> | null = null;

  private constructor(parts: Parts) {
    this.#parts = parts;
  }

  static async open(options: FileAuditOptions): Promise<FileAuditTrail> {
    const checked = checkOptions(options);
    await createFolder(checked.folder);
    const lock = await lockFolder(checked.folder, checked.env);
    try {
      const trailId = await settleTrailId(checked);
      return await FileAuditTrail.openAt(checked, { trailId, lock, reader: realReader });
    } catch (cause) {
      await lock.release().catch(() => undefined);
      throw cause;
    }
  }

  /** Opens a trail whose folder is ready, on any disk; `open` makes the folder ready on a real one. */
  static async openAt(options: FileAuditOptions, place: TrailPlace): Promise<FileAuditTrail> {
    return new FileAuditTrail(await assemble(checkOptions(options), place));
  }

  get trailId(): string {
    return this.#parts.trailId;
  }

  /** What a crash had left incomplete and opening cut off; null after a clean end. */
  get recovered(): RecoveredTail | null {
    return this.#parts.recovered;
  }

  /** Events accepted and not yet in the files, on the device. */
  get lag(): number {
    return this.#parts.queue.lag;
  }

  /** Why the disk refused last; null when the last round went well. */
  get lastError(): AuditError | null {
    return this.#parts.queue.lastError;
  }

  /** Events lost in the background because too many waited. */
  get dropped(): number {
    return this.#dropped;
  }

  append(event: AuditEvent): void | Promise<void> {
    if (this.#parts.durability === "background") return this.#appendInBackground(event);
    return observed(this.#appendBeforeReply(event));
  }

  async flush(): Promise<void> {
    this.#reportGap();
    await this.#parts.queue.flush();
  }

  head(): AuditHead {
    return this.#parts.journal.durableHead;
  }

  /** Sees everything appended before, unless the disk refuses it. */
  async query(query: AuditQuery = {}): Promise<readonly AuditEntry[]> {
    await this.#parts.queue.flush().catch(() => undefined);
    const { folder, reader } = this.#parts;
    return queryFolder(folder, query, this.head().sequence, reader);
  }

  /** Rejects when entries could not be saved; the folder is unlocked in any case. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  #accept(event: AuditEvent): string {
    if (this.#closing === null) return encodeEvent(acceptEvent(event, this.#parts.invalidEvents));
    throw new AuditError("AUDIT_CLOSED", "the audit trail is closed: append before close");
  }

  async #appendBeforeReply(event: AuditEvent): Promise<void> {
    const encoded = this.#accept(event);
    if (this.lag >= this.#parts.maxPending) throw overloaded(this.#parts.maxPending);
    await this.#parts.queue.commit(encoded);
  }

  #appendInBackground(event: AuditEvent): void {
    const encoded = this.#accept(event);
    // A gap entry takes a place of its own, so there must be room for two.
    if (this.lag + 1 >= this.#parts.maxPending) {
      this.#gap = {
        events: (this.#gap?.events ?? 0) + 1,
        at: acceptEvent(event, this.#parts.invalidEvents).at,
      };
      this.#dropped += 1;
      this.#parts.queue.retry();
      return;
    }
    this.#reportGap();
    this.#parts.queue.push(encoded);
  }

  /** The trail owns up to what it lost, in the place where it is missing. */
  #reportGap(): void {
    if (this.#gap === null) return;
    this.#parts.queue.push(encodeEvent(gapEvent(this.#gap)));
    this.#gap = null;
  }

  async #close(): Promise<void> {
    const { queue, anchors, journal, lock } = this.#parts;
    const failures: unknown[] = [];
    const attempt = (step: Promise<void>): Promise<void> =>
      step.catch((cause: unknown) => void failures.push(cause));
    await attempt(this.flush());
    await queue.idle();
    const unsaved = queue.lag;
    await attempt(anchors.write(journal.durableHead));
    await attempt(journal.close());
    await attempt(anchors.close());
    await attempt(lock.release());
    if (failures.length === 0) return;
    const lost = `${unsaved} entries could not be saved: ${describeCause(failures[0])}`;
    throw new AuditError(
      "AUDIT_WRITE_FAILED",
      `the audit trail was closed with a failure; ${lost}`,
      failures[0],
    );
  }
}

/** A caller that does not look at the result must not take the process down with it. */
function observed(done: Promise<void>): Promise<void> {
  done.catch(ignore);
  return done;
}

function ignore(): void {}

interface Gap {
  readonly events: number;
  /** When the last of them happened. */
  readonly at: number;
}

function gapEvent(gap: Gap): AuditEvent {
  return checkAuditEvent({
    at: gap.at,
    tenant: "",
    key: "",
    leaseId: "",
    action: "audit-gap",
    allowed: false,
    reason: "AUDIT_EVENTS_DROPPED",
    reasonCode: 0,
    traceId: "",
    outcome: "none",
    detail: { dropped: gap.events },
  });
}

function overloaded(maxPending: number): AuditError {
  const fix = "the disk is too slow or stuck; retry later, or raise maxPending";
  return new AuditError("AUDIT_OVERLOADED", `${maxPending} audit entries already wait for the disk: ${fix}`);
}

async function assemble(options: CheckedOptions, place: TrailPlace): Promise<Parts> {
  const { folder, disk, durability, invalidEvents, maxPending } = options;
  const end = await recoverTrail(disk, folder, place.trailId, place.reader);
  const anchors = await AnchorFile.open(disk, folder, end.lastAnchor);
  const journal = new Journal(options, end);
  const queue = new CommitQueue({ ...options, journal, anchors });
  const { recovered } = end;
  return { ...place, folder, durability, invalidEvents, maxPending, journal, anchors, queue, recovered };
}

async function settleTrailId({ folder, trailId, env }: CheckedOptions): Promise<string> {
  const existing = await readTrailId(folder);
  if (existing !== null) {
    if (trailId === undefined || trailId === existing) return existing;
    const fix = "use another folder, or leave trailId out";
    throw new AuditError(
      "AUDIT_OPTION_INVALID",
      `trailId: ${folder} holds the trail ${existing}; got ${trailId}; ${fix}`,
    );
  }
  if ((await listSegments(folder)).length > 0) {
    throw new AuditError(
      "AUDIT_DAMAGED",
      `${folder} has audit segments but no ${TRAIL_FILE}: restore it from a copy`,
    );
  }
  const chosen = trailId ?? Buffer.from(env.randomBytes(16)).toString("hex");
  await writeTrailId(folder, chosen, env);
  return chosen;
}
