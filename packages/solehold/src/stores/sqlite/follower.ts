/**
 * Follows what other store objects write, in this process or another. Every commit is noted in the marker file when it
 * can be seen; that wakes the follower, and a slow timer does in case a wake-up is lost. (The write-ahead file would wake
 * it too early: it changes before the commit can be seen.) Then it asks for the commits after the last one that it saw.
 */
import { type FSWatcher, watch } from "node:fs";
import { join } from "node:path";
import { type Env, jittered, type Timer } from "../../env/index.ts";
import { MARKER_FILE } from "./folder.ts";
import type { ChangesReply } from "./protocol.ts";

const POLL_MS = 1_000;
/** Where files cannot be watched this is how fast events travel. */
const POLL_ALONE_MS = 50;
const JITTER_RATIO = 0.3;

export interface FollowerParts {
  readonly folder: string;
  readonly env: Env;
  readonly wakeUp: "by file" | "by timer";
  /** The changes after a version; with null only the newest version. */
  readonly changesAfter: (version: number | null) => Promise<ChangesReply>;
  readonly onChanges: (changed: ChangesReply["changed"]) => void;
  /** Some changes are not known. */
  readonly onGap: () => void;
}

export class Follower {
  readonly #parts: FollowerParts;
  #files: FSWatcher | null = null;
  #timer: Timer | null = null;
  #version = 0;
  /** "again": woken up during a look. */
  #looking: "no" | "yes" | "again" = "no";
  #isStopped = false;

  constructor(parts: FollowerParts) {
    this.#parts = parts;
  }

  /** Once this has resolved, every later commit is noticed. */
  async start(): Promise<void> {
    if (this.#parts.wakeUp === "by file") this.#watchFile();
    this.#looking = "yes";
    const { version } = await this.#parts.changesAfter(null);
    this.#version = version;
    this.#looked();
    this.#schedule();
  }

  stop(): void {
    this.#isStopped = true;
    this.#files?.close();
    this.#timer?.cancel();
  }

  #watchFile(): void {
    try {
      const path = join(this.#parts.folder, MARKER_FILE);
      const files = watch(path, { persistent: false }, () => this.#wake());
      files.on("error", () => {
        files.close();
        this.#files = null;
      });
      this.#files = files;
    } catch {
      // The system cannot watch files, or not one more: the timer has to do.
    }
  }

  #schedule(): void {
    if (this.#isStopped) return;
    const { env } = this.#parts;
    this.#timer = env.timer(
      jittered(env, this.#files === null ? POLL_ALONE_MS : POLL_MS, JITTER_RATIO),
      () => {
        this.#wake();
        this.#schedule();
      },
    );
  }

  #wake(): void {
    if (this.#looking === "no") void this.#look();
    else this.#looking = "again";
  }

  async #look(): Promise<void> {
    const { changesAfter, onChanges, onGap } = this.#parts;
    if (this.#isStopped) return;
    this.#looking = "yes";
    const reply = await changesAfter(this.#version).catch(() => null);
    if (this.#isStopped) return;
    this.#version = reply?.version ?? this.#version;
    if (reply === null || reply.isGap) onGap();
    else onChanges(reply.changed);
    this.#looked();
  }

  #looked(): void {
    const mustLook = this.#looking === "again";
    this.#looking = "no";
    if (mustLook) void this.#look();
  }
}
