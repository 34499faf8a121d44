/**
 * What a trail reads of its folder, behind an interface as its writing is (disk.ts), so that a crash and what it
 * leaves can be played without a disk. It says what is there, and judges nothing.
 *
 * Files are read line by line in constant memory, however long the file or a line in it is. Lines come in batches
 * because one promise per line would cost more than checking the line. A last line without its line feed is never
 * handed out as a line: its length is reported instead.
 */
import type { FileHandle } from "node:fs/promises";
import { open, readdir, stat } from "node:fs/promises";
import { MAX_LINE_BYTES } from "./entry.ts";

export interface AuditReader {
  /** The names of the files in a folder, in any order. */
  names(folder: string): Promise<readonly string[]>;
  /** The first `throughByte` bytes of a file, or all of it, by lines. Fails with ENOENT when it is absent. */
  lines(path: string, throughByte?: number): AsyncIterable<LineBatch>;
  /** The last `mostBytes` bytes of a file, or all of it if it is shorter. */
  lastBytes(path: string, mostBytes: number): Promise<Buffer>;
}

export interface LineBatch {
  /** Without their line feeds. Lines above the limit come cut, still above it, so no reader accepts them. */
  readonly lines: readonly Buffer[];
  /** Bytes after the last line feed of the file. Only ever above 0 in the last batch. */
  readonly tornBytes: number;
}

const CHUNK_BYTES = 256 * 1024;
const KEPT_BYTES = MAX_LINE_BYTES + 1;
const LINE_FEED = 0x0a;

/** The first `throughByte` bytes of the file, or all of it. */
export async function* readLines(
  path: string,
  throughByte = Number.MAX_SAFE_INTEGER,
): AsyncGenerator<LineBatch> {
  const handle = await open(path, "r");
  try {
    let rest: Buffer = Buffer.alloc(0);
    let restBytes = 0;
    for await (const chunk of readChunks(handle, throughByte)) {
      const lines: Buffer[] = [];
      let start = 0;
      for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
        lines.push(restBytes === 0 ? chunk.subarray(start, end) : grow(rest, chunk.subarray(start, end)));
        rest = Buffer.alloc(0);
        restBytes = 0;
        start = end + 1;
      }
      restBytes += chunk.length - start;
      rest = grow(rest, chunk.subarray(start));
      yield { lines, tornBytes: 0 };
    }
    if (restBytes > 0) yield { lines: [], tornBytes: restBytes };
  } finally {
    await handle.close();
  }
}

async function* readChunks(handle: FileHandle, throughByte: number): AsyncGenerator<Buffer> {
  for (let position = 0; position < throughByte; ) {
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, throughByte - position));
    const { bytesRead } = await handle.read(chunk, 0, chunk.length, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield chunk.subarray(0, bytesRead);
  }
}

function grow(rest: Buffer, more: Buffer): Buffer {
  const room = KEPT_BYTES - rest.length;
  return room <= 0 ? rest : Buffer.concat([rest, more.subarray(0, room)]);
}

async function lastBytes(path: string, mostBytes: number): Promise<Buffer> {
  const { size } = await stat(path);
  const start = Math.max(0, size - mostBytes);
  const bytes = Buffer.alloc(size - start);
  const handle = await open(path, "r");
  try {
    await handle.read(bytes, 0, bytes.length, start);
  } finally {
    await handle.close();
  }
  return bytes;
}

export const realReader: AuditReader = { names: (folder) => readdir(folder), lines: readLines, lastBytes };
