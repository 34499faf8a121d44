/**
 * Whether the disk has room for a commit, asked before LMDB begins it. LMDB 3.5 describes a write that fails in a piece
 * of memory that is too short for it, which may end the process: on a full disk it must not get that far.
 *
 * Not promised: that a write never fails. Another program may take the room in the meantime, and limits of a user or
 * of a process are not seen here.
 */
import { statfsSync } from "node:fs";
import type { Env } from "../../env/index.ts";
import { StoreError } from "../../store/index.ts";

/** What else a commit may need: heads, free lists, the lines of members. */
const RESERVE_BYTES = 2 ** 20;
/** A record's page and its share of those above; what is rewritten takes the place of what was there before. */
const BYTES_PER_WRITE = 2 ** 13;
/** With so much room a look is good for a while. */
const AMPLE_BYTES = 2 ** 30;
const AMPLE_FOR_MS = 100;

/** Infinity when it cannot be told. */
export function spaceLeft(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

export class Space {
  readonly #folder: string;
  readonly #env: Env;
  readonly #left: (folder: string) => number;
  #lookAgainAtMs = Number.NEGATIVE_INFINITY;

  constructor(folder: string, env: Env, left: (folder: string) => number) {
    this.#folder = folder;
    this.#env = env;
    this.#left = left;
  }

  /** Throws a StoreError "full" when so many records cannot be written for certain. */
  assertFor(writes: number): void {
    const nowMs = this.#env.monotonicMs();
    if (nowMs < this.#lookAgainAtMs) return;
    const left = this.#left(this.#folder);
    if (left >= AMPLE_BYTES) this.#lookAgainAtMs = nowMs + AMPLE_FOR_MS;
    else if (left < RESERVE_BYTES + writes * BYTES_PER_WRITE) throw noSpace(this.#folder);
  }
}

export function noSpace(
  folder: string,
  options: ConstructorParameters<typeof StoreError>[2] = { outcome: "not-applied" },
): StoreError {
  const message = `no space left for the embedded store in '${folder}': free some and try again`;
  return new StoreError("full", message, options);
}
