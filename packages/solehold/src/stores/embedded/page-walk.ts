/**
 * Walks the trees of one snapshot and throws DamagedFile at the first thing that LMDB could not have
 * written: a page outside of the file or reached twice, a node outside of its page, keys out of order,
 * counts that do not add up.
 *
 * "full" reads every page in use. "quick" leaves out the leaves of the records, which are nearly all of a
 * large file: it finds a file that was cut, and damage in the pages above them, but not inside a leaf.
 */
import {
  BRANCH_PAGE,
  DamagedFile,
  type DataFile,
  LEAF_PAGE,
  OVERFLOW_PAGE,
  PAGE_HEADER_BYTES,
  type Snapshot,
  type TreeRoot,
  treeRootAt,
  u64,
} from "./data-file.ts";

const NODE_HEADER_BYTES = 8;
const TREE_ROOT_BYTES = 48;
const OVERFLOW_REFERENCE_BYTES = 24;
const BIG_DATA = 0x01;
const SUB_TREE = 0x02;
const INTEGER_KEYS = 0x08;
const DUPLICATES = 0x04;
const MAX_DEPTH = 32;
const NUMBER_BYTES = 8;

export type WalkLevel = "quick" | "full";

/** For every record's key and value that a full walk meets. */
export type VisitRecord = (key: Buffer, value: Buffer) => void;

interface Node {
  readonly key: Buffer;
  readonly flags: number;
  /** Of the data in a leaf, of the page that is referred to in a branch. */
  readonly number: number;
  readonly data: Buffer;
}

interface Counts {
  branchPages: number;
  leafPages: number;
  overflowPages: number;
  entries: number;
}

export class PageWalk {
  readonly #file: DataFile;
  readonly #snapshot: Snapshot;
  readonly #level: WalkLevel;
  readonly #visitRecord: VisitRecord;
  readonly #reached: Uint8Array;

  constructor(file: DataFile, level: WalkLevel, visitRecord: VisitRecord) {
    this.#file = file;
    this.#snapshot = file.snapshot();
    this.#level = level;
    this.#visitRecord = visitRecord;
    const pages = Math.floor(file.bytes / this.#snapshot.pageSize);
    // The file may end before the last page number, when the last pages are free; never behind it.
    this.#reached = new Uint8Array(Math.min(pages, this.#snapshot.lastPage + 1)).fill(1, 0, 2);
  }

  /** Yields after every page, for the caller to take a rest; returns how many pages are in use. */
  *run(): Generator<void, number> {
    yield* this.#walkTree(this.#snapshot.free, "free pages");
    yield* this.#walkTree(this.#snapshot.main, "main");
    return this.#reached.reduce((count, reached) => count + reached, 0);
  }

  *#walkTree(tree: TreeRoot, name: string): Generator<void, void> {
    if (tree.depth > MAX_DEPTH || (tree.flags & DUPLICATES) !== 0)
      throw new DamagedFile(`the head of the tree '${name}' is damaged`);
    const counts: Counts = { branchPages: 0, leafPages: 0, overflowPages: 0, entries: 0 };
    const skipsLeaves = name === "records" && this.#level === "quick";
    const walk = { tree, name, skipsLeaves, counts };
    if (tree.page !== null) yield* this.#walkPage(tree.page, tree.depth, walk, EVERYWHERE);
    const sound =
      counts.branchPages === tree.branchPages &&
      counts.leafPages === tree.leafPages &&
      (skipsLeaves || (counts.entries === tree.entries && counts.overflowPages === tree.overflowPages));
    if (!sound) throw new DamagedFile(`the tree '${name}' does not have the size that its head says`);
  }

  *#walkPage(page: number, height: number, walk: Walk, range: KeyRange): Generator<void, void> {
    if (height === 1) {
      this.#reachLeaf(page, walk);
      if (!walk.skipsLeaves) yield* this.#walkLeaf(page, walk, range);
      return;
    }
    this.#reach(page);
    walk.counts.branchPages += 1;
    const nodes = nodesOf(this.#page(page, BRANCH_PAGE), page, "branch");
    // The first key of a branch is not used and may be anything.
    if (hasTextKeys(walk.tree)) assertOrder(nodes.slice(1), page, range);
    yield;
    for (const [index, { number, key }] of nodes.entries()) {
      const part = { from: index === 0 ? range.from : key, to: nodes[index + 1]?.key ?? range.to };
      if (height === 2 && walk.skipsLeaves) this.#reachLeaf(number, walk);
      else yield* this.#walkPage(number, height - 1, walk, part);
    }
  }

  *#walkLeaf(page: number, walk: Walk, range: KeyRange): Generator<void, void> {
    const nodes = nodesOf(this.#page(page, LEAF_PAGE), page, "leaf");
    if (hasTextKeys(walk.tree)) assertOrder(nodes, page, range);
    else assertNumbers(nodes, page);
    walk.counts.entries += nodes.length;
    yield;
    for (const node of nodes) {
      const value = (node.flags & BIG_DATA) === 0 ? node.data : this.#overflow(node, page, walk);
      if (walk.name === "records") this.#visitRecord(node.key, value);
      if ((node.flags & SUB_TREE) === 0) continue;
      if (walk.name !== "main" || value.length !== TREE_ROOT_BYTES) throw damagedPage(page);
      const [name = ""] = node.key.toString().split("\0", 1);
      yield* this.#walkTree(treeRootAt(value, 0), name);
    }
  }

