/**
 * Where a watcher's events leave the process. A watcher that reads too slowly does not fill the memory: its
 * events are dropped, and when it has caught up it gets one "reset" in their place.
 */
import type { Env, Timer, WatchEvent } from "solehold/internal";

export interface BoundedEventSinkOptions {
  readonly env: Env;
  readonly maxBufferedBytes: number;
  /** Bytes that were written and have not left yet. */
  buffered(): number;
  write(event: WatchEvent): void;
  /** The token of now, for the reset. */
  token(): string;
}

const CHECK_EVERY_MS = 50;

export class BoundedEventSink {
  readonly #options: BoundedEventSinkOptions;
  /** Set while events are being dropped. */
  #catchingUp: Timer | null = null;

  constructor(options: BoundedEventSinkOptions) {
    this.#options = options;
  }

  push(event: WatchEvent): void {
    if (this.#catchingUp !== null) return;
    if (this.#options.buffered() <= this.#options.maxBufferedBytes) this.#options.write(event);
    else this.#wait();
  }

  close(): void {
    this.#catchingUp?.cancel();
  }

  #wait(): void {
    const { env, maxBufferedBytes, buffered, write, token } = this.#options;
    this.#catchingUp = env.timer(CHECK_EVERY_MS, () => {
      if (buffered() > maxBufferedBytes / 2) return this.#wait();
      this.#catchingUp = null;
      write({ kind: "reset", token: token() });
    });
  }
}
