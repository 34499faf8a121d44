/** An operation that has no answer yet, as the rest of the server sees it: somebody who may go away. */
import type { Connection } from "../call.ts";

export class PendingOperation implements Connection {
  readonly #isClosed: () => boolean;
  readonly #listeners = new Set<() => void>();
  #cancelled = false;

  constructor(isClosed: () => boolean) {
    this.#isClosed = isClosed;
  }

  isGone(): boolean {
    return this.#cancelled || this.#isClosed();
  }

  isCancelled(): boolean {
    return this.#cancelled;
  }

  onGone(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** The connection was closed. */
  disconnect(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  /** The client does not want the answer any more. */
  cancel(): void {
    this.#cancelled = true;
    this.disconnect();
  }
}