  #reachLeaf(page: number, walk: Walk): void {
    this.#reach(page);
    walk.counts.leafPages += 1;
  }

  /** A value too large for a page lies on pages of its own, in a row. */
  #overflow(node: Node, page: number, walk: Walk): Buffer {
    const first = u64(node.data, 0);
    const count = u64(node.data, 16);
    const { pageSize } = this.#snapshot;
    if (count * pageSize < node.number || count > this.#reached.length) throw damagedPage(page);
    for (let index = 0; index < count; index += 1) this.#reach(first + index);
    walk.counts.overflowPages += count;
    if (this.#page(first, OVERFLOW_PAGE).readUInt32LE(20) !== count) throw damagedPage(first);
    return this.#file.read(first * pageSize + PAGE_HEADER_BYTES, node.number);
  }

  #reach(page: number): void {
    if (page >= this.#reached.length)
      throw new DamagedFile(`it is cut: page ${page} of ${this.#snapshot.lastPage + 1} is not in it`);
    if (this.#reached[page] !== 0) throw new DamagedFile(`page ${page} is used twice`);
    this.#reached[page] = 1;
  }

  #page(page: number, kind: number): Buffer {
    const { pageSize, transaction } = this.#snapshot;
    const bytes = this.#file.read(page * pageSize, pageSize);
    const sound = u64(bytes, 0) === page && u64(bytes, 8) <= transaction && bytes.readUInt16LE(18) === kind;
    if (!sound) throw damagedPage(page);
    return bytes;
  }
}

/** Where a page's keys lie, by the keys of the page above it: where else they would not be found. */
interface KeyRange {
  readonly from: Buffer | null;
  /** No longer in it. */
  readonly to: Buffer | null;
}

const EVERYWHERE: KeyRange = { from: null, to: null };

interface Walk {
  readonly tree: TreeRoot;
  readonly name: string;
  readonly skipsLeaves: boolean;
  readonly counts: Counts;
}

function damagedPage(page: number): DamagedFile {
  return new DamagedFile(`page ${page} is damaged`);
}

/** After the header come the nodes' offsets in order of key; the nodes themselves fill the page from its end. */
function nodesOf(bytes: Buffer, page: number, kind: "leaf" | "branch"): Node[] {
  const room = bytes.length - PAGE_HEADER_BYTES;
  const lower = bytes.readUInt16LE(20);
  const upper = bytes.readUInt16LE(22);
  if (lower > upper || upper > room || lower % 2 !== 0 || lower === 0) throw damagedPage(page);
  return Array.from({ length: lower / 2 }, (_, index) => {
    const offset = bytes.readUInt16LE(PAGE_HEADER_BYTES + index * 2);
    if (offset < upper || offset + NODE_HEADER_BYTES > room) throw damagedPage(page);
    return nodeAt(bytes, PAGE_HEADER_BYTES + offset, page, kind);
  });
}

function nodeAt(bytes: Buffer, start: number, page: number, kind: "leaf" | "branch"): Node {
  const low = bytes.readUInt32LE(start);
  const flags = bytes.readUInt16LE(start + 4);
  const keyStart = start + NODE_HEADER_BYTES;
  const keyEnd = keyStart + bytes.readUInt16LE(start + 6);
  const inPage = kind === "branch" ? 0 : (flags & BIG_DATA) === 0 ? low : OVERFLOW_REFERENCE_BYTES;
  const known = kind === "branch" || (flags & ~(BIG_DATA | SUB_TREE)) === 0;
  if (!known || keyEnd + inPage > bytes.length) throw damagedPage(page);
  return {
    key: bytes.subarray(keyStart, keyEnd),
    flags: kind === "branch" ? 0 : flags,
    number: kind === "branch" ? low + flags * 2 ** 32 : low,
    data: bytes.subarray(keyEnd, keyEnd + inPage),
  };
}

function hasTextKeys({ flags }: TreeRoot): boolean {
  return (flags & INTEGER_KEYS) === 0;
}

/** Keys that are numbers of transactions, in order: LMDB ends the process on any other. */
function assertNumbers(nodes: readonly Node[], page: number): void {
  let last = 0;
  for (const { key } of nodes) {
    const number = key.length === NUMBER_BYTES ? u64(key, 0) : 0;
    if (number <= last) throw damagedPage(page);
    last = number;
  }
}

function assertOrder(nodes: readonly Node[], page: number, { from, to }: KeyRange): void {
  for (const [index, { key }] of nodes.entries()) {
    const next = nodes[index + 1]?.key ?? to;
    if (key.length === 0 || (next !== null && key.compare(next) >= 0)) throw damagedPage(page);
  }
  const first = nodes[0]?.key;
  if (first !== undefined && from !== null && first.compare(from) < 0) throw damagedPage(page);
}
