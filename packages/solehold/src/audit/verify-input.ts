/**
 * What a verification reads: the segments of a folder in order, or loose lines from anywhere, as batches
 * that know where each line lies.
 */

import { stat } from "node:fs/promises";
import { join } from "node:path";
import { codeOf } from "../support/files.ts";
import type { AnchorLine } from "./anchors.ts";
import { readAnchors } from "./anchors.ts";
import { ANCHORS_FILE, listSegments } from "./folder.ts";
import { readLines } from "./line-reader.ts";

export interface SourceBatch {
  readonly file: string;
  /** The number of the first line, counted from 1. */
  readonly firstLine: number;
  readonly lines: readonly Buffer[];
  /** Bytes of an incomplete line after them. */
  readonly tornBytes: number;
  /** The sequence that a segment's name promises, in the first batch of that segment only. */
  readonly promised: number | null;
  readonly isLastFile: "yes" | "no";
}

/** A line may come with or without its line feed; CR or spaces around it count as changes. */
export type AuditLines = AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>;

const LOOSE_LINES = "lines";
const LINE_FEED = 0x0a;

export async function* looseLines(lines: AuditLines): AsyncGenerator<SourceBatch> {
  let firstLine = 0;
  for await (const line of lines) {
    firstLine += 1;
    const bytes =
      typeof line === "string" ? Buffer.from(line) : Buffer.from(line.buffer, line.byteOffset, line.length);
    const bare = bytes.at(-1) === LINE_FEED ? bytes.subarray(0, -1) : bytes;
    yield { file: LOOSE_LINES, firstLine, lines: [bare], tornBytes: 0, promised: null, isLastFile: "yes" };
  }
}

/** At least one batch per segment, so that an empty one is noticed too. */
export async function* folderLines(folder: string): AsyncGenerator<SourceBatch> {
  const segments = await listSegments(folder);
  for (const [index, segment] of segments.entries()) {
    const isLastFile = index === segments.length - 1 ? "yes" : "no";
    const { file } = segment;
    yield { file, firstLine: 1, lines: [], tornBytes: 0, promised: segment.firstSequence, isLastFile };
    let firstLine = 1;
    for await (const { lines, tornBytes } of readLines(segment.path)) {
      yield { file, firstLine, lines, tornBytes, promised: null, isLastFile };
      firstLine += lines.length;
    }
  }
}

/**
 * The anchors that exist at this moment; null when the file is gone. To be taken before the segments are
 * listed: a writer that goes on meanwhile then only adds entries above them.
 */
export async function anchorsNow(folder: string): Promise<AsyncIterator<AnchorLine> | null> {
  try {
    const { size } = await stat(join(folder, ANCHORS_FILE));
    return readAnchors(folder, size);
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") return null;
    throw cause;
  }
}
