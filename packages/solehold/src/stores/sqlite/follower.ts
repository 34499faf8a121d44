/**
 * Follows what other store objects write, in this process or another. Every commit is noted in the marker file when it
 * can be seen; that wakes the follower, and a slow timer does in case a wake-up is lost. (The write-ahead file would wake
 * it too early: it changes before the commit can be seen.) Then it asks for the commits after the last one that it saw.
 */
import { type FSWatcher, watch } from "node:fs";
import { type Env, jittered, type Timer } from "../../env/index.ts";
import type { ChangesReply } from "./protocol.ts";

const POLL_MS = 1_000;
/** Where files cannot be watched this is how fast events travel. */
const POLL_ALONE_MS = 50;
const JITTER_RATIO = 0.3;

export interface FollowerParts {
  readonly env: Env;
  /** Null as where files cannot be watched. */
  readonly markerPath: string | null;
  /** The changes after a version; with null only the newest version. */
  readonly changesAfter: (version: number | null) => Promise<ChangesReply>;
  readonly onChanges: (changed: ChangesReply["changed"]) => void;
}

export class Follower {
  /** Once this has resolved, every later commit is noticed. */
  readonly started: Promise<void>;
  readonly #parts: FollowerParts;
  #files: FSWatcher | null = null;
  #timer: Timer | null = null;
  #version: number | null = null;
  #isLooking = false;
  /** Woken up during a look. */
  #mustLookAgain = false;
  #isStopped = false;

  constructor(parts: FollowerParts) {
    this.#parts = parts;
    if (parts.markerPath !== null) this.#watchFile(parts.markerPath);
    this.started = this.#look();
    this.started.then(
      () => this.#schedule(),
      () => this.stop(),
    );
  }

  stop(): void {
    this.#isStopped = true;
    this.#files?.close();
    this.#timer?.cancel();
  }

  #watchFile(path: string): void {
    try {
      this.#files = watch(path, { persistent: false }, () => this.#wake());
      this.#files.on("error", () => {
        this.#files?.close();
        this.#files = null;
      });
    } catch {
      // The system cannot watch files, or not one more: the timer has to do.
    }
  }

  #schedule(): void {
    if (this.#isStopped) return;
    const { env } = this.#parts;
    const pollMs = jittered(env, this.#files === null ? POLL_ALONE_MS : POLL_MS, JITTER_RATIO);
    this.#timer = env.timer(pollMs, () => {
      this.#wake();
      this.#schedule();
    });
  }

  #wake(): void {
    if (this.#isLooking) this.#mustLookAgain = true;
    else this.#look().catch(() => this.#parts.onChanges(null));
  }

  async #look(): Promise<void> {
    this.#isLooking = true;
    try {
      do {
        this.#mustLookAgain = false;
        const { version, changed } = await this.#parts.changesAfter(this.#version);
        if (!this.#isStopped && this.#version !== null) this.#parts.onChanges(changed);
        this.#version = version;
      } while (this.#mustLookAgain && !this.#isStopped);
    } finally {
      this.#isLooking = false;
    }
  }
}
