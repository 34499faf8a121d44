/**
 * Where a client's events leave the process. A client that reads too slowly does not fill the memory: its events are
 * dropped, and when it has caught up it is told so once.
 */
import type { Env, Timer } from "solehold/internal";

export interface BoundedEventSinkOptions<Event> {
  readonly env: Env;
  readonly maxBufferedBytes: number;
  /** Bytes that were written and have not left yet. */
  buffered(): number;
  write(event: Event): void;
  onDropped(event: Event): void;
  /** There is room again. */
  onCaughtUp(): void;
}

const CHECK_EVERY_MS = 50;

export class BoundedEventSink<Event> {
  readonly #options: BoundedEventSinkOptions<Event>;
  /** Set while events are being dropped. */
  #catchingUp: Timer | null = null;

  constructor(options: BoundedEventSinkOptions<Event>) {
    this.#options = options;
  }

  push(event: Event): void {
    const { maxBufferedBytes, buffered, write, onDropped } = this.#options;
    if (this.#catchingUp === null && buffered() <= maxBufferedBytes) {
      write(event);
      return;
    }
    onDropped(event);
    if (this.#catchingUp === null) this.#wait();
  }

  close(): void {
    this.#catchingUp?.cancel();
  }

  #wait(): void {
    const { env, maxBufferedBytes, buffered, onCaughtUp } = this.#options;
    this.#catchingUp = env.timer(CHECK_EVERY_MS, () => {
      if (buffered() > maxBufferedBytes / 2) return this.#wait();
      this.#catchingUp = null;
      onCaughtUp();
    });
  }
}
