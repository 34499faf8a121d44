/**
 * Writes of a store whose ends are seen before they are safe, as PostgreSQL's store writes them: a write is seen, and its
 * row free for others, when it is safe; only what is given back may be seen at once, and is safe a little later. All are
 * answered when they are safe, which all lines of the log before them are then, too. A crash takes back what was seen
 * and not safe.
 */
import { keyId } from "../../core/index.ts";
import type { ConditionalWrite, WriteResult } from "../../store/index.ts";
import type { AppliedWrite, Done } from "./engine.ts";
import type { LineFate, WriteLog } from "./log.ts";

/** "early": it may be seen before it is safe. */
export type WriteForm = "early" | "usual";

/** What becomes of a write: it is answered, or the store stops before. */
export interface WriteFate {
  readonly answered: (result: WriteResult) => void;
  readonly broken: () => void;
}

/** What such a store could do wrong. */
export type LogMistake = "end answered unsafe" | "grant answered unsafe" | "grant seen unsafe";

export interface EarlyWritesOptions {
  readonly log: WriteLog;
  readonly mistake: LogMistake | null;
  /** It will be safe then. */
  readonly onLogged: (form: WriteForm, safeAtMs: number) => void;
  /** A crash undid what could be seen since that instant. `seen`: somebody was shown it, or told of it. */
  readonly onTakenBack: (write: AppliedWrite, seen: "yes" | "no") => void;
  /** A write was begun upon an end that was not safe. */
  readonly onBuiltUpon: () => void;
}

/** What the writes are done to. */
export interface Written {
  conflictOf(write: ConditionalWrite): WriteResult | null;
  carryOut(write: ConditionalWrite, by: string): Done;
  restore(undo: Done["undo"]): void;
}

interface Request {
  readonly write: ConditionalWrite;
  readonly by: string;
  readonly form: WriteForm;
  readonly fate: WriteFate;
}

interface Unsafe {
  seen: "yes" | "no";
}

export class EarlyWrites {
  readonly #options: EarlyWritesOptions;
  readonly #written: Written;
  /** The keys that are being written, with who waits for them. */
  readonly #locked = new Map<string, Request[]>();
  /** What is seen and not safe, by key. */
  readonly #unsafe = new Map<string, Unsafe>();

  constructor(options: EarlyWritesOptions, written: Written) {
    this.#options = options;
    this.#written = written;
  }

  submit(request: Request): void {
    const { write, form, fate } = request;
    const { mistake, onBuiltUpon, onLogged } = this.#options;
    const id = keyId(write.key);
    const waiting = this.#locked.get(id);
    if (waiting !== undefined) {
      waiting.push(request);
      return;
    }
    const conflict = this.#written.conflictOf(write);
    if (conflict !== null) {
      this.shown(id);
      fate.answered(conflict);
      return;
    }
    if (this.#unsafe.has(id)) onBuiltUpon();
    const isSeenAtOnce =
      form === "early" || mistake === "grant seen unsafe" || mistake === "grant answered unsafe";
    onLogged(form, isSeenAtOnce ? this.#showAtOnce(request, id) : this.#showWhenSafe(request, id));
  }

  /** Calls back when all that can be seen now is safe. */
  whenSafe(fate: LineFate): void {
    this.#options.log.append(fate);
  }

  /** What stands under the key was shown to somebody. */
  shown(id: string): void {
    const unsafe = this.#unsafe.get(id);
    if (unsafe !== undefined) unsafe.seen = "yes";
  }

  /** Whether something about the key is not safe yet. */
  isBusyWith(id: string): boolean {
    return this.#locked.has(id) || this.#unsafe.has(id);
  }

  crash(): void {
    const waiting = [...this.#locked.values()].flat();
    this.#locked.clear();
    for (const { fate } of waiting) fate.broken();
    this.#options.log.crash();
    this.#unsafe.clear();
  }

  /** Until then whoever wants to write the key waits. */
  #showWhenSafe({ write, by, fate }: Request, id: string): number {
    this.#locked.set(id, []);
    return this.#options.log.append({
      safe: () => {
        const waiting = this.#locked.get(id) ?? [];
        this.#locked.delete(id);
        fate.answered(this.#written.carryOut(write, by).result);
        for (const request of waiting) this.submit(request);
      },
      lost: fate.broken,
    });
  }

  #showAtOnce({ write, by, form, fate }: Request, id: string): number {
    const { log, mistake, onTakenBack } = this.#options;
    const unsafe: Unsafe = { seen: "no" };
    this.#unsafe.set(id, unsafe);
    const { result, applied, undo } = this.#written.carryOut(write, by);
    const isAnsweredAtOnce = mistake === (form === "early" ? "end answered unsafe" : "grant answered unsafe");
    if (isAnsweredAtOnce) fate.answered(result);
    return log.append({
      safe: () => {
        if (this.#unsafe.get(id) === unsafe) this.#unsafe.delete(id);
        if (!isAnsweredAtOnce) fate.answered(result);
      },
      lost: () => {
        this.#written.restore(undo);
        onTakenBack(applied, unsafe.seen);
        fate.broken();
      },
    });
  }
}
