/** Something that components show and that changes: they are called once a frame, however much arrives. */
export abstract class Changes {
  /** Grows with every change. */
  version = 0;
  readonly #listeners = new Set<() => void>();
  #isPlanned = false;

  /** Returns how to end it. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  protected changed(): void {
    this.version += 1;
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    const call = (): void => {
      this.#isPlanned = false;
      for (const listener of this.#listeners) listener();
    };
    // A page in the background gets no frames.
    if (document.hidden) setTimeout(call, 250);
    else requestAnimationFrame(call);
  }
}
