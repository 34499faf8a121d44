/**
 * Walks a chain line by line and says what is wrong with the first line that does not fit. Both the
 * verifier and the reopening writer use it, so they can never disagree about what is valid.
 *
 * `entry` in a finding is the first sequence that is not proven: everything before it is.
 */
import type { Frame } from "./hash-chain.ts";
import { readEntry, readFrame } from "./hash-chain.ts";

export type AuditProblem =
  /** The line's content is not what its hash was made of. */
  | "edited"
  /** The line is not an entry. */
  | "garbage"
  /** The entry is nowhere in what follows. */
  | "missing"
  /** The entry comes later than it should. */
  | "reordered"
  /** A line of an earlier entry is there again. */
  | "duplicated"
  /** Two different entries claim the same place. */
  | "forked"
  /** The entry does not follow the one before it: one of the two was rewritten together with its hash. */
  | "unlinked"
  /** The chain holds, but an anchor remembers another hash: everything up to there was rewritten. */
  | "rewritten"
  /** The last line is incomplete: a crash in mid-write, or a cut. */
  | "torn"
  /** An anchor knows of later entries than there are. */
  | "truncated"
  /** The segment's name does not say where it begins. */
  | "misnamed"
  /** The anchors are gone, so nothing tells whether the end was cut off. */
  | "unanchored";

export interface Finding {
  readonly problem: AuditProblem;
  readonly entry: number;
  readonly message: string;
}

/** Where a walk begins. Without a hash the first line's own `previousHash` is believed. */
export interface ChainStart {
  readonly sequence: number;
  readonly hash: string | null;
}

export class ChainCheck {
  #sequence: number;
  #hash: string | null;
  /** The hash before the head's, to tell a forked entry from a repeated one. */
  #hashBefore: string | null = null;

  constructor(start: ChainStart) {
    this.#sequence = start.sequence;
    this.#hash = start.hash;
  }

  get sequence(): number {
    return this.#sequence;
  }

  /** Null until a line was seen, if the start had no hash. */
  get hash(): string | null {
    return this.#hash;
  }

  get expected(): number {
    return this.#sequence + 1;
  }

  /** Null when the line is the next entry; the walk has then moved on. */
  check(line: Buffer): Finding | null {
    const entry = this.expected;
    const frame = readFrame(line);
    if (frame === null)
      return { problem: "garbage", entry, message: `entry ${entry}: the line is not an entry` };
    if (!frame.intact) {
      const message = `entry ${entry} was edited: the line does not match its own hash`;
      return { problem: "edited", entry, message };
    }
    const finding = this.#place(frame);
    if (finding !== null) return finding;
    if (readEntry(line, frame) === null) {
      return { problem: "garbage", entry, message: `entry ${entry}: the line is not one JSON object` };
    }
    this.#hashBefore = frame.previousHash;
    this.#hash = frame.hash;
    this.#sequence = frame.sequence;
    return null;
  }

  /** Whether this is the line of the expected entry: used to look for one that is out of place. */
  isExpected(line: Buffer): boolean {
    const frame = readFrame(line);
    if (frame === null || !frame.intact || frame.sequence !== this.expected) return false;
    return this.#hash === null || frame.previousHash === this.#hash;
  }

  #place(frame: Frame): Finding | null {
    const entry = this.expected;
    if (frame.sequence > entry) {
      const message = `entry ${entry} is missing: entry ${frame.sequence} comes after entry ${this.#sequence}`;
      return { problem: "missing", entry, message };
    }
    if (
      frame.sequence === this.#sequence &&
      frame.hash !== this.#hash &&
      frame.previousHash === this.#hashBefore
    ) {
      const message = `entry ${frame.sequence} is there twice with different content: one of them was inserted`;
      return { problem: "forked", entry: frame.sequence, message };
    }
    if (frame.sequence < entry) {
      const message = `entry ${entry} was expected, but the line holds entry ${frame.sequence} again`;
      return { problem: "duplicated", entry, message };
    }
    if (this.#hash !== null && frame.previousHash !== this.#hash) {
      const before = this.#sequence === 0 ? "the beginning of this trail" : `entry ${this.#sequence}`;
      const message = `entry ${entry} does not follow ${before}: one of them was replaced, hash included`;
      return { problem: "unlinked", entry, message };
    }
    return null;
  }
}
