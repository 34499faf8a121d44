/**
 * The layout of LMDB's data file as lmdb 3 writes it on 64-bit little-endian machines: pages with a header
 * of 24 bytes; pages 0 and 1 describe the two latest snapshots, each by the roots of two trees.
 *
 * LMDB maps the file into memory and trusts it, so a cut or overwritten file ends the process with a
 * signal instead of an error. Therefore the file is read here first, with plain reads.
 */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { endianness } from "node:os";

export const PAGE_HEADER_BYTES = 24;
export const BRANCH_PAGE = 0x01;
export const LEAF_PAGE = 0x02;
export const OVERFLOW_PAGE = 0x04;
const META_PAGE = 0x08;
const MAGIC = 0xbeefc0de;
const DATA_VERSION = 2;
const META_BYTES = 176;
const PAGE_SIZES: readonly number[] = [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];
/** An empty tree has the largest page number as its root. */
const NO_PAGE = 2 ** 63;
const SMALL_PLATFORMS: readonly string[] = ["arm", "ia32", "mips", "mipsel", "ppc", "s390"];

export interface TreeRoot {
  readonly flags: number;
  readonly depth: number;
  readonly branchPages: number;
  readonly leafPages: number;
  readonly overflowPages: number;
  readonly entries: number;
  /** Null when the tree is empty. */
  readonly page: number | null;
}

export interface Snapshot {
  readonly pageSize: number;
  readonly lastPage: number;
  readonly transaction: number;
  readonly free: TreeRoot;
  readonly main: TreeRoot;
}

/** Something in the file that LMDB could never have written. */
export class DamagedFile extends Error {
  override readonly name = "DamagedFile";
}

export function isLayoutKnown(): boolean {
  return endianness() === "LE" && !SMALL_PLATFORMS.includes(process.arch);
}

/** Up to 2^53 exactly; larger ones are no page number, size or count of any real file. */
export function u64(bytes: Buffer, offset: number): number {
  return bytes.readUInt32LE(offset) + bytes.readUInt32LE(offset + 4) * 2 ** 32;
}

export function treeRootAt(bytes: Buffer, offset: number): TreeRoot {
  const page = u64(bytes, offset + 40);
  return {
    flags: bytes.readUInt16LE(offset + 4),
    depth: bytes.readUInt16LE(offset + 6),
    branchPages: u64(bytes, offset + 8),
    leafPages: u64(bytes, offset + 16),
    overflowPages: u64(bytes, offset + 24),
    entries: u64(bytes, offset + 32),
    page: page >= NO_PAGE ? null : page,
  };
}

export class DataFile {
  readonly #descriptor: number;
  readonly bytes: number;

  constructor(path: string) {
    this.#descriptor = openSync(path, "r");
    this.bytes = fstatSync(this.#descriptor).size;
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  read(offset: number, length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length);
    const count = readSync(this.#descriptor, bytes, 0, length, offset);
    if (count < length) throw new DamagedFile(`it ends at byte ${offset + count}, where more must be`);
    return bytes;
  }

  /** The latest snapshot. Both descriptions must be sound: LMDB falls back from one to the other. */
  snapshot(): Snapshot {
    const first = this.#snapshotAt(0);
    const second = this.#snapshotAt(first.pageSize);
    if (second.pageSize !== first.pageSize) throw new DamagedFile("its two headers disagree");
    return second.transaction > first.transaction ? second : first;
  }

  #snapshotAt(offset: number): Snapshot {
    const bytes = this.read(offset, META_BYTES);
    if (bytes.readUInt16LE(18) !== META_PAGE || bytes.readUInt32LE(24) !== MAGIC)
      throw new DamagedFile("it does not begin as an LMDB file does");
    const version = bytes.readUInt32LE(28);
    if (version !== DATA_VERSION)
      throw new DamagedFile(`its format is version ${version}, and lmdb 3 writes version ${DATA_VERSION}`);
    const pageSize = bytes.readUInt32LE(48);
    if (!PAGE_SIZES.includes(pageSize)) throw new DamagedFile(`its page size is ${pageSize}`);
    return {
      pageSize,
      free: treeRootAt(bytes, 48),
      main: treeRootAt(bytes, 96),
      lastPage: u64(bytes, 144),
      transaction: u64(bytes, 152),
    };
  }
}

export function lastTransactionIn(path: string): number {
  const file = new DataFile(path);
  try {
    return file.snapshot().transaction;
  } finally {
    file.close();
  }
}
