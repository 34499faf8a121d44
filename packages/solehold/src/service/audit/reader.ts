/**
 * What a trail reads of its folder, behind an interface as its writing is (disk.ts), so that a crash and what it
 * leaves can be played without a disk. It says what is there, and judges nothing.
 */
import { open, readdir, stat } from "node:fs/promises";
import { type LineBatch, readLines } from "./lines.ts";

export interface AuditReader {
  /** The names of the files in a folder, in any order. */
  names(folder: string): Promise<readonly string[]>;
  /** The first `throughByte` bytes of a file, or all of it, by lines. Fails with ENOENT when it is absent. */
  lines(path: string, throughByte?: number): AsyncIterable<LineBatch>;
  /** The last `mostBytes` bytes of a file, or all of it if it is shorter. */
  lastBytes(path: string, mostBytes: number): Promise<Buffer>;
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
