/**
 * Finds the end of a trail that is opened again, and repairs exactly one kind of damage: a last line
 * without its line feed, which a crash in mid-write leaves. That is cut off and reported. Anything else
 * (a bad line in the middle, an anchor above the last entry) no crash can have made: the trail refuses to
 * open rather than write over evidence.
 *
 * Only the last segment and the joint before it are checked here, so opening stays quick whatever the
 * trail's length; `verifyAudit` checks all of it.
 */
import type { LastAnchor } from "./anchors.ts";
import { readLastAnchor } from "./anchors.ts";
import type { ChainStart } from "./chain-checker.ts";
import { ChainCheck } from "./chain-checker.ts";
import type { AuditDisk } from "./disk.ts";
import type { AuditHead } from "./entry.ts";
import { MAX_LINE_BYTES } from "./entry.ts";
import { AuditError } from "./error.ts";
import type { Segment } from "./folder.ts";
import { ANCHORS_FILE, listSegments } from "./folder.ts";
import { genesis, readFrame } from "./hash-chain.ts";
import { type AuditReader, realReader } from "./line-reader.ts";

/** The incomplete last line that was cut off. */
export interface RecoveredTail {
  readonly file: string;
  readonly cutBytes: number;
  /** The last entry before the cut. */
  readonly afterSequence: number;
}

/** Where writing goes on. */
export interface TrailEnd {
  readonly head: AuditHead;
  /** The open segment and its length; null when the next entry begins a new one. */
  readonly segment: { readonly firstSequence: number; readonly bytes: number } | null;
  readonly lastAnchor: LastAnchor;
  readonly recovered: RecoveredTail | null;
}

const LINE_FEED = 0x0a;

export async function recoverTrail(
  disk: AuditDisk,
  folder: string,
  trailId: string,
  reader: AuditReader = realReader,
): Promise<TrailEnd> {
  const segments = await listSegments(folder, reader);
  const lastAnchor = await readLastAnchor(reader, folder);
  const last = segments.at(-1);
  if (last === undefined) {
    const head = genesis(trailId);
    refuseTruncation(lastAnchor.head, head);
    return { head, segment: null, lastAnchor, recovered: null };
  }
  if (lastAnchor.file === "missing")
    throw damaged(`${ANCHORS_FILE} is missing, so nothing tells whether it is complete`);
  const start = await startOf(reader, last, segments.at(-2), trailId, lastAnchor.head);
  const walk = await walkSegment(reader, last, start, lastAnchor.head);
  refuseTruncation(lastAnchor.head, walk.head);
  await settleTail(disk, folder, last, walk);
  const recovered =
    walk.tornBytes > 0
      ? { file: last.file, cutBytes: walk.tornBytes, afterSequence: walk.head.sequence }
      : null;
  const segment = { firstSequence: last.firstSequence, bytes: walk.goodBytes };
  return { head: walk.head, segment, lastAnchor, recovered };
}

/** The head before the last segment: from the segment before it, or from the anchor made between them. */
async function startOf(
  reader: AuditReader,
  last: Segment,
  before: Segment | undefined,
  trailId: string,
  anchor: AuditHead | null,
): Promise<ChainStart> {
  const sequence = last.firstSequence - 1;
  if (sequence === 0) return genesis(trailId);
  if (before !== undefined) {
    const frame = readFrame(await readLastLine(reader, before));
    if (frame?.intact === true && frame.sequence === sequence) return frame;
    throw damaged(`${before.file} does not end with entry ${sequence}, after which ${last.file} begins`);
  }
  // The older segments were archived elsewhere. An anchor is written whenever a segment ends.
  return { sequence, hash: anchor?.sequence === sequence ? anchor.hash : null };
}

interface Walk {
  readonly head: AuditHead;
  readonly goodBytes: number;
  readonly tornBytes: number;
}

async function walkSegment(
  reader: AuditReader,
  segment: Segment,
  start: ChainStart,
  anchor: AuditHead | null,
): Promise<Walk> {
  const check = new ChainCheck(start);
  let goodBytes = 0;
  let tornBytes = 0;
  let lineNumber = 0;
  for await (const batch of reader.lines(segment.path)) {
    tornBytes = batch.tornBytes;
    for (const line of batch.lines) {
      lineNumber += 1;
      const finding = check.check(line);
      if (finding !== null) throw damaged(`${segment.file} line ${lineNumber}: ${finding.message}`);
      if (check.sequence === anchor?.sequence && check.hash !== anchor.hash) {
        throw damaged(
          `entry ${check.sequence} has another hash than ${ANCHORS_FILE} remembers: it was rewritten`,
        );
      }
      goodBytes += line.length + 1;
    }
  }
  if (check.hash === null)
    throw damaged(`nothing tells the hash of entry ${start.sequence}, before ${segment.file}`);
  return { head: { sequence: check.sequence, hash: check.hash }, goodBytes, tornBytes };
}

function refuseTruncation(anchor: AuditHead | null, head: AuditHead): void {
  if (anchor === null || anchor.sequence <= head.sequence) return;
  const known = `${ANCHORS_FILE} knows of entry ${anchor.sequence}`;
  throw damaged(`the trail ends with entry ${head.sequence}, but ${known}: later entries were cut off`);
}

async function readLastLine(reader: AuditReader, segment: Segment): Promise<Buffer> {
  const tail = await reader.lastBytes(segment.path, MAX_LINE_BYTES + 1);
  if (tail.at(-1) !== LINE_FEED) return Buffer.alloc(0);
  return tail.subarray(tail.lastIndexOf(LINE_FEED, -2) + 1, -1);
}

/**
 * A process that was killed may have left lines that the system has and the device does not. From here on they count as
 * durable, and the next segment may begin behind them, so they are synced first.
 */
async function settleTail(disk: AuditDisk, folder: string, last: Segment, walk: Walk): Promise<void> {
  const file = await disk.open(last.path);
  try {
    if (walk.tornBytes > 0) await file.truncate(walk.goodBytes);
    await file.sync();
  } finally {
    await file.close();
  }
  await disk.syncFolder(folder);
}

function damaged(what: string): AuditError {
  const advice =
    "No crash does this. Keep the folder as evidence, verify it, and open the trail in a new folder.";
  return new AuditError("AUDIT_DAMAGED", `the audit trail is damaged: ${what}. ${advice}`);
}
