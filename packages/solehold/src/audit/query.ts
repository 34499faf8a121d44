/**
 * Reads entries back from a folder, in constant memory, while it may still be written. Reading does not
 * verify: it stops with an error at a line that is not an entry, but it believes what the lines say. Whoever
 * needs proof runs `verifyAudit` first. An incomplete last line is the writer in mid-write, and is left out.
 */

import type { AuditFilter, AuditQuery } from "./audit-trail.ts";
import { linePatterns, matches, queryLimit } from "./audit-trail.ts";
import type { AuditEntry } from "./entry.ts";
import { AuditError, describeCause } from "./error.ts";
import type { Segment } from "./folder.ts";
import { listSegments } from "./folder.ts";
import { type AuditReader, realReader } from "./line-reader.ts";

/** Every matching entry, oldest first. */
export async function* exportAudit(folder: string, filter: AuditFilter = {}): AsyncGenerator<AuditEntry> {
  for (const segment of await segmentsAfter(folder, filter.afterSequence ?? 0)) {
    for await (const entries of scanSegment(segment, filter, realReader)) yield* entries;
  }
}

/** Entries above `throughSequence` are not looked at. */
export async function queryFolder(
  folder: string,
  query: AuditQuery,
  throughSequence: number,
  reader: AuditReader,
): Promise<readonly AuditEntry[]> {
  const limit = queryLimit(query);
  const segments = await segmentsAfter(folder, query.afterSequence ?? 0, reader);
  const scan = (segment: Segment): Scan => scanSegment(segment, query, reader);
  const safe = (entry: AuditEntry): boolean => entry.sequence <= throughSequence;
  return query.order === "newest-first"
    ? newestFirst(segments, scan, limit, safe)
    : oldestFirst(segments, scan, limit, safe);
}

type Accept = (entry: AuditEntry) => boolean;
type Scan = AsyncIterable<readonly AuditEntry[]>;
type ScanSegment = (segment: Segment) => Scan;

async function oldestFirst(segments: readonly Segment[], scan: ScanSegment, limit: number, accept: Accept) {
  const found: AuditEntry[] = [];
  for (const segment of segments) {
    for await (const entries of scan(segment)) {
      found.push(...entries.filter(accept));
      if (found.length >= limit) return found.slice(0, limit);
    }
  }
  return found;
}

/** Segments from the last to the first; of each, only the last matches that are still wanted are kept. */
async function newestFirst(segments: readonly Segment[], scan: ScanSegment, limit: number, accept: Accept) {
  const found: AuditEntry[] = [];
  for (const segment of segments.toReversed()) {
    let last: AuditEntry[] = [];
    for await (const entries of scan(segment)) {
      last = [...last, ...entries.filter(accept)].slice(-(limit - found.length));
    }
    found.push(...last.reverse());
    if (found.length >= limit) break;
  }
  return found;
}

/** A segment ends where the next begins, so those that end before the wanted entries are passed over. */
async function segmentsAfter(
  folder: string,
  afterSequence: number,
  reader: AuditReader = realReader,
): Promise<readonly Segment[]> {
  const segments = await listSegments(folder, reader);
  return segments.filter(
    (_, index) => (segments[index + 1]?.firstSequence ?? Number.POSITIVE_INFINITY) > afterSequence + 1,
  );
}

async function* scanSegment(
  segment: Segment,
  filter: AuditFilter,
  reader: AuditReader,
): AsyncGenerator<readonly AuditEntry[]> {
  const patterns = linePatterns(filter);
  let lineNumber = 0;
  try {
    for await (const batch of reader.lines(segment.path)) {
      const entries: AuditEntry[] = [];
      for (const line of batch.lines) {
        lineNumber += 1;
        if (!patterns.every((pattern) => line.includes(pattern))) continue;
        const entry = parse(line, segment, lineNumber);
        if (matches(entry, filter)) entries.push(entry);
      }
      yield entries;
    }
  } catch (cause) {
    if (cause instanceof AuditError) throw cause;
    throw new AuditError("AUDIT_READ_FAILED", `cannot read ${segment.path}: ${describeCause(cause)}`, cause);
  }
}

function parse(line: Buffer, segment: Segment, lineNumber: number): AuditEntry {
  try {
    const entry = JSON.parse(line.toString("utf8")) as AuditEntry;
    if (Number.isSafeInteger(entry.sequence)) return entry;
  } catch {
    // Falls through to the same complaint.
  }
  const advice = "verify the trail to learn what happened to it";
  throw new AuditError(
    "AUDIT_DAMAGED",
    `${segment.path} line ${lineNumber} is not an audit entry: ${advice}`,
  );
}
