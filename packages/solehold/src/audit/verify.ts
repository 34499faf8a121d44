/**
 * Proves offline, in one pass and constant memory, that a trail is what was written: finds every edit,
 * drop, reorder, insertion and repetition, and every truncation below the highest known head, and names the
 * first entry that is not proven. Nothing is believed but the trail's id and the anchors.
 *
 * Not found: the removal of the last entries above the highest anchor, and a rewrite of everything by
 * someone who also rewrites the anchors. Pass an `anchor` that was kept elsewhere to find those as well.
 */
import type { AnchorLine } from "./anchors.ts";
import type { AuditProblem, ChainStart, Finding } from "./chain-checker.ts";
import { ChainCheck } from "./chain-checker.ts";
import type { AuditHead } from "./entry.ts";
import { AuditError } from "./error.ts";
import { ANCHORS_FILE, listSegments, readTrailId, TRAIL_FILE } from "./folder.ts";
import { genesis } from "./hash-chain.ts";
import type { AuditLines, SourceBatch } from "./verify-input.ts";
import { anchorsNow, folderLines, looseLines } from "./verify-input.ts";

export interface VerifyOptions {
  /** A head that was kept elsewhere: it must be part of the trail. */
  readonly anchor?: AuditHead;
  /** For a trail whose older segments were archived: the head that they ended with. */
  readonly startAfter?: AuditHead;
  /** Stop after this entry: for a trail that is being written. */
  readonly throughSequence?: number;
  /** For lines without their folder: whose trail they must be. */
  readonly trailId?: string;
}

export type AuditVerification =
  | { readonly ok: true; readonly entries: number; readonly head: AuditHead }
  | {
      readonly ok: false;
      /** The first entry that is not proven. All before it are. */
      readonly entry: number;
      readonly file: string;
      /** Counted from 1. */
      readonly line: number;
      readonly problem: AuditProblem;
      readonly message: string;
    };

/** `source` is a folder, or lines from anywhere in the order of the trail. */
export async function verifyAudit(
  source: string | AuditLines,
  options: VerifyOptions = {},
): Promise<AuditVerification> {
  if (typeof source === "string") return verifyFolder(source, options);
  const { trailId, startAfter } = options;
  const begin: ChainStart = trailId === undefined ? { sequence: 0, hash: null } : genesis(trailId);
  return new Verification(startAfter ?? begin, options, null).run(looseLines(source));
}

async function verifyFolder(folder: string, options: VerifyOptions): Promise<AuditVerification> {
  const anchors = await anchorsNow(folder);
  const segments = await listSegments(folder);
  const trailId = await readTrailId(folder);
  if (trailId === null && segments.length === 0) {
    throw new AuditError(
      "AUDIT_READ_FAILED",
      `${folder} holds no audit trail: pass the folder that was opened for it`,
    );
  }
  if (trailId === null) return missingFile(TRAIL_FILE, "the trail's id is unknown", 1);
  const result = await new Verification(options.startAfter ?? genesis(trailId), options, anchors).run(
    folderLines(folder),
  );
  if (!result.ok || anchors !== null || options.anchor !== undefined) return result;
  return missingFile(
    ANCHORS_FILE,
    "nothing tells whether later entries were cut off",
    result.head.sequence + 1,
  );
}

function missingFile(file: string, consequence: string, entry: number): AuditVerification {
  const message = `${file} is missing: ${consequence}. Restore it from a copy.`;
  return {
    ok: false,
    entry,
    file,
    line: 1,
    problem: file === ANCHORS_FILE ? "unanchored" : "missing",
    message,
  };
}

/** One pass. */
class Verification {
  readonly #options: VerifyOptions;
  readonly #check: ChainCheck;
  readonly #anchors: AsyncIterator<AnchorLine> | null;
  /** The next anchor that the walk has not reached. */
  #nextAnchor: AuditHead | null = null;
  #entries = 0;
  #file = "";
  #line = 0;
  /** What the name of the current segment promises, until its first line has kept it. */
  #promised: number | null = null;
  /** An entry was not in its place; it is searched in the rest, to tell a drop from a reorder. */
  #absent: AuditVerification | null = null;

  constructor(start: ChainStart, options: VerifyOptions, anchors: AsyncIterator<AnchorLine> | null) {
    this.#check = new ChainCheck(start);
    this.#options = options;
    this.#anchors = anchors;
  }

  async run(source: AsyncIterable<SourceBatch>): Promise<AuditVerification> {
    try {
      return await this.#pass(source);
    } finally {
      await this.#anchors?.return?.();
    }
  }

