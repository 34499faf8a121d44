/**
 * Whether this process will want the key again at once, judged by what it did before. One that takes turns without a pause
 * writes its next ticket together with its release: otherwise those nearer to the store would have many turns while its
 * next wish is on the way.
 */
import type { Env, Timer } from "../env/index.ts";

/** So soon after a release is "at once"; so often in a row is a habit. */
const SOON_MS = 5;
const HABIT = 2;
/** If it does not come back within this, it was expected in vain. */
const EXPECTED_MS = 20;

export class Returning {
  #releasedMs = Number.NEGATIVE_INFINITY;
  #times = 0;
  #timer: Timer | null = null;

  get isExpected(): boolean {
    return this.#times >= HABIT;
  }

  onJoin(nowMs: number): void {
    this.#timer?.cancel();
    if (this.#releasedMs === Number.NEGATIVE_INFINITY) return;
    this.#times = nowMs - this.#releasedMs <= SOON_MS ? this.#times + 1 : 0;
    this.#releasedMs = Number.NEGATIVE_INFINITY;
  }

  /** The release is done. `onVain` is called if nobody comes back although that was expected. */
  onRelease(env: Env, onVain: (() => void) | null): void {
    this.#releasedMs = env.monotonicMs();
    this.#timer?.cancel();
    if (onVain === null) return;
    this.#timer = env.timer(EXPECTED_MS, () => {
      this.#times = 0;
      onVain();
    });
  }

  close(): void {
    this.#timer?.cancel();
  }
}