  async #pass(source: AsyncIterable<SourceBatch>): Promise<AuditVerification> {
    const atStart = await this.#arrive();
    if (atStart !== null) return atStart;
    for await (const batch of source) {
      const result = this.#absent === null ? await this.#walk(batch) : this.#search(batch.lines);
      if (result !== null) return result;
    }
    return this.#absent ?? this.#promisedButEmpty() ?? this.#cutOff() ?? this.#proven();
  }

  async #walk(batch: SourceBatch): Promise<AuditVerification | null> {
    if (batch.promised !== null) {
      const emptyBefore = this.#promisedButEmpty();
      if (emptyBefore !== null) return emptyBefore;
      this.#promised = batch.promised;
    }
    this.#file = batch.file;
    this.#line = batch.firstLine - 1;
    for (const [index, line] of batch.lines.entries()) {
      if (this.#check.sequence === this.#options.throughSequence) return this.#proven();
      this.#line += 1;
      const failure = this.#oneLine(line) ?? (this.#atAnchor() ? await this.#arrive() : null);
      if (this.#absent !== null) return this.#search(batch.lines.slice(index + 1));
      if (failure !== null) return failure;
    }
    if (batch.tornBytes === 0 || this.#check.sequence === this.#options.throughSequence) return null;
    this.#line += 1;
    return this.#torn(batch);
  }

  #oneLine(line: Buffer): AuditVerification | null {
    const expected = this.#check.expected;
    const finding = this.#check.check(line);
    if (finding?.problem === "missing") this.#absent = this.#failure(finding);
    if (finding !== null) return this.#failure(finding);
    const promised = this.#promised;
    this.#promised = null;
    this.#entries += 1;
    if (promised === null || promised === expected) return null;
    const message = `${this.#file} begins with entry ${expected}, but its name says ${promised}: it was renamed`;
    return this.#failure({ problem: "misnamed", entry: expected, message });
  }

  #atAnchor(): boolean {
    const { sequence } = this.#check;
    return sequence === this.#nextAnchor?.sequence || sequence === this.#options.anchor?.sequence;
  }

  /** Compares with the anchors of the entry just reached, and fetches the next one. */
  async #arrive(): Promise<AuditVerification | null> {
    const { sequence, hash } = this.#check;
    const disagrees = (anchor: AuditHead | null | undefined): boolean =>
      anchor?.sequence === sequence && hash !== null && anchor.hash !== hash;
    if (disagrees(this.#options.anchor) || disagrees(this.#nextAnchor)) return this.#rewritten();
    return this.#fetchAnchor(disagrees);
  }

  #rewritten(): AuditVerification {
    const entry = this.#check.sequence;
    const message = `entry ${entry} has another hash than an anchor remembers: it or an earlier one was rewritten`;
    return this.#failure({ problem: "rewritten", entry, message });
  }

  async #fetchAnchor(disagrees: (anchor: AuditHead) => boolean): Promise<AuditVerification | null> {
    while (this.#anchors !== null && (this.#nextAnchor?.sequence ?? 0) <= this.#check.sequence) {
      const next = await this.#anchors.next();
      if (next.done === true) {
        this.#nextAnchor = null;
        return null;
      }
      const { head, line } = next.value;
      if (head === null || head.sequence <= (this.#nextAnchor?.sequence ?? 0)) {
        const message = `${ANCHORS_FILE} line ${line} is not an anchor above the one before it`;
        return {
          ok: false,
          entry: this.#check.expected,
          file: ANCHORS_FILE,
          line,
          problem: "garbage",
          message,
        };
      }
      this.#nextAnchor = head;
      if (disagrees(head)) return this.#rewritten();
    }
    return null;
  }

  #search(lines: readonly Buffer[]): AuditVerification | null {
    if (!lines.some((line) => this.#check.isExpected(line))) return null;
    const entry = this.#check.expected;
    const message = `entry ${entry} is out of order: it comes after a later entry`;
    return this.#absent?.ok === false ? { ...this.#absent, problem: "reordered", message } : null;
  }

  /** A segment without a single line may only stand where it says it does. */
  #promisedButEmpty(): AuditVerification | null {
    const promised = this.#promised;
    this.#promised = null;
    const entry = this.#check.expected;
    if (promised === null || promised === entry) return null;
    const message = `${this.#file} is empty and says it begins with entry ${promised}, but entry ${entry} comes next`;
    return this.#failure({ problem: promised > entry ? "missing" : "misnamed", entry, message });
  }

  #torn(batch: SourceBatch): AuditVerification {
    const entry = this.#check.expected;
    if (batch.isLastFile === "no") {
      const message = `entry ${entry}: the last line of ${this.#file} is incomplete although the trail goes on`;
      return this.#failure({ problem: "garbage", entry, message });
    }
    const message = `entry ${entry}: the last line is incomplete (${batch.tornBytes} bytes): a crash in mid-write, which opening the trail repairs, or a cut`;
    return this.#cutOff() ?? this.#failure({ problem: "torn", entry, message });
  }

  /** Whether an anchor, or the caller, knows of entries after the last one. */
  #cutOff(): AuditVerification | null {
    const { anchor, throughSequence } = this.#options;
    const { sequence } = this.#check;
    if (throughSequence !== undefined && sequence >= throughSequence) return null;
    const known = Math.max(anchor?.sequence ?? 0, this.#nextAnchor?.sequence ?? 0, throughSequence ?? 0);
    if (known <= sequence) return null;
    const message = `the trail ends with entry ${sequence}, but entry ${known} is known to have existed: it was truncated`;
    return this.#failure({ problem: "truncated", entry: sequence + 1, message });
  }

  #failure(finding: Finding): AuditVerification {
    const { problem, entry, message } = finding;
    return { ok: false, entry, file: this.#file, line: this.#line, problem, message };
  }

  #proven(): AuditVerification {
    const { sequence, hash } = this.#check;
    return { ok: true, entries: this.#entries, head: { sequence, hash: hash ?? "" } };
  }
}
